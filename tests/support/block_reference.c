/* Implements block_reference.h: computes products of blocks column by column. This is slow, but easy to compare with
 * the description of a format. A run is 32 columns, as many as a block of activations has. */
#include "tests/support/block_reference.h"

#include <math.h>

#include "quant/iq_grids.h"

enum { RUN = 32 };

static float f16_at(const uint8_t *bytes) {
    return fr_f32_from_f16((uint16_t)(bytes[0] | bytes[1] << 8));
}

/* Returns bits `at` to `at + count - 1` of a byte. */
static int bits(uint8_t byte, unsigned at, unsigned count) {
    return byte >> at & ((1 << count) - 1);
}

/* Returns the four bits of column c from 16 bytes. The low halves of the bytes have the columns 0 to 15, and the high
 * halves have the columns 16 to 31. */
static int nibble(const uint8_t *bytes, unsigned c) {
    return bits(bytes[c % 16], c / 16 * 4, 4);
}

/* Returns the four bits of column c. Two neighbouring runs share 32 bytes. The first run is in the low halves of these
 * bytes, and the second run in the high halves. */
static int nibble_of_pair(const uint8_t *bytes, unsigned c) {
    return bits(bytes[c / 64 * 32 + c % 32], c / 32 % 2 * 4, 4);
}

static int q6_k_code(const uint8_t *block, unsigned c) {
    unsigned half = c / 128, run = c % 128 / 32, low = half * 64 + run % 2 * 32 + c % 32, high = half * 32 + c % 32;
    return bits(block[low], run / 2 * 4, 4) | bits(block[128 + high], run * 2, 2) << 4;
}

/* Returns the two bits of column c. Four runs share 32 bytes, and each byte has one column of each of the four runs. */
static int pair_at(const uint8_t *bytes, unsigned c) {
    return bits(bytes[c / 128 * 32 + c % 32], c % 128 / 32 * 2, 2);
}

static int u16_at(const uint8_t *bytes) {
    return bytes[0] | bytes[1] << 8;
}

/* Returns true if sign i of eight signs is minus. Seven signs are stored. The eighth is chosen such that the number of
 * minus signs is even. */
static bool even_minus(int seven, unsigned i) {
    return i < 7 ? seven >> i & 1 : __builtin_popcount((unsigned)seven & 127) & 1;
}

/* Returns the 7 sign bits of a group of eight columns. The four bytes from `bytes` on have 28 sign bits for four
 * groups; i is the number of the group. */
static int seven_at(const uint8_t *bytes, unsigned i) {
    return (int)(((uint32_t)u16_at(bytes) | (uint32_t)u16_at(bytes + 2) << 16) >> 7 * i & 127);
}

static int signed_value(int magnitude, bool minus) {
    return minus ? -magnitude : magnitude;
}

/* Returns the code of column c of an IQ2 block, an odd number. The column's value is this code times an eighth of the
 * scale. */
static int iq2_code(fr_dtype type, const uint8_t *block, unsigned c) {
    static const int values[] = {8, 25, 43};
    unsigned octet = c / 8, i = c % 8;
    if (type == FR_IQ2_XXS) {
        const uint8_t *run = block + 2 + c / 32 * 8;
        return signed_value(values[fr_grid_iq2_xxs[run[octet % 4]] >> 2 * i & 3],
                            even_minus(seven_at(run + 4, octet % 4), i));
    }
    if (type == FR_IQ2_XS) {
        int word = u16_at(block + 2 + 2 * octet);
        return signed_value(values[fr_grid_iq2_xs[word % 512] >> 2 * i & 3], even_minus(word >> 9, i));
    }
    int point = block[2 + octet] | bits(block[66 + octet / 4], octet % 4 * 2, 2) << 8;
    return signed_value(values[fr_grid_iq2_s[point] >> 2 * i & 3], bits(block[34 + octet], i, 1));
}

/* Returns the code of column c of an IQ3 block. The column's value is this code times the scale. For IQ3_XXS it is the
 * code times half the scale. */
static int iq3_code(fr_dtype type, const uint8_t *block, unsigned c) {
    static const int xxs[] = {2, 6, 10, 14, 18, 22, 26, 31};
    unsigned quad = c / 4, octet = c / 8, shift = c % 4 * 4;
    if (type == FR_IQ3_XXS)
        return signed_value(xxs[fr_grid_iq3_xxs[block[2 + quad]] >> shift & 7],
                            even_minus(seven_at(block + 66 + c / 32 * 4, octet % 4), c % 8));
    int point = block[2 + quad] | bits(block[66 + quad / 8], quad % 8, 1) << 8;
    return signed_value(2 * (fr_grid_iq3_s[point] >> shift & 7) + 1, bits(block[74 + octet], c % 8, 1));
}

/* Returns the factor of the block's scale for the run, or half run, of column c. The factor is 2 * n + 1, where n is a
 * stored number of 3 or 4 bits. */
static int iq_scale(fr_dtype type, const uint8_t *block, unsigned c) {
    switch (type) {
    case FR_IQ2_XXS: return 2 * bits(block[2 + c / 32 * 8 + 7], 4, 4) + 1;
    case FR_IQ3_XXS: return 2 * bits(block[66 + c / 32 * 4 + 3], 4, 4) + 1;
    case FR_IQ3_S: return 2 * bits(block[106 + c / 64], c / 32 % 2 * 4, 4) + 1;
    case FR_IQ1_S: return 2 * (u16_at(block + 34 + c / 32 * 2) >> 12 & 7) + 1;
    case FR_IQ1_M: return 2 * (u16_at(block + 48 + c / 64 * 2) >> c / 16 % 4 * 3 & 7) + 1;
    case FR_IQ2_XS: return 2 * bits(block[66 + c / 32], c / 16 % 2 * 4, 4) + 1;
    default: return 2 * bits(block[74 + c / 32], c / 16 % 2 * 4, 4) + 1;
    }
}

/* Returns the code of column c of an IQ1 block. The column's value is this code times an eighth of the scale. Eight
 * columns share one point of the grid and one delta. The point's index is stored in two parts, its low bits and its
 * high bits. Only the sign of the delta is stored. */
static int iq1_code(fr_dtype type, const uint8_t *block, unsigned c) {
    unsigned octet = c / 8;
    int point, lower;
    if (type == FR_IQ1_S) {
        int word = u16_at(block + 34 + c / 32 * 2);
        point = block[2 + octet] | (word >> 3 * (octet % 4) & 7) << 8;
        lower = word >> 15;
    } else {
        point = block[octet] | bits(block[32 + octet / 2], octet % 2 * 4, 3) << 8;
        lower = bits(block[32 + octet / 2], octet % 2 * 4 + 3, 1);
    }
    return 8 * ((fr_grid_iq1[point] >> c % 8 * 2 & 3) - 1) + (lower ? -1 : 1);
}

/* Returns the digit (0 to 2) of column c of TQ1_0 (256 columns) or PTQ1_0 (128 columns). A byte has the digits of
 * several columns, and the first of them is the most significant. */
static int tq1_code(const uint8_t *block, unsigned c, unsigned columns) {
    unsigned a = columns / 8, b = a / 2, d = b / 4; /* numbers of bytes of the block's three parts */
    unsigned byte = c < 5 * a ? c % a : c < 5 * (a + b) ? a + (c - 5 * a) % b : a + b + (c - 5 * (a + b)) % d;
    unsigned digit = c < 5 * a ? c / a : c < 5 * (a + b) ? (c - 5 * a) / b : (c - 5 * (a + b)) / d;
    unsigned fraction = block[byte];
    while (digit-- > 0) fraction = fraction * 3 % 256;
    return (int)(fraction * 3 / 256) - 1;
}

/* Returns twice the value of an E2M1 number, which has a sign, two bits of exponent and one bit of fraction. */
static int e2m1(int code) {
    int exponent = code >> 1 & 3, fraction = code & 1;
    return signed_value(exponent == 0 ? fraction : (2 + fraction) << (exponent - 1), code >> 3);
}

/* Returns half the value of an E4M3 number without a sign. 0x7f is its only NaN; for this the function returns 0. */
static float half_of_e4m3(uint8_t byte) {
    int exponent = bits(byte, 3, 4), fraction = bits(byte, 0, 3);
    if (byte == 0x7f) return 0;
    return exponent == 0 ? ldexpf((float)fraction, -10) : ldexpf((float)(8 + fraction), exponent - 11);
}

/* Returns the code of column c of a block, to which no scale has been applied. */
static int code_at(fr_dtype type, const uint8_t *block, unsigned c) {
    switch (type) {
    case FR_Q8_0: return (int8_t)block[2 + c];
    case FR_Q4_0: return nibble(block + 2, c) - 8;
    case FR_Q4_1: return nibble(block + 4, c);
    case FR_Q5_0: return (nibble(block + 6, c) | bits(block[2 + c / 8], c % 8, 1) << 4) - 16;
    case FR_Q5_1: return nibble(block + 8, c) | bits(block[4 + c / 8], c % 8, 1) << 4;
    case FR_IQ4_NL: return fr_code_values(type)[nibble(block + 2, c)];
    case FR_MXFP4: return fr_code_values(type)[nibble(block + 1, c)];
    case FR_NVFP4: return e2m1(bits(block[4 + c / 16 * 8 + c % 8], c % 16 / 8 * 4, 4));
    case FR_Q4_K: return nibble_of_pair(block + 16, c);
    case FR_Q5_K: return nibble_of_pair(block + 48, c) | bits(block[16 + c % 32], c / 32, 1) << 4;
    case FR_Q6_K: return q6_k_code(block, c) - 32;
    case FR_Q2_K: return pair_at(block + 16, c);
    case FR_Q3_K: return (pair_at(block + 32, c) | bits(block[c % 32], c / 32, 1) << 2) - 4;
    case FR_IQ2_XXS:
    case FR_IQ2_XS:
    case FR_IQ2_S: return iq2_code(type, block, c);
    case FR_IQ3_XXS:
    case FR_IQ3_S: return iq3_code(type, block, c);
    case FR_IQ1_S:
    case FR_IQ1_M: return iq1_code(type, block, c);
    case FR_TQ1_0: return tq1_code(block, c, 256);
    case FR_PTQ1_0: return tq1_code(block, c, 128);
    case FR_TQ2_0: return pair_at(block, c) - 1;
    case FR_Q2_0:
    case FR_PQ2_0: return bits(block[2 + c / 4], c % 4 * 2, 2) - 1;
    case FR_Q1_0: return 2 * bits(block[2 + c / 8], c % 8, 1) - 1;
    default: return fr_code_values(FR_IQ4_XS)[nibble(block + 8 + c / 32 * 16, c % 32)];
    }
}

/* Returns the sum of code * q over `count` columns of the block, from column `first` on. All these columns must be in
 * one run. */
static int sum_of(fr_dtype type, const uint8_t *block, unsigned first, unsigned count, const int8_t *q) {
    int sum = 0;
    for (unsigned c = first; c < first + count; c++) sum += code_at(type, block, c) * q[c % RUN];
    return sum;
}

/* k_scale returns the scale of a run of Q4_K or Q5_K. The function after it returns the run's minimum. Both read the 12
 * bytes after d and dmin. */
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

/* Returns the sum over a run in which the first half has the scale `first` and the second half has the scale
 * `second`. */
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
    case FR_IQ1_M: {
        uint8_t d[2] = {(uint8_t)(block[49] >> 4 | (block[51] & 0xf0)), (uint8_t)(block[53] >> 4 | (block[55] & 0xf0))};
        int first = iq_scale(type, block, run * RUN), second = iq_scale(type, block, run * RUN + 16);
        return fmaf(f16_at(d) / 8 * x->d, sum_of_halves(type, block, run, x, first, second), acc);
    }
    case FR_TQ1_0: return fmaf(f16_at(block + 52) * x->d, isum, acc);
    case FR_PTQ1_0: return fmaf(f16_at(block + 26) * x->d, isum, acc);
    case FR_TQ2_0: return fmaf(f16_at(block + 64) * x->d, isum, acc);
    case FR_IQ2_XS:
    case FR_IQ2_S: {
        int first = iq_scale(type, block, run * RUN), second = iq_scale(type, block, run * RUN + 16);
        return fmaf(f16_at(block) / 8 * x->d, sum_of_halves(type, block, run, x, first, second), acc);
    }
    case FR_IQ1_S:
    case FR_IQ2_XXS:
    case FR_IQ3_XXS:
    case FR_IQ3_S: {
        float unit = type == FR_IQ3_S ? 1.0f : type == FR_IQ3_XXS ? 0.5f : 0.125f;
        return fmaf(f16_at(block) * unit * (float)iq_scale(type, block, run * RUN) * x->d, isum, acc);
    }
    case FR_IQ4_XS: return fmaf(f16_at(block) * (float)iq4_xs_scale(block, run) * x->d, isum, acc);
    case FR_NVFP4:
        for (unsigned h = 2 * run; h < 2 * run + 2; h++) {
            float sum = (float)sum_of(type, block, 16 * h, 16, x->q);
            acc = fmaf(half_of_e4m3(block[h]) * x->d, sum, acc);
        }
        return acc;
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
