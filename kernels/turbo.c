/* Rotates heads for the cache's types turbo4 and turbo3, and stores them: see turbo.h. */
#include "kernels/turbo.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static float signs[FR_TURBO_WIDEST];

static void fill_signs(void) {
    uint32_t state = 1;
    for (size_t i = 0; i < FR_TURBO_WIDEST; i++) {
        state = state * 1664525U + 1013904223U;
        signs[i] = state >> 31 ? -1.0F : 1.0F;
    }
}

/* Returns the width of the parts into which a head of n values is divided. Each part is rotated separately. */
static size_t part_of(size_t n) {
    size_t part = n & -n;
    return part < FR_TURBO_WIDEST ? part : FR_TURBO_WIDEST;
}

static const float *signs_of(size_t column) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_signs);
    return signs + column % FR_TURBO_WIDEST;
}

void fr_turbo_rotate(const fr_kernels *kernels, float *head, size_t n) {
    size_t part = part_of(n);
    for (size_t at = 0; at < n; at += part) kernels->hadamard(head + at, head + at, signs_of(at), part, part);
}

void fr_turbo_rotate_back(const fr_kernels *kernels, float *head, size_t n) {
    size_t part = part_of(n);
    for (size_t at = 0; at < n; at += part) {
        kernels->hadamard(head + at, head + at, NULL, part, part);
        kernels->mul(head + at, signs_of(at), part);
    }
}

/* Adds up x[i] * y[i] in the order that turbo.h gives: 16 partial sums, which are then added as in dot. */
static float sum_of_products(const float *x, const float *y) {
    float p[FR_TURBO_BLOCK / 2];
    for (size_t i = 0; i < 16; i++) p[i] = 0.0F + x[i] * y[i];
    for (size_t i = 0; i < 16; i++) p[i] += x[i + 16] * y[i + 16];
    for (size_t half = 8; half; half /= 2)
        for (size_t i = 0; i < half; i++) p[i] += p[i + half];
    return p[0];
}

/* Finds the code of each value of a block: the index of the table's value that is nearest to x[i] * r. The first
 * `count` values of the table are positive and ascending, and the others are their negatives. */
static void find_codes(const float *x, float r, const int8_t *table, int count, int32_t *codes) {
    for (size_t i = 0; i < FR_TURBO_BLOCK; i++) codes[i] = x[i] < 0 ? count : 0;
    for (int k = 1; k < count; k++) {
        float middle = 0.5F * (float)(table[k - 1] + table[k]);
        for (size_t i = 0; i < FR_TURBO_BLOCK; i++) codes[i] += fabsf(x[i] * r) >= middle;
    }
}

/* Finds the codes of a block, and returns its d. */
static float encode(fr_dtype type, const float *x, int32_t *codes) {
    static const int8_t table4[] = {FR_TURBO4_TABLE}, table3[] = {FR_TURBO3_TABLE};
    bool four = type == FR_TURBO4;
    const int8_t *table = four ? table4 : table3;
    float s = sum_of_products(x, x), values[FR_TURBO_BLOCK];
    memset(codes, 0, FR_TURBO_BLOCK * sizeof *codes);
    if (!(s < INFINITY)) return NAN;
    if (s < 0x1p-100F) return 0;
    find_codes(x, (four ? FR_TURBO4_UNIT : FR_TURBO3_UNIT) / sqrtf(s / FR_TURBO_BLOCK), table, four ? 8 : 4, codes);
    for (size_t i = 0; i < FR_TURBO_BLOCK; i++) values[i] = (float)table[codes[i]];
    return s / sum_of_products(x, values);
}

void fr_turbo_store(fr_dtype type, void *slot, const float *x, size_t n) {
    uint8_t *block = slot;
    for (size_t at = 0; at < n; at += FR_TURBO_BLOCK, block += fr_dtype_row_bytes(type, FR_TURBO_BLOCK)) {
        int32_t codes[FR_TURBO_BLOCK];
        uint16_t half = fr_f16_from_f32(encode(type, x + at, codes));
        memcpy(block, &half, sizeof half);
        if (type == FR_TURBO4) {
            for (size_t i = 0; i < 16; i++) block[2 + i] = (uint8_t)(codes[i] | codes[i + 16] << 4);
            continue;
        }
        for (size_t i = 0; i < 8; i++)
            block[2 + i] = (uint8_t)((codes[i] & 3) | (codes[i + 8] & 3) << 2 | (codes[i + 16] & 3) << 4 |
                                     (codes[i + 24] & 3) << 6);
        for (size_t i = 0; i < 4; i++) {
            const int32_t *of = codes + 8 * i;
            unsigned byte = 0;
            for (size_t j = 0; j < 8; j++) byte |= (unsigned)(of[j] >> 2) << j;
            block[10 + i] = (uint8_t)byte;
        }
    }
}
