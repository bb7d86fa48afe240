/* Decodes blocks with one float16 scale d, and for some types a float16 minimum m: value = d * code, or d * code + m.
 *
 * In: a block's bytes. Out: 32 values (Q1_0 and PQ2_0: 128; Q2_0: 64). 4-bit codes are laid out as in most GGUF types:
 * byte i has the code of column i in its low half and that of column i + 16 in its high half. */
#include "quant/decode.h"

enum { COLS = 32, HALF = COLS / 2 };

/* Layout: d, then a signed byte for each column. */
void fr_decode_q8_0(const uint8_t *block, float *y) {
    float d = load_scale(block);
    for (size_t i = 0; i < COLS; i++) y[i] = d * (float)(int8_t)block[2 + i];
}

/* Layout: d, then 16 bytes of codes. 8 is subtracted from each code. */
void fr_decode_q4_0(const uint8_t *block, float *y) {
    float d = load_scale(block);
    const uint8_t *codes = block + 2;
    for (size_t i = 0; i < HALF; i++) {
        y[i] = d * (float)((codes[i] & 15) - 8);
        y[i + HALF] = d * (float)((codes[i] >> 4) - 8);
    }
}

/* Layout: d, m, then 16 bytes of codes. */
void fr_decode_q4_1(const uint8_t *block, float *y) {
    float d = load_scale(block), m = load_scale(block + 2);
    const uint8_t *codes = block + 4;
    for (size_t i = 0; i < HALF; i++) {
        y[i] = d * (float)(codes[i] & 15) + m;
        y[i + HALF] = d * (float)(codes[i] >> 4) + m;
    }
}

/* Unpacks 5-bit codes. Bit i of the first 4 bytes is the fifth bit of column i. The next 16 bytes have the lower four
 * bits. */
static void unpack_5_bits(const uint8_t *packed, int32_t *codes) {
    uint32_t fifths = load_u32(packed);
    const uint8_t *low = packed + 4;
    for (size_t i = 0; i < HALF; i++) {
        codes[i] = (int32_t)((low[i] & 15) | (fifths >> i & 1) << 4);
        codes[i + HALF] = (int32_t)(low[i] >> 4 | (fifths >> (i + HALF) & 1) << 4);
    }
}

/* Layout: d, then 5-bit codes. 16 is subtracted from each code. */
void fr_decode_q5_0(const uint8_t *block, float *y) {
    float d = load_scale(block);
    int32_t codes[COLS];
    unpack_5_bits(block + 2, codes);
    for (size_t i = 0; i < COLS; i++) y[i] = d * (float)(codes[i] - 16);
}

/* Layout: d, m, then 5-bit codes. */
void fr_decode_q5_1(const uint8_t *block, float *y) {
    float d = load_scale(block), m = load_scale(block + 2);
    int32_t codes[COLS];
    unpack_5_bits(block + 4, codes);
    for (size_t i = 0; i < COLS; i++) y[i] = d * (float)codes[i] + m;
}

/* Layout: d, then one bit for each column, lowest bit first: a bit of 1 means d, and 0 means -d. */
void fr_decode_q1_0(const uint8_t *block, float *y) {
    float d = load_scale(block);
    for (size_t i = 0; i < 128; i++) y[i] = d * (float)((block[2 + i / 8] >> i % 8 & 1) * 2 - 1);
}

/* Layout: d, then a code of two bits for each column, lowest bits first. 1 is subtracted from each code. */
static void decode_pairs(const uint8_t *block, size_t cols, float *y) {
    float d = load_scale(block);
    for (size_t i = 0; i < cols; i++) y[i] = d * (float)((block[2 + i / 4] >> i % 4 * 2 & 3) - 1);
}

void fr_decode_q2_0(const uint8_t *block, float *y) {
    decode_pairs(block, 64, y);
}

void fr_decode_pq2_0(const uint8_t *block, float *y) {
    decode_pairs(block, 128, y);
}
