/* Decodes the K types, whose blocks of 256 values consist of runs of 32 or 16. Each run has a scale of few bits, which
 * the block's float16 d multiplies: value = (d * scale) * code. For some types it also has a minimum, which the
 * block's float16 dmin multiplies: value = (d * scale) * code - dmin * minimum.
 *
 * In: a block's bytes. Out: 256 values. */
#include "quant/decode.h"

enum { COLS = 256, RUN = 32, RUNS = COLS / RUN, HALF = RUN / 2 };

/* Layout: 16 bytes, each with the scale (low 4 bits) and minimum (high 4 bits) of 16 columns; 64 bytes of 2-bit codes;
 * d, dmin. Each half of the block, 128 columns, has 32 bytes of codes: bits 2j and 2j + 1 of byte i belong to its
 * column 32j + i. */
void fr_decode_q2_k(const uint8_t *block, float *y) {
    const uint8_t *scales = block, *codes = block + 16;
    float d = load_scale(block + 80), dmin = load_scale(block + 82);
    for (size_t h = 0; h < COLS / HALF; h++) {
        const uint8_t *bytes = codes + h / 8 * RUN + h % 2 * HALF;
        unsigned shift = h / 2 % 4 * 2;
        float scale = d * (float)(scales[h] & 15), minimum = dmin * (float)(scales[h] >> 4);
        for (size_t i = 0; i < HALF; i++) y[h * HALF + i] = scale * (float)(bytes[i] >> shift & 3) - minimum;
    }
}

/* Returns scale h of 16, minus 32. Its low four bits are one half of byte h % 8: the low half if h < 8, otherwise the
 * high half. Its high two bits are in byte 8 + h % 4. */
static int q3_k_scale(const uint8_t *scales, size_t h) {
    unsigned low = scales[h % 8] >> h / 8 * 4 & 15, high = scales[8 + h % 4] >> h / 4 * 2 & 3;
    return (int)(low | high << 4) - 32;
}

/* Layout: 32 bytes, where bit j of byte i is the third bit of column 32j + i; 64 bytes with the lower two bits, as in
 * Q2_K; 12 bytes of scales; d. A value's code is its three bits minus 4. */
void fr_decode_q3_k(const uint8_t *block, float *y) {
    float d = load_scale(block + 108);
    for (size_t h = 0; h < COLS / HALF; h++) {
        const uint8_t *thirds = block + h % 2 * HALF, *low = block + 32 + h / 8 * RUN + h % 2 * HALF;
        unsigned run = (unsigned)h / 2, shift = run % 4 * 2;
        float scale = d * (float)q3_k_scale(block + 96, h);
        for (size_t i = 0; i < HALF; i++) {
            int code = (low[i] >> shift & 3) | (thirds[i] >> run & 1) << 2;
            y[h * HALF + i] = scale * (float)(code - 4);
        }
    }
}

/* Reads the scale and minimum of a run from 12 bytes. For runs 0 to 3, the scales are the low 6 bits of bytes 0..3,
 * and the minima those of bytes 4..7. For runs 4 to 7, the low 4 bits are in bytes 8..11: a scale's in the low half, a
 * minimum's in the high half. Their high 2 bits are the two highest bits of bytes 0..3 (scales) and 4..7 (minima). */
static void scale_and_minimum(const uint8_t *bytes, size_t run, unsigned *scale, unsigned *minimum) {
    if (run < 4) {
        *scale = bytes[run] & 63;
        *minimum = bytes[run + 4] & 63;
    } else {
        *scale = (bytes[run + 4] & 15) | (bytes[run - 4] >> 6) << 4;
        *minimum = bytes[run + 4] >> 4 | (bytes[run] >> 6) << 4;
    }
}

/* Layout: d, dmin, scales; then 32 bytes for each pair of runs. The codes of the first run are in their low 4 bits,
 * those of the second in their high 4 bits. */
void fr_decode_q4_k(const uint8_t *block, float *y) {
    float d = load_scale(block), dmin = load_scale(block + 2);
    for (size_t run = 0; run < RUNS; run++) {
        unsigned scale, minimum, shift = run % 2 * 4;
        scale_and_minimum(block + 4, run, &scale, &minimum);
        const uint8_t *codes = block + 16 + run / 2 * RUN;
        float ds = d * (float)scale, dm = dmin * (float)minimum;
        for (size_t i = 0; i < RUN; i++) y[run * RUN + i] = ds * (float)(codes[i] >> shift & 15) - dm;
    }
}

/* Layout: d, dmin, scales; 32 bytes, where bit `run` of byte i is the fifth bit of column i of that run; the lower
 * four bits as in Q4_K. */
void fr_decode_q5_k(const uint8_t *block, float *y) {
    float d = load_scale(block), dmin = load_scale(block + 2);
    const uint8_t *fifths = block + 16;
    for (size_t run = 0; run < RUNS; run++) {
        unsigned scale, minimum, shift = run % 2 * 4;
        scale_and_minimum(block + 4, run, &scale, &minimum);
        const uint8_t *low = block + 48 + run / 2 * RUN;
        float ds = d * (float)scale, dm = dmin * (float)minimum;
        for (size_t i = 0; i < RUN; i++) {
            int code = (low[i] >> shift & 15) | (fifths[i] >> run & 1) << 4;
            y[run * RUN + i] = ds * (float)code - dm;
        }
    }
}

/* Layout: 64 bytes for each half of the block with the low 4 bits of its 128 values; 32 bytes for each half with their
 * high 2 bits; 16 signed scales, one for 16 columns; d. A half is four runs of 32 columns. The low halves of its 64
 * bytes belong to runs 0 and 1, the high halves to runs 2 and 3. Bits 2j and 2j + 1 of its 32 bytes belong to run j. A
 * value's code is its six bits minus 32. */
void fr_decode_q6_k(const uint8_t *block, float *y) {
    const int8_t *scales = (const int8_t *)block + 192;
    float d = load_scale(block + 208);
    for (size_t h = 0; h < COLS / HALF; h++) {
        size_t wide = h / 8, run = h / 2 % 4, at = h % 2 * HALF;
        const uint8_t *low = block + wide * 64 + run % 2 * RUN + at, *high = block + 128 + wide * RUN + at;
        unsigned low_shift = run / 2 * 4, high_shift = run * 2;
        float scale = d * (float)scales[h];
        for (size_t i = 0; i < HALF; i++) {
            int code = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
            y[h * HALF + i] = scale * (float)(code - 32);
        }
    }
}
