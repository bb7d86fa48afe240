/* Reads memory by loads of 32 bytes (read.h). */
#include <immintrin.h>

#include "bench/read.h"

enum { SUMS = 8 };

uint64_t fr_bench_read_avx2(const uint8_t *bytes, size_t size, size_t passes) {
    __m256i sum[SUMS];
    uint64_t words[4];
#pragma GCC unroll 8
    for (int s = 0; s < SUMS; s++) sum[s] = _mm256_setzero_si256();
    for (; passes > 0; passes--) {
        for (const uint8_t *at = bytes, *end = bytes + size; at < end; at += SUMS * 32) {
#pragma GCC unroll 8
            for (int s = 0; s < SUMS; s++)
                sum[s] = _mm256_xor_si256(sum[s], _mm256_load_si256((const __m256i *)(at + 32 * s)));
        }
        fr_bench_read_again();
    }
#pragma GCC unroll 8
    for (int s = 1; s < SUMS; s++) sum[0] = _mm256_xor_si256(sum[0], sum[s]);
    _mm256_storeu_si256((__m256i *)words, sum[0]);
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) all ^= words[i];
    return all;
}
