/* Decodes the IQ types of 1 to 3 bits. A code is the index of a point of a grid. The point has 8 or 4 coordinates. They
 * are the magnitudes of neighbouring columns, or in IQ1 their values. Signs and scales are stored separately.
 *
 * In: a block's bytes. Out: 256 values: scale * sign * coordinate, or scale * (coordinate + delta) for IQ1. An "octet"
 * is 8 neighbouring columns, which share a byte of signs, bit i for column i. */
#include "quant/decode.h"
#include "quant/iq_grids.h"

enum { OCTETS = 32, RUNS = 8 };

static const int8_t iq2_values[4] = {8, 25, 43};
static const int8_t iq3_xxs_values[8] = {4, 12, 20, 28, 36, 44, 52, 62};
static const int8_t iq3_s_values[8] = {1, 3, 5, 7, 9, 11, 13, 15};

/* Returns 4-bit number i of an array of bytes, whose low halves come first. The number is the scale of 16 or 32
 * columns. */
static float half_byte(const uint8_t *bytes, size_t i) {
    return (float)(bytes[i / 2] >> i % 2 * 4 & 15);
}

/* Returns the signs of octet i, where i is 0 to 3. The word stores 7 signs of each octet. The eighth sign is the one
 * that makes the number of minus signs even. */
static unsigned even_signs(uint32_t word, size_t i) {
    unsigned seven = word >> 7 * i & 127;
    return seven | (unsigned)__builtin_parity(seven) << 7;
}

/* Returns the magnitude with its sign. It multiplies instead of branching, because a branch on random signs cannot be
 * predicted. */
static float signed_value(int8_t magnitude, unsigned minus) {
    return (float)(magnitude * (1 - 2 * (int)(minus & 1)));
}

static void octet_of_iq2(float scale, unsigned point, unsigned signs, float *y) {
    for (size_t i = 0; i < 8; i++) y[i] = scale * signed_value(iq2_values[point >> 2 * i & 3], signs >> i);
}

/* Decodes an octet of IQ3: two points of 4 columns each. */
static void octet_of_iq3(float scale, const int8_t *values, unsigned first, unsigned second, unsigned signs, float *y) {
    uint32_t points = first | (uint32_t)second << 16;
    for (size_t i = 0; i < 8; i++) y[i] = scale * signed_value(values[points >> 4 * i & 7], signs >> i);
}

static void octet_of_iq1(float scale, unsigned point, bool lower, float *y) {
    float delta = lower ? -0.125f : 0.125f;
    for (size_t i = 0; i < 8; i++) y[i] = scale * ((float)((int)(point >> 2 * i & 3) - 1) + delta);
}

/* Layout: d; then for each run of 32 columns: 4 bytes of point indices, and a word with 7 sign bits for each of 4
 * octets and 4 bits of scale. */
void fr_decode_iq2_xxs(const uint8_t *block, float *y) {
    float d = load_scale(block);
    for (size_t run = 0; run < RUNS; run++) {
        const uint8_t *points = block + 2 + run * 8;
        uint32_t word = load_u32(points + 4);
        float scale = d * (0.5f + (float)(word >> 28)) * 0.25f;
        for (size_t i = 0; i < 4; i++, y += 8) octet_of_iq2(scale, fr_grid_iq2_xxs[points[i]], even_signs(word, i), y);
    }
}

/* Layout: d; for each octet 9 bits of point index and 7 bits of signs; 4 bits of scale for every two octets. */
void fr_decode_iq2_xs(const uint8_t *block, float *y) {
    float d = load_scale(block);
    for (size_t octet = 0; octet < OCTETS; octet++, y += 8) {
        unsigned word = load_u16(block + 2 + 2 * octet);
        float scale = d * (0.5f + half_byte(block + 66, octet / 2)) * 0.25f;
        octet_of_iq2(scale, fr_grid_iq2_xs[word & 511], even_signs(word >> 9, 0), y);
    }
}

/* Layout: d; 32 bytes with the low 8 bits of point indices; 32 bytes of signs; 8 bytes with the high 2 bits of
 * indices; scales as in IQ2_XS. */
void fr_decode_iq2_s(const uint8_t *block, float *y) {
    float d = load_scale(block);
    for (size_t octet = 0; octet < OCTETS; octet++, y += 8) {
        unsigned high = block[66 + octet / 4] >> octet % 4 * 2 & 3;
        float scale = d * (0.5f + half_byte(block + 74, octet / 2)) * 0.25f;
        octet_of_iq2(scale, fr_grid_iq2_s[block[2 + octet] | high << 8], block[34 + octet], y);
    }
}

/* Layout: d; 64 bytes of point indices; for each run a word with signs and scale, as in IQ2_XXS. */
void fr_decode_iq3_xxs(const uint8_t *block, float *y) {
    float d = load_scale(block);
    const uint8_t *points = block + 2;
    for (size_t octet = 0; octet < OCTETS; octet++, points += 2, y += 8) {
        uint32_t word = load_u32(block + 66 + octet / 4 * 4);
        float scale = d * (0.5f + (float)(word >> 28)) * 0.5f;
        octet_of_iq3(scale, iq3_xxs_values, fr_grid_iq3_xxs[points[0]], fr_grid_iq3_xxs[points[1]],
                     even_signs(word, octet % 4), y);
    }
}

/* Layout: d; 64 bytes with the low 8 bits of point indices; 8 bytes with their ninth bits; 32 bytes of signs; 4 bits
 * of scale for each run. */
void fr_decode_iq3_s(const uint8_t *block, float *y) {
    float d = load_scale(block);
    const uint8_t *low = block + 2;
    for (size_t octet = 0; octet < OCTETS; octet++, low += 2, y += 8) {
        unsigned high = (unsigned)block[66 + octet / 4] >> octet % 4 * 2;
        float scale = d * (1.0f + 2.0f * half_byte(block + 106, octet / 4));
        octet_of_iq3(scale, iq3_s_values, fr_grid_iq3_s[low[0] | (high & 1) << 8],
                     fr_grid_iq3_s[low[1] | (high >> 1 & 1) << 8], block[74 + octet], y);
    }
}

/* Layout: d; 32 bytes with the low 8 bits of point indices; then a word of 16 bits for each run. The word has the three
 * high bits of 4 indices, 3 bits of scale, and one bit for the sign of the run's delta. */
void fr_decode_iq1_s(const uint8_t *block, float *y) {
    float d = load_scale(block);
    for (size_t octet = 0; octet < OCTETS; octet++, y += 8) {
        unsigned word = load_u16(block + 34 + octet / 4 * 2), high = word >> octet % 4 * 3 & 7;
        float scale = d * (float)(2 * (word >> 12 & 7) + 1);
        octet_of_iq1(scale, fr_grid_iq1[block[2 + octet] | high << 8], word >> 15, y);
    }
}

/* Layout: 32 bytes with the low 8 bits of point indices; 16 bytes with the 3 high bits of each octet's index and the
 * sign of its delta; 4 words of 16 bits. The low 12 bits of a word are four scales of 3 bits, each for 16 columns. The
 * high 4 bits of a word are a quarter of d's bits; the first word has the lowest of them. */
void fr_decode_iq1_m(const uint8_t *block, float *y) {
    const uint8_t *words = block + 48;
    unsigned d_bits = 0;
    for (size_t i = 0; i < 4; i++) d_bits |= load_u16(words + 2 * i) >> 12 << 4 * i;
    float d = fr_f32_from_f16((uint16_t)d_bits);
    for (size_t octet = 0; octet < OCTETS; octet++, y += 8) {
        unsigned high = block[32 + octet / 2] >> octet % 2 * 4 & 15;
        unsigned scale = load_u16(words + octet / 8 * 2) >> octet / 2 % 4 * 3 & 7;
        octet_of_iq1(d * (float)(2 * scale + 1), fr_grid_iq1[block[octet] | (high & 7) << 8], high >> 3, y);
    }
}
