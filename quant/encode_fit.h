/* Fitting a line to numbers: x ~ scale * code + offset, where codes are few.
 *
 * In: n values (a multiple of 4), a rule that snaps a real number to the nearest code. Out: sums over the codes, from
 * which the least-squares line follows, and the squared error. Four lanes at a time in one fixed order; everything is
 * inlined, so that the rule and n are constants. */
#ifndef FR_QUANT_ENCODE_FIT_H
#define FR_QUANT_ENCODE_FIT_H

#include "quant/dtype.h"

#include <string.h>

#define FR_INLINE static inline __attribute__((always_inline))

typedef float lanes __attribute__((vector_size(16)));
typedef int32_t lane_bits __attribute__((vector_size(16)));

/* x ~ scale * code + offset */
typedef struct line {
    float scale, offset;
} line;

typedef struct fit {
    float error;                 /* squared, of the line's nearest codes */
    float codes, squares, cross; /* sums of code, code^2, code * x */
} fit;

/* The value of the code nearest to each lane; a NaN snaps to some code. */
typedef lanes snap_fn(lanes t);

FR_INLINE lanes splat(float value) {
    return (lanes){value, value, value, value};
}

FR_INLINE lanes load_lanes(const float *x) {
    lanes value;
    memcpy(&value, x, sizeof value);
    return value;
}

/* 1 / scale, and 0 for the scale of a block of zeros. */
FR_INLINE float inverse_of(float scale) {
    return scale != 0 ? 1 / scale : 0;
}

/* Where chosen ? a : b. */
FR_INLINE lanes select_lanes(lane_bits chosen, lanes a, lanes b) {
    return (lanes)((chosen & (lane_bits)a) | (~chosen & (lane_bits)b));
}

/* The nearest integer in [low, high], ties to even: sums with 1.5 * 2^23 have no room for a fraction. */
FR_INLINE lanes snap_integer(lanes t, float low, float high) {
    t = select_lanes(t > splat(low), t, splat(low));
    t = select_lanes(t < splat(high), t, splat(high));
    return (t + splat(0x1.8p23f)) - splat(0x1.8p23f);
}

FR_INLINE float sum_of(lanes v) {
    return (v[0] + v[2]) + (v[1] + v[3]);
}

FR_INLINE fit fit_codes(const float *x, size_t n, line l, snap_fn *snap) {
    lanes scale = splat(l.scale), offset = splat(l.offset), inverse = splat(inverse_of(l.scale));
    lanes error = splat(0), codes = error, squares = error, cross = error;
    for (size_t i = 0; i < n; i += 4) {
        lanes value = load_lanes(x + i), code = snap((value - offset) * inverse);
        lanes miss = value - (scale * code + offset);
        error += miss * miss;
        codes += code;
        squares += code * code;
        cross += code * value;
    }
    return (fit){sum_of(error), sum_of(codes), sum_of(squares), sum_of(cross)};
}

/* The best line for the codes, and by how much it lessens the sum of squares. */
typedef struct answer {
    line l;
    float worth;
} answer;

/* Through the origin. */
FR_INLINE answer ray_of(fit f) {
    if (!(f.squares > 0)) return (answer){0};
    float scale = f.cross / f.squares;
    return (answer){{scale, 0}, scale * f.cross};
}

/* total is the sum of the n values. */
FR_INLINE answer line_of(fit f, size_t n, float total) {
    float count = (float)n, spread = f.squares - f.codes * f.codes / count,
          together = f.cross - f.codes * total / count;
    float scale = spread > 0 ? together / spread : 0;
    return (answer){{scale, (total - scale * f.codes) / count}, total * total / count + scale * together};
}

/* With a scale that is positive and an offset that is not, as far as the codes allow. */
FR_INLINE answer falling_line_of(fit f, size_t n, float total) {
    answer a = line_of(f, n, total);
    return a.l.scale > 0 && a.l.offset <= 0 ? a : ray_of(f);
}

/* The nearest float16; beyond its range an infinity, whose error no search takes for the least. */
static inline float half_of(float value) {
    return fr_f32_from_f16(fr_f16_from_f32(value));
}

static inline void store_half(uint8_t *bytes, float value) {
    uint16_t bits = fr_f16_from_f32(value);
    bytes[0] = (uint8_t)bits;
    bytes[1] = (uint8_t)(bits >> 8);
}

#endif
