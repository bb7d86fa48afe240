/* Fits a line to a block's values: x ~ scale * code + offset, with few possible codes.
 *
 * In: n values x (a multiple of 4); the weight of each value's error, or NULL if all weights are equal; a function that
 * returns the code nearest to a real number. Out: sums over the codes, from which the least-squares scale and offset
 * follow, and the squared error. Sums are taken in four SIMD lanes, in one fixed order. Everything is inlined, so that
 * the compiler sees constants: the function, n, and whether there are weights. */
#ifndef FR_QUANT_ENCODE_FIT_H
#define FR_QUANT_ENCODE_FIT_H

#include "quant/dtype.h"

#include <string.h>

#define FR_INLINE static inline __attribute__((always_inline))

typedef float lanes __attribute__((vector_size(16)));
typedef int32_t lane_bits __attribute__((vector_size(16)));

/* Describes a line x ~ scale * code + offset. */
typedef struct line {
    float scale, offset;
} line;

typedef struct fit {
    float error;                 /* the squared error of the line with each value's nearest code */
    float codes, squares, cross; /* sums of code, code^2 and code * x, each weighted like the error */
} fit;

/* Holds the sum of the weights (n if there are no weights), and the sum of weight * value. */
typedef struct mass {
    float weight, total;
} mass;

/* Returns the nearest code for each lane. For a NaN the code is arbitrary. */
typedef lanes snap_fn(lanes t);

FR_INLINE lanes splat(float value) {
    return (lanes){value, value, value, value};
}

FR_INLINE lanes load_lanes(const float *x) {
    lanes value;
    memcpy(&value, x, sizeof value);
    return value;
}

/* Returns 1 / scale, or 0 if the scale is 0, as in a block of zeros. */
FR_INLINE float inverse_of(float scale) {
    return scale != 0 ? 1 / scale : 0;
}

/* Returns a's value in the lanes that are chosen, and b's value in the other lanes. */
FR_INLINE lanes select_lanes(lane_bits chosen, lanes a, lanes b) {
    return (lanes)((chosen & (lane_bits)a) | (~chosen & (lane_bits)b));
}

/* Returns the nearest integer in [low, high], ties to even. Adding 1.5 * 2^23 rounds, because a sum of this size has no
 * bits left for a fraction. */
FR_INLINE lanes snap_integer(lanes t, float low, float high) {
    t = select_lanes(t > splat(low), t, splat(low));
    t = select_lanes(t < splat(high), t, splat(high));
    return (t + splat(0x1.8p23f)) - splat(0x1.8p23f);
}

FR_INLINE float sum_of(lanes v) {
    return (v[0] + v[2]) + (v[1] + v[3]);
}

/* Multiplies four values by their weights, if there are weights. */
FR_INLINE lanes weigh(lanes value, const float *weights, size_t i) {
    return weights ? value * load_lanes(weights + i) : value;
}

FR_INLINE fit fit_codes(const float *x, const float *weights, size_t n, line l, snap_fn *snap) {
    lanes scale = splat(l.scale), offset = splat(l.offset), inverse = splat(inverse_of(l.scale));
    lanes error = splat(0), codes = error, squares = error, cross = error;
    for (size_t i = 0; i < n; i += 4) {
        lanes value = load_lanes(x + i), code = snap((value - offset) * inverse);
        lanes miss = value - (scale * code + offset), weighed = weigh(code, weights, i);
        error += weigh(miss, weights, i) * miss;
        codes += weighed;
        squares += weighed * code;
        cross += weighed * value;
    }
    return (fit){sum_of(error), sum_of(codes), sum_of(squares), sum_of(cross)};
}

FR_INLINE mass mass_of(const float *x, const float *weights, size_t n) {
    mass m = {weights ? 0 : (float)n, 0};
    for (size_t i = 0; i < n; i++) {
        m.total += weights ? weights[i] * x[i] : x[i];
        if (weights) m.weight += weights[i];
    }
    return m;
}

FR_INLINE float mean_of(mass m) {
    return m.weight > 0 ? m.total / m.weight : 0;
}

/* Returns the error of encoding all values as 0. This is the best encoding if the values are too small for a float16
 * scale. */
FR_INLINE float error_of_zeros(const float *x, const float *weights, size_t n) {
    lanes sum = splat(0);
    for (size_t i = 0; i < n; i += 4) {
        lanes value = load_lanes(x + i);
        sum += weigh(value, weights, i) * value;
    }
    return sum_of(sum);
}

/* Holds a least-squares line for given codes. worth: the amount by which this line reduces the squared error, compared
 * with encoding all values as 0. */
typedef struct answer {
    line l;
    float worth;
} answer;

/* Returns the best line through the origin. */
FR_INLINE answer ray_of(fit f) {
    if (!(f.squares > 0)) return (answer){0};
    float scale = f.cross / f.squares;
    return (answer){{scale, 0}, scale * f.cross};
}

FR_INLINE answer line_of(fit f, mass m) {
    if (!(m.weight > 0)) return (answer){0};
    float spread = f.squares - f.codes * f.codes / m.weight, together = f.cross - f.codes * m.total / m.weight;
    float scale = spread > 0 ? together / spread : 0;
    return (answer){{scale, (m.total - scale * f.codes) / m.weight}, m.total * m.total / m.weight + scale * together};
}

/* Returns the best line with a positive scale and an offset of 0 or less. If the least-squares line is not such a
 * line, the best line through the origin is returned. */
FR_INLINE answer falling_line_of(fit f, mass m) {
    answer a = line_of(f, m);
    return a.l.scale > 0 && a.l.offset <= 0 ? a : ray_of(f);
}

/* Returns the nearest of the 16 values of IQ4_NL and IQ4_XS. The result starts as the first value. For each midpoint
 * of two neighbours that lies below t, the difference of these neighbours is added to the result. */
FR_INLINE lanes snap_iq4_nl(lanes t) {
    static const float values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    lanes value = splat(values[0]);
    for (int i = 1; i < 16; i++) {
        lane_bits above = t > splat((values[i - 1] + values[i]) / 2);
        value += (lanes)(above & (lane_bits)splat(values[i] - values[i - 1]));
    }
    return value;
}

/* Replaces each value of IQ4_NL by its code, which is its index in ascending order. Before the call, codes[i] is the
 * value plus `zero`, which makes the value unsigned. */
static inline void number_iq4_nl(uint8_t *codes, size_t n, int zero) {
    const int8_t *values = fr_code_values(FR_IQ4_NL);
    for (size_t i = 0; i < n; i++) {
        uint8_t code = 0;
        while (values[code] + zero < codes[i]) code++;
        codes[i] = code;
    }
}

/* Rounds to the nearest float16. A value beyond float16's range becomes an infinity. An infinite scale never has the
 * smallest error in a search. */
static inline float half_of(float value) {
    return fr_f32_from_f16(fr_f16_from_f32(value));
}

static inline void store_half(uint8_t *bytes, float value) {
    uint16_t bits = fr_f16_from_f32(value);
    bytes[0] = (uint8_t)bits;
    bytes[1] = (uint8_t)(bits >> 8);
}

/* Packs the low two bits of 256 codes into 64 bytes, 32 bytes for each half of 128 columns. Bits 2j and 2j + 1 of byte
 * i are the bits of the half's column 32j + i. */
static inline void pack_2_bits(uint8_t *bytes, const uint8_t *codes) {
    for (size_t i = 0; i < 64; i++) {
        const uint8_t *own = codes + i / 32 * 128 + i % 32;
        bytes[i] = (uint8_t)((own[0] & 3) | (own[32] & 3) << 2 | (own[64] & 3) << 4 | (own[96] & 3) << 6);
    }
}

#endif
