/* Decodes the K types, whose blocks of 256 values consist of runs of 32 or 16 values. Each run has a scale of few bits,
 * which is multiplied by the block's float16 d: value = (d * scale) * code. In some types each run also has a minimum,
 * which is multiplied by the block's float16 dmin: value = (d * scale) * code - dmin * minimum.
 *
 * In: a block's bytes. Out: 256 values. */
#include "quant/decode.h"

enum { COLS = 256, RUN = 32, RUNS = COLS / RUN, HALF = RUN / 2 };

/* Layout: 16 bytes, each with the scale (low 4 bits) and minimum (high 4 bits) of 16 columns; 64 bytes of 2-bit codes;
 * d, dmin. Each half of the block, 128 columns, has 32 bytes of codes. Bits 2j and 2j + 1 of byte i are the code of the
 * half's column 32j + i. */
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

/* Returns scale h of 16, minus 32. Its low four bits are in byte h % 8: in the low half of the byte if h < 8, otherwise
 * in the high half. Its high two bits are in byte 8 + h % 4. */
static int q3_k_scale(const uint8_t *scales, size_t h) {
    unsigned low = scales[h % 8] >> h / 8 * 4 & 15, high = scales[8 + h % 4] >> h / 4 * 2 & 3;
    return (int)(low | high << 4) - 32;
}

/* Layout: 32 bytes, in which bit j of byte i is the third bit of column 32j + i; 64 bytes with the lower two bits, as
 * in Q2_K; 12 bytes of scales; d. A value's code is its three bits minus 4. */
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

/* Reads the scale and minimum of a run from 12 bytes. For runs 0 to 3, the scales are the low 6 bits of bytes 0..3, and
 * the minima are the low 6 bits of bytes 4..7. For runs 4 to 7, bytes 8..11 have the low 4 bits: those of a scale in
 * the low half of the byte, those of a minimum in the high half. The high 2 bits of these scales are the two highest
 * bits of bytes 0..3, and those of the minima are the two highest bits of bytes 4..7. */
static void scale_and_minimum(const uint8_t *bytes, size_t run, unsigned *scale, unsigned *minimum) {
    if (run < 4) {
        *scale = bytes[run] & 63;
        *minimum = bytes[run + 4] & 63;
    } else {
        *scale = (bytes[run + 4] & 15) | (bytes[run - 4] >> 6) << 4;
        *minimum = bytes[run + 4] >> 4 | (bytes[run] >> 6) << 4;
    }
}

/* Layout: d, dmin, scales; then 32 bytes for each pair of runs. The low 4 bits of the bytes are the codes of the first
 * run, the high 4 bits those of the second. */
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

/* Layout: d, dmin, scales; 32 bytes, in which bit r of byte i is the fifth bit of column i of run r; then the lower
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

/* Layout: 64 bytes for each half of the block with the low 4 bits of its 128 values; 32 bytes for each half with the
 * high 2 bits of its values; 16 signed scales, one for 16 columns; d. A half of the block is four runs of 32 columns.
 * In its 64 bytes, the low 4 bits of a byte belong to runs 0 and 1, the high 4 bits to runs 2 and 3. In its 32 bytes,
 * bits 2j and 2j + 1 belong to run j. A value's code is its six bits minus 32. */
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
