/* Decodes blocks whose 4-bit codes are indices into a table of 16 values: value = d * table[code].
 *
 * In: a block's bytes. Out: its values. The kernels of these types use the same tables (fr_code_values). */
#include "quant/decode.h"

enum { RUN = 32 };

/* The values of IQ4_NL and IQ4_XS. They are closer together near 0, where most weights are. */
static const int8_t nonlinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/* The 4-bit float E2M1 of the OCP Microscaling Formats specification 1.0, doubled so that all values are integers. */
static const int8_t doubled_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* Each of the tables iq2, iq3_xxs and iq3_s has the magnitudes that a grid's coordinates may have (decode_grid.c), and
 * then the same values negated. So the highest bit of a code is the sign. The values are in units of fr_code_unit. */
static const int8_t iq2[16] = {8, 25, 43, 0, -8, -25, -43};
static const int8_t iq3_xxs[16] = {2, 6, 10, 14, 18, 22, 26, 31, -2, -6, -10, -14, -18, -22, -26, -31};
/* IQ1's values in eighths. A value is a coordinate, -1, 0 or 1, plus a delta. The delta is -1/8 if bit 2 of the code is
 * set and 1/8 otherwise. */
static const int8_t iq1[16] = {-7, 1, 9, 0, -9, -1, 7};
static const int8_t iq3_s[16] = {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15};

const int8_t *fr_code_values(fr_dtype type) {
    switch (type) {
    case FR_IQ4_NL:
    case FR_IQ4_XS: return nonlinear;
    case FR_MXFP4:
    case FR_NVFP4: return doubled_e2m1;
    case FR_IQ2_XXS:
    case FR_IQ2_XS:
    case FR_IQ2_S: return iq2;
    case FR_IQ3_XXS: return iq3_xxs;
    case FR_IQ3_S: return iq3_s;
    case FR_IQ1_S:
    case FR_IQ1_M: return iq1;
    default: return NULL;
    }
}

float fr_code_unit(fr_dtype type) {
    switch (type) {
    case FR_IQ2_XXS:
    case FR_IQ2_XS:
    case FR_IQ2_S:
    case FR_IQ1_S:
    case FR_IQ1_M: return 0.125f;
    case FR_IQ3_XXS: return 0.5f;
    case FR_NVFP4: return 128.0f;
    default: return 1.0f;
    }
}

/* Decodes `count` bytes: byte i has column i in its low 4 bits and column count + i in its high 4 bits. */
static void decode_codes(const uint8_t *codes, size_t count, const int8_t *table, float d, float *y) {
    for (size_t i = 0; i < count; i++) {
        y[i] = d * (float)table[codes[i] & 15];
        y[count + i] = d * (float)table[codes[i] >> 4];
    }
}

/* Layout: d, then 16 bytes of codes. */
void fr_decode_iq4_nl(const uint8_t *block, float *y) {
    decode_codes(block + 2, RUN / 2, nonlinear, load_scale(block), y);
}

/* Layout: d; 2 bytes with the high two bits of 8 scales; 4 bytes with the low four bits of these scales; 16 bytes of
 * codes for each run of 32 columns. A scale is the stored 6-bit number minus 32. */
void fr_decode_iq4_xs(const uint8_t *block, float *y) {
    float d = load_scale(block);
    unsigned high = load_u16(block + 2);
    for (size_t run = 0; run < 8; run++) {
        unsigned low = block[4 + run / 2] >> run % 2 * 4 & 15, scale = low | (high >> 2 * run & 3) << 4;
        decode_codes(block + 8 + run * RUN / 2, RUN / 2, nonlinear, d * (float)((int)scale - 32), y + run * RUN);
    }
}

/* Returns 2^(e - 127) / 2. The half makes up for the table, whose values are doubled. The result is a denormal if e <
 * 2. */
static float half_of_e8m0(uint8_t e) {
    uint32_t bits = e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Layout: one byte of scale, then 16 bytes of codes. */
void fr_decode_mxfp4(const uint8_t *block, float *y) {
    decode_codes(block + 1, RUN / 2, doubled_e2m1, half_of_e8m0(block[0]), y);
}

/* Returns half the value of an unsigned E4M3 float (bias 7, bit 7 ignored). The byte 0x7F, which is NaN in this format,
 * gives 0. The byte 0xFF does not count as NaN: its low 7 bits are read as a number. */
static float half_of_ue4m3(uint8_t bits) {
    unsigned exponent = bits >> 3 & 15, fraction = bits & 7;
    if (bits == 0x7F) return 0.0f;
    return exponent == 0 ? (float)fraction * 0x1p-10f : (float)((8 + fraction) << exponent) * 0x1p-11f;
}

/* Layout: 4 scales of one byte each, then 8 bytes of codes for each run of 16 columns. */
void fr_decode_nvfp4(const uint8_t *block, float *y) {
    for (size_t run = 0; run < 4; run++)
        decode_codes(block + 4 + 8 * run, 8, doubled_e2m1, half_of_ue4m3(block[run]), y + 16 * run);
}
