/* Stores rows of keys and values in the types of the cache. The contract is fr_kv_store_fn in kernels.h. */
#include "kernels/simd_avx2.h"

#include <math.h>

enum { BLOCK = 32, INFINITE = 0x7f800000 };

/* Stores the first `count` 16-bit values, at most 8. */
FR_INLINE void store_halves(void *y, size_t count, __m128i halves) {
    if (count >= 8) {
        _mm_storeu_si128(y, halves);
        return;
    }
    uint16_t buffer[8];
    _mm_storeu_si128((void *)buffer, halves);
    memcpy(y, buffer, count * sizeof *buffer);
}

void fr_kv_store_f16_avx2(void *slot, const float *x, size_t n) {
    for (size_t i = 0; i < n; i += 8) {
        __m128i halves = _mm256_cvtps_ph(load_lanes(x + i, n - i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        store_halves((char *)slot + 2 * i, n - i, halves);
    }
}

void fr_kv_store_bf16_avx2(void *slot, const float *x, size_t n) {
    for (size_t i = 0; i < n; i += 8) {
        __m256 values = load_lanes(x + i, n - i), nan = _mm256_cmp_ps(values, values, _CMP_UNORD_Q);
        __m256i bits = _mm256_castps_si256(values), upper = _mm256_srli_epi32(bits, 16);
        __m256i even = _mm256_add_epi32(_mm256_and_si256(upper, _mm256_set1_epi32(1)), _mm256_set1_epi32(0x7fff));
        __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, even), 16);
        __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
        __m256i halves = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(nan));
        __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(halves, halves), 0x88);
        store_halves((char *)slot + 2 * i, n - i, _mm256_castsi256_si128(packed));
    }
}

/* Returns the bits of the largest magnitude in a block. *positive becomes true if a positive value has this
 * magnitude. */
FR_INLINE int32_t largest_magnitude(const float *x, bool *positive) {
    __m256i all = _mm256_setzero_si256(), same = all, magnitude = _mm256_set1_epi32(0x7fffffff);
    for (size_t i = 0; i < BLOCK; i += 8)
        all = _mm256_max_epi32(all, _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + i)), magnitude));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    __m128i one = _mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1));
    for (size_t i = 0; i < BLOCK; i += 8) {
        __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(x + i));
        same = _mm256_or_si256(same, _mm256_cmpeq_epi32(bits, _mm256_broadcastd_epi32(one)));
    }
    *positive = _mm256_movemask_epi8(same) != 0;
    return _mm_cvtsi128_si32(one);
}

FR_INLINE float float_of(int32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Writes d as float16. Returns the reciprocal of the rounded d, or 0 if the rounded d is 0. */
FR_INLINE float store_scale(uint8_t *block, float d) {
    uint16_t half = _cvtss_sh(d, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    memcpy(block, &half, sizeof half);
    float stored = _cvtsh_ss(half);
    return fabsf(stored) > 0 ? 1 / stored : 0;
}

/* Returns rint(x * r) of 32 values, saturated to bytes. */
FR_INLINE __m256i codes_of(const float *x, float r) {
    __m256i whole[4];
    for (size_t i = 0; i < 4; i++)
        whole[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), _mm256_set1_ps(r)));
    __m256i low = _mm256_packs_epi32(whole[0], whole[1]), high = _mm256_packs_epi32(whole[2], whole[3]);
    __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
}

static const float zeros[BLOCK];

void fr_kv_store_q8_0_avx2(void *slot, const float *x, size_t n) {
    uint8_t *block = slot;
    for (size_t at = 0; at < n; at += BLOCK, block += 2 + BLOCK) {
        bool positive;
        int32_t m = largest_magnitude(x + at, &positive);
        float r = store_scale(block, m < INFINITE ? float_of(m) / 127 : NAN);
        __m256i codes = codes_of(m < INFINITE ? x + at : zeros, r);
        _mm256_storeu_si256((void *)(block + 2), _mm256_max_epi8(codes, _mm256_set1_epi8(-127)));
    }
}

void fr_kv_store_q4_0_avx2(void *slot, const float *x, size_t n) {
    uint8_t *block = slot;
    __m256i middle = _mm256_set1_epi8(8), lowest = _mm256_set1_epi8(-8), highest = _mm256_set1_epi8(7);
    for (size_t at = 0; at < n; at += BLOCK, block += 2 + BLOCK / 2) {
        bool positive;
        int32_t m = largest_magnitude(x + at, &positive);
        float largest = positive ? float_of(m) : -float_of(m);
        float r = store_scale(block, m < INFINITE ? largest / -8 : NAN);
        __m256i codes = codes_of(m < INFINITE ? x + at : zeros, r);
        codes = _mm256_add_epi8(_mm256_min_epi8(_mm256_max_epi8(codes, lowest), highest), middle);
        __m128i high = _mm_slli_epi16(_mm256_extracti128_si256(codes, 1), 4);
        _mm_storeu_si128((void *)(block + 2), _mm_or_si128(_mm256_castsi256_si128(codes), high));
    }
}
