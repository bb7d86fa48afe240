/* Encodes blocks of 32 with one float16 scale, and for some types a float16 minimum (decode_simple.c and
 * decode_codebook.c have the layouts).
 *
 * In: 32 values, and the weights of their errors or NULL. Out: a block's bytes. */
#include <math.h>
#include <string.h>

#include "quant/encode.h"
#include "quant/encode_fit.h"

enum { COLS = 32, HALF = COLS / 2 };

/* The largest number of times that a line is improved from one starting point. Most lines no longer change after two
 * improvements. */
#define STEPS 3

FR_INLINE lanes snap_q8_0(lanes t) {
    return snap_integer(t, -127, 127);
}

FR_INLINE lanes snap_q4_0(lanes t) {
    return snap_integer(t, -8, 7);
}

FR_INLINE lanes snap_q5_0(lanes t) {
    return snap_integer(t, -16, 15);
}

FR_INLINE lanes snap_q4_1(lanes t) {
    return snap_integer(t, 0, 15);
}

FR_INLINE lanes snap_q5_1(lanes t) {
    return snap_integer(t, 0, 31);
}

/* Returns the value with the largest magnitude; the first one if several are equal. */
static float extreme_of(const float *x) {
    float extreme = 0, magnitude = 0;
    for (size_t i = 0; i < COLS; i++) {
        float m = x[i] < 0 ? -x[i] : x[i];
        if (m > magnitude) {
            magnitude = m;
            extreme = x[i];
        }
    }
    return extreme;
}

/* Improves a line, which is a scale and an offset. A step rounds the scale and the offset to float16, gives each value
 * its nearest code, and fits a new line to these codes. Steps are repeated while the error falls, at most STEPS
 * times. */
FR_INLINE line descend(const float *x, const float *weights, line l, mass m, bool ray, snap_fn *snap) {
    line best = {0, ray ? 0 : half_of(mean_of(m))};
    float error = fit_codes(x, weights, COLS, best, snap).error;
    for (int step = 0; step < STEPS; step++) {
        l = (line){half_of(l.scale), half_of(l.offset)};
        fit f = fit_codes(x, weights, COLS, l, snap);
        if (!(f.error < error)) break;
        error = f.error;
        best = l;
        l = ray ? ray_of(f).l : line_of(f, m).l;
    }
    return best;
}

/* Searches for a scale without an offset. Each starting scale maps the value of the largest magnitude to a number
 * between `first` and `last`, or to the negative of that number. The starting scale that reduces the error most is then
 * improved. */
FR_INLINE line search_ray(const float *x, const float *weights, float first, float last, float step, snap_fn *snap) {
    float extreme = extreme_of(x);
    answer best = {0};
    for (float level = first; level <= last; level += step) {
        for (float side = -1; side <= 1; side += 2) {
            answer a = ray_of(fit_codes(x, weights, COLS, (line){side * extreme / level, 0}, snap));
            if (a.worth > best.worth) best = a;
        }
    }
    return descend(x, weights, best.l, (mass){0}, true, snap);
}

/* Searches for a scale and an offset; codes go from 0 to top. A starting scale spreads the range of the values over as
 * many codes as the type has, or over up to 2 codes more or fewer. The range is placed at the lower end of the codes,
 * in their middle or at their upper end. The starting line that reduces the error most is then improved. */
FR_INLINE line search_line(const float *x, const float *weights, float top, snap_fn *snap) {
    float low = x[0], high = x[0];
    mass m = mass_of(x, weights, COLS);
    for (size_t i = 0; i < COLS; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    answer best = {0};
    for (float level = top - 2; level <= top + 2; level += 0.5F) {
        float scale = (high - low) / level;
        for (float side = 0; side <= 1; side += 0.5F) {
            answer a = {{scale, low + (level - top) * scale * side}, 0};
            for (int step = 0; step < STEPS; step++) a = line_of(fit_codes(x, weights, COLS, a.l, snap), m);
            if (a.worth > best.worth) best = a;
        }
    }
    return descend(x, weights, best.l, m, false, snap);
}

/* Sets codes[i] to the nearest code of x[i], plus `zero`, which makes the code non-negative. */
FR_INLINE void take_codes(const float *x, line l, float zero, snap_fn *snap, uint8_t *codes) {
    for (size_t i = 0; i < COLS; i += 4) {
        lanes code = snap((load_lanes(x + i) - splat(l.offset)) * splat(inverse_of(l.scale)));
        for (size_t lane = 0; lane < 4; lane++) codes[i + lane] = (uint8_t)(int)(code[lane] + zero);
    }
}

/* Packs the code of column i into the low half of byte i, and the code of column i + 16 into its high half. */
static void pack_low_bits(uint8_t *bytes, const uint8_t *codes) {
    for (size_t i = 0; i < HALF; i++) bytes[i] = (uint8_t)((codes[i] & 15) | codes[i + HALF] << 4);
}

static void pack_5_bits(uint8_t *bytes, const uint8_t *codes) {
    uint32_t fifths = 0;
    for (size_t i = 0; i < COLS; i++) fifths |= (uint32_t)(codes[i] >> 4) << i;
    for (size_t i = 0; i < 4; i++) bytes[i] = (uint8_t)(fifths >> 8 * i);
    pack_low_bits(bytes + 4, codes);
}

/* Encodes a block of Q8_0. The weights are not used, because with eight bits every value is exact enough. */
void fr_encode_q8_0(const float *x, const float *weights, uint8_t *block) {
    (void)weights;
    line l = search_ray(x, NULL, 126, 128, 0.25F, snap_q8_0);
    store_half(block, l.scale);
    take_codes(x, l, 0, snap_q8_0, block + 2);
}

FR_INLINE void encode_ray(const float *x, const float *weights, float top, snap_fn *snap, uint8_t *block,
                          uint8_t *codes) {
    line l = search_ray(x, weights, top - 2, top + 1, 0.25F, snap);
    store_half(block, l.scale);
    take_codes(x, l, top, snap, codes);
}

void fr_encode_q4_0(const float *x, const float *weights, uint8_t *block) {
    uint8_t codes[COLS];
    if (weights)
        encode_ray(x, weights, 8, snap_q4_0, block, codes);
    else
        encode_ray(x, NULL, 8, snap_q4_0, block, codes);
    pack_low_bits(block + 2, codes);
}

void fr_encode_q5_0(const float *x, const float *weights, uint8_t *block) {
    uint8_t codes[COLS];
    if (weights)
        encode_ray(x, weights, 16, snap_q5_0, block, codes);
    else
        encode_ray(x, NULL, 16, snap_q5_0, block, codes);
    pack_5_bits(block + 2, codes);
}

FR_INLINE void encode_line(const float *x, const float *weights, float top, snap_fn *snap, uint8_t *block,
                           uint8_t *codes) {
    line l = search_line(x, weights, top, snap);
    store_half(block, l.scale);
    store_half(block + 2, l.offset);
    take_codes(x, l, 0, snap, codes);
}

void fr_encode_q4_1(const float *x, const float *weights, uint8_t *block) {
    uint8_t codes[COLS];
    if (weights)
        encode_line(x, weights, 15, snap_q4_1, block, codes);
    else
        encode_line(x, NULL, 15, snap_q4_1, block, codes);
    pack_low_bits(block + 4, codes);
}

void fr_encode_q5_1(const float *x, const float *weights, uint8_t *block) {
    uint8_t codes[COLS];
    if (weights)
        encode_line(x, weights, 31, snap_q5_1, block, codes);
    else
        encode_line(x, NULL, 31, snap_q5_1, block, codes);
    pack_5_bits(block + 4, codes);
}

FR_INLINE void encode_nonlinear(const float *x, const float *weights, uint8_t *block, uint8_t *codes) {
    line l = search_ray(x, weights, 80, 140, 5, snap_iq4_nl);
    store_half(block, l.scale);
    take_codes(x, l, 127, snap_iq4_nl, codes);
}

void fr_encode_iq4_nl(const float *x, const float *weights, uint8_t *block) {
    uint8_t codes[COLS];
    if (weights)
        encode_nonlinear(x, weights, block, codes);
    else
        encode_nonlinear(x, NULL, block, codes);
    number_iq4_nl(codes, COLS, 127);
    pack_low_bits(block + 2, codes);
}

/* Returns the MXFP4 code, without its sign, that is nearest to a magnitude. If two codes are equally near, it returns
 * the even one. */
static uint8_t e2m1_of(float magnitude) {
    static const float middles[] = {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5};
    uint8_t code = 0;
    while (code < 7 && (code % 2 ? magnitude >= middles[code] : magnitude > middles[code])) code++;
    return code;
}

/* Chooses the codes for a scale of 2^exponent. Returns the sum of the squared errors of all values, in units of the
 * squared scale. */
static float take_e2m1(const float *x, int exponent, uint8_t *codes) {
    static const float values[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    float error = 0;
    for (size_t i = 0; i < COLS; i++) {
        float t = ldexpf(x[i], -exponent), magnitude = fabsf(t);
        codes[i] = e2m1_of(magnitude);
        float apart = magnitude - values[codes[i]];
        error += apart * apart;
        if (t < 0) codes[i] |= 8;
    }
    return error;
}

/* Returns the exponent of the largest power of two that is not above |value|, but at least -127. */
static int exponent_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (int)(bits >> 23 & 255) - 127;
}

/* Tries two powers of two as the scale: one with which the largest value may be clipped, and the next larger one. The
 * scale with the smaller error over all values is kept. */
void fr_encode_mxfp4(const float *x, const float *weights, uint8_t *block) {
    (void)weights;
    uint8_t codes[2][COLS];
    int exponent = exponent_of(extreme_of(x)) - 2;
    if (exponent < -127) exponent = -127;
    float tight = take_e2m1(x, exponent, codes[0]), loose = 4 * take_e2m1(x, exponent + 1, codes[1]);
    bool better = loose < tight;
    block[0] = (uint8_t)(exponent + 127 + better);
    pack_low_bits(block + 1, codes[better]);
}
