/* See block_reference.h. Columns are looked up one by one: slow, but easy to compare with a format's description. */
#include "tests/block_reference.h"

#include <math.h>

enum { RUN = 32 };

static float f16_at(const uint8_t *bytes) {
    return fr_f32_from_f16((uint16_t)(bytes[0] | bytes[1] << 8));
}

/* Bits `at` to `at + count - 1` of a byte. */
static int bits(uint8_t byte, unsigned at, unsigned count) {
    return byte >> at & ((1 << count) - 1);
}

/* Four bits of 16 bytes: columns 0 to 15 in the low halves, 16 to 31 in the high ones. */
static int nibble(const uint8_t *bytes, unsigned c) {
    return bits(bytes[c % 16], c / 16 * 4, 4);
}

/* The same for pairs of runs, a byte for one column of each. */
static int nibble_of_pair(const uint8_t *bytes, unsigned c) {
    return bits(bytes[c / 64 * 32 + c % 32], c / 32 % 2 * 4, 4);
}

static int q6_k_code(const uint8_t *block, unsigned c) {
    unsigned half = c / 128, run = c % 128 / 32, low = half * 64 + run % 2 * 32 + c % 32, high = half * 32 + c % 32;
    return bits(block[low], run / 2 * 4, 4) | bits(block[128 + high], run * 2, 2) << 4;
}

/* Two bits of 64 bytes: a byte for one column of each of four runs. */
static int pair_at(const uint8_t *bytes, unsigned c) {
    return bits(bytes[c / 128 * 32 + c % 32], c % 128 / 32 * 2, 2);
}

/* What column c of a block stands for, before any scale. */
static int code_at(fr_dtype type, const uint8_t *block, unsigned c) {
    switch (type) {
    case FR_Q8_0: return (int8_t)block[2 + c];
    case FR_Q4_0: return nibble(block + 2, c) - 8;
    case FR_Q4_1: return nibble(block + 4, c);
    case FR_Q5_0: return (nibble(block + 6, c) | bits(block[2 + c / 8], c % 8, 1) << 4) - 16;
    case FR_Q5_1: return nibble(block + 8, c) | bits(block[4 + c / 8], c % 8, 1) << 4;
    case FR_IQ4_NL: return fr_code_values(type)[nibble(block + 2, c)];
    case FR_MXFP4: return fr_code_values(type)[nibble(block + 1, c)];
    case FR_Q4_K: return nibble_of_pair(block + 16, c);
    case FR_Q5_K: return nibble_of_pair(block + 48, c) | bits(block[16 + c % 32], c / 32, 1) << 4;
    case FR_Q6_K: return q6_k_code(block, c) - 32;
    case FR_Q2_K: return pair_at(block + 16, c);
    case FR_Q3_K: return (pair_at(block + 32, c) | bits(block[c % 32], c / 32, 1) << 2) - 4;
    default: return fr_code_values(FR_IQ4_XS)[nibble(block + 8 + c / 32 * 16, c % 32)];
    }
}

/* Sum of code * q over columns first to first + count - 1 of the block, all in one run. */
static int sum_of(fr_dtype type, const uint8_t *block, unsigned first, unsigned count, const int8_t *q) {
    int sum = 0;
    for (unsigned c = first; c < first + count; c++) sum += code_at(type, block, c) * q[c % RUN];
    return sum;
}

/* Scale of a run of Q4_K and Q5_K, from the 12 bytes behind d and dmin; its minimum. */
static int k_scale(const uint8_t *block, unsigned run) {
    return run < 4 ? bits(block[4 + run], 0, 6) : bits(block[8 + run], 0, 4) | bits(block[run], 6, 2) << 4;
}

static int k_minimum(const uint8_t *block, unsigned run) {
    return run < 4 ? bits(block[8 + run], 0, 6) : bits(block[8 + run], 4, 4) | bits(block[4 + run], 6, 2) << 4;
}

static int iq4_xs_scale(const uint8_t *block, unsigned run) {
    return (bits(block[4 + run / 2], run % 2 * 4, 4) | bits(block[2 + run / 4], run % 4 * 2, 2) << 4) - 32;
}

static int q3_k_scale(const uint8_t *block, unsigned h) {
    const uint8_t *low = block + 96, *high = block + 104;
    return (h < 8 ? bits(low[h], 0, 4) : bits(low[h - 8], 4, 4)) + 16 * bits(high[h % 4], h / 4 * 2, 2) - 32;
}

/* What the halves of a run sum up to, each times its scale. */
static float sum_of_halves(fr_dtype type, const uint8_t *block, unsigned run, const fr_qblock *x, int first,
                           int second) {
    return (float)(first * sum_of(type, block, run * RUN, 16, x->q) +
                   second * sum_of(type, block, run * RUN + 16, 16, x->q));
}

static float add_q2_k(const uint8_t *block, unsigned run, const fr_qblock *x, float acc) {
    const uint8_t *scales = block + 2 * run;
    int sums[2] = {0, 0};
    for (unsigned c = 0; c < RUN; c++) sums[c / 16] += x->q[c];
    float codes = sum_of_halves(FR_Q2_K, block, run, x, bits(scales[0], 0, 4), bits(scales[1], 0, 4));
    float minima = (float)(bits(scales[0], 4, 4) * sums[0] + bits(scales[1], 4, 4) * sums[1]);
    return fmaf(-(f16_at(block + 82) * x->d), minima, fmaf(f16_at(block + 80) * x->d, codes, acc));
}

static float add_run(fr_dtype type, const uint8_t *block, unsigned run, const fr_qblock *x, float acc) {
    float isum = (float)sum_of(type, block, run * RUN, RUN, x->q);
    switch (type) {
    case FR_Q4_1:
    case FR_Q5_1: return fmaf(f16_at(block + 2), x->dsum, fmaf(f16_at(block) * x->d, isum, acc));
    case FR_Q4_K:
    case FR_Q5_K: {
        float scale = f16_at(block) * (float)k_scale(block, run);
        float minimum = f16_at(block + 2) * (float)k_minimum(block, run);
        return fmaf(-minimum, x->dsum, fmaf(scale * x->d, isum, acc));
    }
    case FR_Q6_K: {
        const uint8_t *scales = block + 192 + 2 * run;
        float both = sum_of_halves(type, block, run, x, (int8_t)scales[0], (int8_t)scales[1]);
        return fmaf(f16_at(block + 208) * x->d, both, acc);
    }
    case FR_Q2_K: return add_q2_k(block, run, x, acc);
    case FR_Q3_K: {
        float both = sum_of_halves(type, block, run, x, q3_k_scale(block, 2 * run), q3_k_scale(block, 2 * run + 1));
        return fmaf(f16_at(block + 108) * x->d, both, acc);
    }
    case FR_IQ4_XS: return fmaf(f16_at(block) * (float)iq4_xs_scale(block, run) * x->d, isum, acc);
    case FR_MXFP4: return fmaf(ldexpf(1.0f, block[0] - 128) * x->d, isum, acc);
    default: return fmaf(f16_at(block) * x->d, isum, acc);
    }
}

void fr_block_reference(float *y, fr_dtype type, const uint8_t *row, const fr_qblock *x, size_t cols) {
    size_t block = fr_dtype_block(type), bytes = fr_dtype_row_bytes(type, block);
    float acc = 0.0f;
    for (size_t b = 0; b < cols / block; b++)
        for (unsigned run = 0; run < block / RUN; run++) acc = add_run(type, row + b * bytes, run, x++, acc);
    *y = acc;
}
