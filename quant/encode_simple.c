/* Blocks of 32 with one scale, and perhaps a minimum, both float16 (the layouts: decode_simple.c, decode_codebook.c).
 *
 * In: 32 values. Out: a block's bytes. */
#include <math.h>
#include <string.h>

#include "quant/encode.h"
#include "quant/encode_fit.h"

enum { COLS = 32, HALF = COLS / 2 };

/* Steps of descent from one starting point. Most settle after two. */
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

/* IQ4_NL's 16 values: the first, and what is added where t lies above the middle of two neighbours. */
FR_INLINE lanes snap_iq4_nl(lanes t) {
    static const float values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    lanes value = splat(values[0]);
    for (int i = 1; i < 16; i++) {
        lane_bits above = t > splat((values[i - 1] + values[i]) / 2);
        value += (lanes)(above & (lane_bits)splat(values[i] - values[i - 1]));
    }
    return value;
}

/* The value of the largest magnitude, the first of equals. */
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

/* From a line, rounded, to the best line for its codes, as long as the error falls. */
FR_INLINE line descend(const float *x, line l, float total, bool ray, snap_fn *snap) {
    line best = {0, ray ? 0 : half_of(total / COLS)};
    float error = fit_codes(x, COLS, best, snap).error;
    for (int step = 0; step < STEPS; step++) {
        l = (line){half_of(l.scale), half_of(l.offset)};
        fit f = fit_codes(x, COLS, l, snap);
        if (!(f.error < error)) break;
        error = f.error;
        best = l;
        l = ray ? ray_of(f).l : line_of(f, COLS, total).l;
    }
    return best;
}

/* Starting points: the extreme value lies at a code's value between first and last, on both sides of zero. From the
 * one whose codes are worth most, descent. */
FR_INLINE line search_ray(const float *x, float first, float last, float step, snap_fn *snap) {
    float extreme = extreme_of(x);
    answer best = {0};
    for (float level = first; level <= last; level += step) {
        for (float side = -1; side <= 1; side += 2) {
            answer a = ray_of(fit_codes(x, COLS, (line){side * extreme / level, 0}, snap));
            if (a.worth > best.worth) best = a;
        }
    }
    return descend(x, best.l, 0, true, snap);
}

/* Starting points: the values' range takes a little more or less than the codes' range, 0 to top, and lies at its
 * lower end, in its middle or at its upper end. */
FR_INLINE line search_line(const float *x, float top, snap_fn *snap) {
    float low = x[0], high = x[0], total = 0;
    for (size_t i = 0; i < COLS; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
        total += x[i];
    }
    answer best = {0};
    for (float level = top - 2; level <= top + 2; level += 0.5F) {
        float scale = (high - low) / level;
        for (float side = 0; side <= 1; side += 0.5F) {
            answer a = {{scale, low + (level - top) * scale * side}, 0};
            for (int step = 0; step < STEPS; step++) a = line_of(fit_codes(x, COLS, a.l, snap), COLS, total);
            if (a.worth > best.worth) best = a;
        }
    }
    return descend(x, best.l, total, false, snap);
}

/* codes[i] = the nearest code of x[i], from 0 up. */
FR_INLINE void take_codes(const float *x, line l, float zero, snap_fn *snap, uint8_t *codes) {
    for (size_t i = 0; i < COLS; i += 4) {
        lanes code = snap((load_lanes(x + i) - splat(l.offset)) * splat(inverse_of(l.scale)));
        for (size_t lane = 0; lane < 4; lane++) codes[i + lane] = (uint8_t)(int)(code[lane] + zero);
    }
}

/* Byte i: column i low, column i + 16 high. */
static void pack_low_bits(uint8_t *bytes, const uint8_t *codes) {
    for (size_t i = 0; i < HALF; i++) bytes[i] = (uint8_t)((codes[i] & 15) | codes[i + HALF] << 4);
}

static void pack_5_bits(uint8_t *bytes, const uint8_t *codes) {
    uint32_t fifths = 0;
    for (size_t i = 0; i < COLS; i++) fifths |= (uint32_t)(codes[i] >> 4) << i;
    for (size_t i = 0; i < 4; i++) bytes[i] = (uint8_t)(fifths >> 8 * i);
    pack_low_bits(bytes + 4, codes);
}

void fr_encode_q8_0(const float *x, uint8_t *block) {
    line l = search_ray(x, 126, 128, 0.25F, snap_q8_0);
    store_half(block, l.scale);
    take_codes(x, l, 0, snap_q8_0, block + 2);
}

void fr_encode_q4_0(const float *x, uint8_t *block) {
    line l = search_ray(x, 6, 9, 0.25F, snap_q4_0);
    uint8_t codes[COLS];
    store_half(block, l.scale);
    take_codes(x, l, 8, snap_q4_0, codes);
    pack_low_bits(block + 2, codes);
}

void fr_encode_q5_0(const float *x, uint8_t *block) {
    line l = search_ray(x, 14, 17, 0.25F, snap_q5_0);
    uint8_t codes[COLS];
    store_half(block, l.scale);
    take_codes(x, l, 16, snap_q5_0, codes);
    pack_5_bits(block + 2, codes);
}

void fr_encode_q4_1(const float *x, uint8_t *block) {
    line l = search_line(x, 15, snap_q4_1);
    uint8_t codes[COLS];
    store_half(block, l.scale);
    store_half(block + 2, l.offset);
    take_codes(x, l, 0, snap_q4_1, codes);
    pack_low_bits(block + 4, codes);
}

void fr_encode_q5_1(const float *x, uint8_t *block) {
    line l = search_line(x, 31, snap_q5_1);
    uint8_t codes[COLS];
    store_half(block, l.scale);
    store_half(block + 2, l.offset);
    take_codes(x, l, 0, snap_q5_1, codes);
    pack_5_bits(block + 4, codes);
}

/* The codes of IQ4_NL number its values in ascending order. */
void fr_encode_iq4_nl(const float *x, uint8_t *block) {
    line l = search_ray(x, 80, 140, 5, snap_iq4_nl);
    const int8_t *values = fr_code_values(FR_IQ4_NL);
    uint8_t codes[COLS];
    store_half(block, l.scale);
    take_codes(x, l, 127, snap_iq4_nl, codes);
    for (size_t i = 0; i < COLS; i++) {
        uint8_t code = 0;
        while (values[code] + 127 < codes[i]) code++;
        codes[i] = code;
    }
    pack_low_bits(block + 2, codes);
}

/* MXFP4's values without their sign, and its codes: the nearest, the even one of two that are as near. */
static uint8_t e2m1_of(float magnitude) {
    static const float middles[] = {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5};
    uint8_t code = 0;
    while (code < 7 && (code % 2 ? magnitude >= middles[code] : magnitude > middles[code])) code++;
    return code;
}

/* Codes for a scale of 2^exponent; gives their squared error, in units of it. */
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

/* The power of two at or below a magnitude; that of 2^-127 for what is smaller. */
static int exponent_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (int)(bits >> 23 & 255) - 127;
}

/* Of the two powers of two that the largest value fits, rounded down or not, the better one. */
void fr_encode_mxfp4(const float *x, uint8_t *block) {
    uint8_t codes[2][COLS];
    int exponent = exponent_of(extreme_of(x)) - 2;
    if (exponent < -127) exponent = -127;
    float tight = take_e2m1(x, exponent, codes[0]), loose = 4 * take_e2m1(x, exponent + 1, codes[1]);
    bool better = loose < tight;
    block[0] = (uint8_t)(exponent + 127 + better);
    pack_low_bits(block + 1, codes[better]);
}
