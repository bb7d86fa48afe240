/* Defines how rows of keys and values are stored in the types of the cache. The contract is fr_kv_store_fn in
 * kernels.h. */
#include "kernels/scalar.h"

enum { BLOCK = 32, INFINITE = 0x7f800000 };

void FR_SCALAR(kv_store_f32)(void *slot, const float *x, size_t n) {
    if (n > 0) memcpy(slot, x, n * sizeof *x); /* x may be NULL if the row is empty */
}

void FR_SCALAR(kv_store_f16)(void *slot, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint16_t half = fr_f16_from_f32(x[i]);
        memcpy((char *)slot + i * sizeof half, &half, sizeof half);
    }
}

void FR_SCALAR(kv_store_bf16)(void *slot, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint16_t half = fr_bf16_from_f32(x[i]);
        memcpy((char *)slot + i * sizeof half, &half, sizeof half);
    }
}

static uint32_t largest_magnitude(const float *x) {
    uint32_t largest = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        uint32_t magnitude = bits_of(x[i]) & 0x7fffffff;
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

static bool holds(const float *x, uint32_t bits) {
    bool found = false;
    for (size_t i = 0; i < BLOCK; i++) found |= bits_of(x[i]) == bits;
    return found;
}

/* Writes d as float16. Returns the reciprocal of the rounded d, or 0 if the rounded d is 0. */
static float store_scale(uint8_t *block, float d) {
    uint16_t half = fr_f16_from_f32(d);
    memcpy(block, &half, sizeof half);
    float stored = fr_f32_from_f16(half);
    return fabsf(stored) > 0 ? 1 / stored : 0;
}

static int clamp(float value, int low, int high) {
    int whole = (int)rintf(value);
    return whole < low ? low : whole > high ? high : whole;
}

static const float zeros[BLOCK];

void FR_SCALAR(kv_store_q8_0)(void *slot, const float *x, size_t n) {
    uint8_t *block = slot;
    for (size_t at = 0; at < n; at += BLOCK, block += 2 + BLOCK) {
        uint32_t m = largest_magnitude(x + at);
        const float *values = m < INFINITE ? x + at : zeros;
        float r = store_scale(block, m < INFINITE ? float_of(m) / 127 : NAN);
        for (size_t i = 0; i < BLOCK; i++) block[2 + i] = (uint8_t)clamp(values[i] * r, -127, 127);
    }
}

void FR_SCALAR(kv_store_q4_0)(void *slot, const float *x, size_t n) {
    uint8_t *block = slot;
    for (size_t at = 0; at < n; at += BLOCK, block += 2 + BLOCK / 2) {
        uint32_t m = largest_magnitude(x + at);
        const float *values = m < INFINITE ? x + at : zeros;
        float largest = holds(x + at, m) ? float_of(m) : -float_of(m);
        float r = store_scale(block, m < INFINITE ? largest / -8 : NAN);
        for (size_t i = 0; i < BLOCK / 2; i++) {
            int low = 8 + clamp(values[i] * r, -8, 7), high = 8 + clamp(values[i + BLOCK / 2] * r, -8, 7);
            block[2 + i] = (uint8_t)(low | high << 4);
        }
    }
}
