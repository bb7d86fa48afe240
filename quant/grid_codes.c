/* Converts points of a grid to one code per column, and back: see grid_codes.h. An octet is 8 neighbouring columns.
 * decode_grid.c has the layout of blocks. */
#include "quant/grid_codes.h"

#include "quant/decode.h"
#include "quant/iq_grids.h"

enum { OCTETS = 32, RUNS = 8 };

static void store_u16(uint8_t *bytes, unsigned value) {
    bytes[0] |= (uint8_t)value;
    bytes[1] |= (uint8_t)(value >> 8);
}

static void store_u32(uint8_t *bytes, uint32_t value) {
    store_u16(bytes, value & 0xffff);
    store_u16(bytes + 2, value >> 16);
}

/* Adds an eighth sign to seven signs, so that the number of minus signs is even. */
static unsigned even_signs(unsigned seven) {
    return seven | (unsigned)__builtin_parity(seven) << 7;
}

/* Returns the index of a point by binary search. Grids are sorted, and their sizes are powers of two. */
static unsigned index_of(const uint16_t *grid, size_t count, unsigned point) {
    size_t low = 0;
    for (size_t step = count / 2; step > 0; step /= 2)
        if (grid[low + step] <= point) low += step;
    return (unsigned)low;
}

/* Converts the points and signs of 8 columns to codes, one for each column. A coordinate of a point has `width`
 * bits. */
static void spread(uint8_t *codes, uint32_t points, unsigned width, unsigned signs) {
    unsigned mask = (1u << (width == 2 ? 2 : 3)) - 1;
    for (unsigned i = 0; i < 8; i++) codes[i] = (uint8_t)((points >> width * i & mask) | (signs >> i & 1) * (mask + 1));
}

static uint32_t gather(const uint8_t *codes, unsigned width, unsigned *signs) {
    unsigned mask = (1u << (width == 2 ? 2 : 3)) - 1;
    uint32_t points = 0;
    *signs = 0;
    for (unsigned i = 0; i < 8; i++) {
        points |= (uint32_t)(codes[i] & mask) << width * i;
        *signs |= (codes[i] > mask ? 1u : 0u) << i;
    }
    return points;
}

static void take_nibbles(const uint8_t *bytes, uint8_t *scales, size_t count) {
    for (size_t s = 0; s < count; s++) scales[s] = bytes[s / 2] >> s % 2 * 4 & 15;
}

static void put_nibbles(uint8_t *bytes, const uint8_t *scales, size_t count) {
    for (size_t s = 0; s < count; s++) bytes[s / 2] |= (uint8_t)((scales[s] & 15) << s % 2 * 4);
}

static uint32_t two_points(const uint16_t *grid, unsigned first, unsigned second) {
    return grid[first] | (uint32_t)grid[second] << 16;
}

static void take_signed(fr_dtype type, const uint8_t *block, uint8_t *codes, uint8_t *scales) {
    const uint8_t *body = block + 2;
    for (size_t octet = 0; octet < OCTETS; octet++, codes += 8) {
        size_t run = octet / 4, i = octet % 4;
        if (type == FR_IQ2_XXS) {
            uint32_t word = load_u32(body + 8 * run + 4);
            spread(codes, fr_grid_iq2_xxs[body[8 * run + i]], 2, even_signs(word >> 7 * i & 127));
            scales[run] = (uint8_t)(word >> 28);
        } else if (type == FR_IQ2_XS) {
            unsigned word = load_u16(body + 2 * octet);
            spread(codes, fr_grid_iq2_xs[word & 511], 2, even_signs(word >> 9));
        } else if (type == FR_IQ2_S) {
            unsigned high = block[66 + run] >> 2 * i & 3;
            spread(codes, fr_grid_iq2_s[body[octet] | high << 8], 2, block[34 + octet]);
        } else if (type == FR_IQ3_XXS) {
            uint32_t word = load_u32(block + 66 + 4 * run);
            spread(codes, two_points(fr_grid_iq3_xxs, body[2 * octet], body[2 * octet + 1]), 4,
                   even_signs(word >> 7 * i & 127));
            scales[run] = (uint8_t)(word >> 28);
        } else {
            unsigned high = (unsigned)block[66 + run] >> 2 * i, first = body[2 * octet], second = body[2 * octet + 1];
            spread(codes, two_points(fr_grid_iq3_s, first | (high & 1) << 8, second | (high >> 1 & 1) << 8), 4,
                   block[74 + octet]);
        }
    }
    if (type == FR_IQ2_XS) take_nibbles(block + 66, scales, 2 * RUNS);
    if (type == FR_IQ2_S) take_nibbles(block + 74, scales, 2 * RUNS);
    if (type == FR_IQ3_S) take_nibbles(block + 106, scales, RUNS);
}

static void put_signed(fr_dtype type, uint8_t *block, const uint8_t *codes, const uint8_t *scales) {
    uint8_t *body = block + 2;
    for (size_t octet = 0; octet < OCTETS; octet++, codes += 8) {
        size_t run = octet / 4, i = octet % 4;
        unsigned signs;
        uint32_t points = gather(codes, type < FR_IQ3_XXS ? 2 : 4, &signs);
        uint32_t seven = (uint32_t)(signs & 127) << 7 * i, scale = i == 0 ? (uint32_t)scales[run] << 28 : 0;
        if (type == FR_IQ2_XXS) {
            body[8 * run + i] |= (uint8_t)index_of(fr_grid_iq2_xxs, 256, points);
            store_u32(body + 8 * run + 4, seven | scale);
        } else if (type == FR_IQ2_XS) {
            store_u16(body + 2 * octet, index_of(fr_grid_iq2_xs, 512, points) | (signs & 127) << 9);
        } else if (type == FR_IQ2_S) {
            unsigned index = index_of(fr_grid_iq2_s, 1024, points);
            body[octet] |= (uint8_t)index;
            block[66 + run] |= (uint8_t)(index >> 8 << 2 * i);
            block[34 + octet] |= (uint8_t)signs;
        } else if (type == FR_IQ3_XXS) {
            body[2 * octet] |= (uint8_t)index_of(fr_grid_iq3_xxs, 256, points & 0xffff);
            body[2 * octet + 1] |= (uint8_t)index_of(fr_grid_iq3_xxs, 256, points >> 16);
            store_u32(block + 66 + 4 * run, seven | scale);
        } else {
            unsigned first = index_of(fr_grid_iq3_s, 512, points & 0xffff);
            unsigned second = index_of(fr_grid_iq3_s, 512, points >> 16);
            body[2 * octet] |= (uint8_t)first;
            body[2 * octet + 1] |= (uint8_t)second;
            block[66 + run] |= (uint8_t)((first >> 8 | second >> 8 << 1) << 2 * i);
            block[74 + octet] |= (uint8_t)signs;
        }
    }
    if (type == FR_IQ2_XS) put_nibbles(block + 66, scales, 2 * RUNS);
    if (type == FR_IQ2_S) put_nibbles(block + 74, scales, 2 * RUNS);
    if (type == FR_IQ3_S) put_nibbles(block + 106, scales, RUNS);
}

/* Reads the codes and scales of IQ1. In IQ1_M a delta belongs to 8 columns, in IQ1_S to 32 columns. */
static void take_deltas(fr_dtype type, const uint8_t *block, uint8_t *codes, uint8_t *scales) {
    for (size_t octet = 0; octet < OCTETS; octet++, codes += 8) {
        size_t run = octet / 4, i = octet % 4;
        unsigned word = load_u16(block + (type == FR_IQ1_S ? 34 + 2 * run : 48 + octet / 8 * 2));
        unsigned four = block[32 + octet / 2] >> octet % 2 * 4 & 15; /* used only for IQ1_M */
        unsigned high = type == FR_IQ1_S ? word >> 3 * i & 7 : four & 7;
        bool lower = type == FR_IQ1_S ? word >> 15 : four >> 3;
        unsigned low = block[type == FR_IQ1_S ? 2 + octet : octet];
        spread(codes, fr_grid_iq1[low | high << 8], 2, lower ? 255 : 0);
        if (type == FR_IQ1_S)
            scales[run] = (uint8_t)(word >> 12 & 7);
        else
            scales[octet / 2] = (uint8_t)(word >> octet / 2 % 4 * 3 & 7);
    }
}

static void put_deltas(fr_dtype type, uint8_t *block, const uint8_t *codes, const uint8_t *scales) {
    for (size_t octet = 0; octet < OCTETS; octet++, codes += 8) {
        size_t run = octet / 4, i = octet % 4;
        unsigned signs, index = index_of(fr_grid_iq1, 2048, gather(codes, 2, &signs)), lower = signs & 1;
        if (type == FR_IQ1_S) {
            block[2 + octet] |= (uint8_t)index;
            store_u16(block + 34 + 2 * run, index >> 8 << 3 * i | (unsigned)(scales[run] & 7) << 12 | lower << 15);
            continue;
        }
        block[octet] |= (uint8_t)index;
        block[32 + octet / 2] |= (uint8_t)((index >> 8 | lower << 3) << octet % 2 * 4);
        store_u16(block + 48 + octet / 8 * 2, (unsigned)(scales[octet / 2] & 7) << octet / 2 % 4 * 3);
    }
}

void fr_grid_take(fr_dtype type, const uint8_t *block, uint16_t *d, uint8_t *codes, uint8_t *scales) {
    *d = (uint16_t)load_u16(block);
    if (type == FR_IQ1_M) {
        *d = 0;
        for (size_t i = 0; i < 4; i++) *d |= (uint16_t)(load_u16(block + 48 + 2 * i) >> 12 << 4 * i);
    }
    if (type < FR_IQ1_S)
        take_signed(type, block, codes, scales);
    else
        take_deltas(type, block, codes, scales);
}

void fr_grid_put(fr_dtype type, uint8_t *block, uint16_t d, const uint8_t *codes, const uint8_t *scales) {
    if (type == FR_IQ1_M)
        for (size_t i = 0; i < 4; i++) store_u16(block + 48 + 2 * i, (d >> 4 * i & 15u) << 12);
    else
        store_u16(block, d);
    if (type < FR_IQ1_S)
        put_signed(type, block, codes, scales);
    else
        put_deltas(type, block, codes, scales);
}
