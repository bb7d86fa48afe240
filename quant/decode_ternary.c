/* Decodes blocks of 256 or 128 values that are -1, 0 or 1, times one float16 scale d.
 *
 * In: a block's bytes. Out: their values. */
#include "quant/decode.h"

/* Decodes `count` bytes of `digits` base-3 digits each: digit j of byte i is column count * j + i. A byte stores its
 * digits as a fraction in base 3: the byte is the fraction times 256, rounded up. So if the fraction is multiplied by
 * three, the integer part is the next digit. */
static float *decode_digits(const uint8_t *bytes, size_t count, size_t digits, float d, float *y) {
    uint8_t power = 1;
    for (size_t j = 0; j < digits; j++, power = (uint8_t)(power * 3))
        for (size_t i = 0; i < count; i++) {
            uint8_t fraction = (uint8_t)(bytes[i] * power);
            *y++ = d * (float)((fraction * 3 >> 8) - 1);
        }
    return y;
}

/* Layout: 32 and 16 bytes of 5 digits each, 4 bytes of 4 digits, d. */
void fr_decode_tq1_0(const uint8_t *block, float *y) {
    float d = load_scale(block + 52);
    y = decode_digits(block, 32, 5, d, y);
    y = decode_digits(block + 32, 16, 5, d, y);
    decode_digits(block + 48, 4, 4, d, y);
}

/* Layout: 16 and 8 bytes of 5 digits each, 2 bytes of 4 digits, d. */
void fr_decode_ptq1_0(const uint8_t *block, float *y) {
    float d = load_scale(block + 26);
    y = decode_digits(block, 16, 5, d, y);
    y = decode_digits(block + 16, 8, 5, d, y);
    decode_digits(block + 24, 2, 4, d, y);
}

/* Layout: two groups of 32 bytes, each for 128 columns, then d. In a group, bits 2j and 2j + 1 of byte i are the code
 * of column 32j + i. The value is d * (code - 1). This holds for code 3 too, which gives 2 d. */
void fr_decode_tq2_0(const uint8_t *block, float *y) {
    float d = load_scale(block + 64);
    for (size_t run = 0; run < 8; run++)
        for (size_t i = 0; i < 32; i++) {
            int code = block[run / 4 * 32 + i] >> run % 4 * 2 & 3;
            y[run * 32 + i] = d * (float)(code - 1);
        }
}
