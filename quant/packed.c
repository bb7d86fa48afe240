/* Converts between GGUF's blocks and packed tiles: see packed.h.
 *
 * In: blocks of one output feature. Out: the same bits at their places in a tile, or back. Between file and tile, a
 * block is held as a `lane`. A lane is the part of the tile that belongs to one feature: the feature's scales, and one
 * 32-bit word from each line of the tile. The tables `shapes` (from block_types.h) and `scalings` describe each type's
 * tile. One function for each type moves a block between the file's form and the lane, in both directions. */
#include "quant/packed.h"

#include <stddef.h>
#include <string.h>

#include "quant/block_types.h"
#include "quant/grid_codes.h"

/* Functions that move bits in either direction are inlined, so that each direction becomes straight-line code. */
#define FR_INLINE static inline __attribute__((always_inline))

enum { RUN = 32, RUNS = 8, HALVES = 2 * FR_TILE_FEATURES, SCALE_ROWS = 8, LINE = 64 };

/* Names the ways in which a type stores the scales of a block. All scales are multiplied by d, and all minima by m. */
typedef enum scaling {
    PLAIN,      /* d alone */
    WITH_MIN,   /* d and m */
    K_SCALES,   /* 8 scales and minima of 6 bits, times d and m */
    Q6_SCALES,  /* 16 signed bytes */
    XS_SCALES,  /* 8 scales of 6 bits */
    Q2_SCALES,  /* 16 scales and minima of 4 bits, times d and m */
    Q3_SCALES,  /* 16 scales of 6 bits */
    OF_RUNS,    /* 8 scales of 4 bits */
    OF_HALVES,  /* 16 scales of 4 bits */
    E4M3_SCALES /* 2 scales of one byte each; such a block has no d */
} scaling;

static const scaling scalings[FR_KERNEL_TYPES] = {
    [FR_Q4_1] = WITH_MIN,   [FR_Q5_1] = WITH_MIN,    [FR_Q4_K] = K_SCALES,   [FR_Q5_K] = K_SCALES,
    [FR_Q6_K] = Q6_SCALES,  [FR_IQ4_XS] = XS_SCALES, [FR_Q2_K] = Q2_SCALES,  [FR_Q3_K] = Q3_SCALES,
    [FR_IQ2_XXS] = OF_RUNS, [FR_IQ2_XS] = OF_HALVES, [FR_IQ2_S] = OF_HALVES, [FR_IQ3_XXS] = OF_RUNS,
    [FR_IQ3_S] = OF_RUNS,   [FR_IQ1_S] = OF_RUNS,    [FR_IQ1_M] = OF_HALVES, [FR_NVFP4] = E4M3_SCALES,
};

static const struct shape {
    uint8_t bits;  /* bits of a code */
    uint8_t runs;  /* runs of a block */
    uint16_t head; /* bytes of a tile's block before its runs */
} shapes[FR_KERNEL_TYPES] = {
#define SHAPE(type, word, bits, runs, head, ...) [type] = {bits, runs, head},
    FR_BLOCK_TYPES(SHAPE)
#undef SHAPE
};

bool fr_packs(fr_dtype type) {
    return type >= FR_FLOAT_TYPES && type < FR_KERNEL_TYPES;
}

size_t fr_tile_block(fr_dtype type) {
    return (size_t)shapes[type].runs * RUN;
}

/* Returns the bytes of a block of a tile. */
FR_INLINE size_t tile_block_bytes(fr_dtype type) {
    return shapes[type].head + (size_t)shapes[type].runs * shapes[type].bits * LINE;
}

size_t fr_packed_row_bytes(fr_dtype type, size_t cols) {
    return cols / fr_tile_block(type) * (tile_block_bytes(type) / FR_TILE_FEATURES);
}

size_t fr_packed_bytes(fr_dtype type, size_t features, size_t cols) {
    return (features + FR_TILE_FEATURES - 1) / FR_TILE_FEATURES * FR_TILE_FEATURES * fr_packed_row_bytes(type, cols);
}

/* Holds one output feature's part of a tile's block. */
typedef struct lane {
    uint16_t d, m;
    uint8_t scales[2 * RUNS], mins[2 * RUNS];
    uint32_t words[RUNS][8]; /* the words of each run, in the order of the tile's lines */
} lane;

/* ------------------------------------------------------------------------------------------ a block in its file's form
 *
 * Each form is written once. TAKE copies bits from the file to the lane, PUT from the lane to the file. The
 * destination must be zeros before, because bits are or-ed into it. */

typedef enum way { TAKE, PUT } way;

static const uint32_t LOW_HALVES = 0x0f0f0f0f, HIGH_HALVES = 0xf0f0f0f0, ONES = 0x01010101, PAIRS = 0x03030303;

FR_INLINE uint32_t load32(const uint8_t *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* Sets bits in a word of the file. Bits that are already set stay set. */
FR_INLINE void join32(uint8_t *bytes, uint32_t bits) {
    uint32_t word = load32(bytes) | bits;
    memcpy(bytes, &word, sizeof word);
}

/* Moves `width` bits between a byte of the file, from bit `shift` on, and a scale, from bit `at` on. */
FR_INLINE void move(way direction, uint8_t *file, unsigned shift, uint8_t *scale, unsigned at, unsigned width) {
    unsigned mask = (1u << width) - 1;
    if (direction == TAKE)
        *scale |= (uint8_t)((*file >> shift & mask) << at);
    else
        *file |= (uint8_t)((*scale >> at & mask) << shift);
}

FR_INLINE void move16(way direction, uint8_t *file, uint16_t *value) {
    if (direction == TAKE)
        memcpy(value, file, sizeof *value);
    else
        memcpy(file, value, sizeof *value);
}

FR_INLINE void move32(way direction, uint8_t *file, uint32_t *word) {
    if (direction == TAKE)
        *word = load32(file);
    else
        join32(file, *word);
}

/* Moves the codes of a run whose 16 bytes are the same in the file and the tile: columns 0..15 are in the low halves of
 * the bytes, columns 16..31 in the high halves. */
FR_INLINE void move_codes(way direction, uint8_t *file, uint32_t *words) {
    for (size_t j = 0; j < 4; j++) move32(direction, file + 4 * j, words + j);
}

/* Moves the codes of a run that has 32 bytes, one for each column. A code is one half of its byte: the low half if
 * `half` is 0, the high half if it is 1. */
FR_INLINE void move_halves(way direction, uint8_t *file, size_t half, uint32_t *words) {
    for (size_t j = 0; j < 4; j++) {
        uint8_t *first = file + 4 * j, *second = file + RUN / 2 + 4 * j;
        unsigned shift = half ? 4 : 0;
        if (direction == TAKE) {
            words[j] = (load32(first) >> shift & LOW_HALVES) | (load32(second) << (4 - shift) & HIGH_HALVES);
            continue;
        }
        join32(first, (words[j] & LOW_HALVES) << shift);
        join32(second, (words[j] & HIGH_HALVES) >> (4 - shift));
    }
}

/* Moves `width` bits, from bit `shift` on, of each byte of `count` words of the file. In each byte of the lane's word,
 * the bits of the file's word g are stored from bit width * g on. */
FR_INLINE void move_bits(way direction, uint8_t *file, unsigned shift, unsigned width, size_t count, uint32_t *word) {
    uint32_t mask = width == 1 ? ONES : PAIRS;
    for (unsigned g = 0; g < count; g++)
        if (direction == TAKE)
            *word |= (load32(file + 4 * g) >> shift & mask) << width * g;
        else
            join32(file + 4 * g, (*word >> width * g & mask) << shift);
}

/* Moves the fifth bits of codes: bit 4g + i of the file's word is bit g of byte i of the lane's word. */
FR_INLINE void move_fifths(way direction, uint8_t *file, uint32_t *word) {
    uint32_t bits = direction == TAKE ? load32(file) : 0;
    for (unsigned g = 0; g < 8; g++)
        if (direction == TAKE)
            *word |= ((bits >> 4 * g & 15) * 0x00204081 & ONES) << g;
        else
            bits |= ((*word >> g & ONES) * 0x01020408 >> 24 & 15) << 4 * g;
    if (direction == PUT) join32(file, bits);
}

/* Transposes 2-bit codes: bits 2i and 2i + 1 of byte j of the file's word are bits 2j and 2j + 1 of byte i of the
 * lane's word. */
FR_INLINE void move_turned(way direction, uint8_t *file, uint32_t *word) {
    uint32_t from = direction == TAKE ? load32(file) : *word, to = 0;
    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 4; j++) to |= (from >> (8 * j + 2 * i) & 3) << (8 * i + 2 * j);
    if (direction == TAKE)
        *word = to;
    else
        join32(file, to);
}

/* Moves a block of a type with codes of 1 or 2 bits: Q1_0, Q2_0 or PQ2_0. */
FR_INLINE void few_bits(way direction, fr_dtype type, uint8_t *file, lane *block) {
    move16(direction, file, &block->d);
    for (size_t run = 0; run < shapes[type].runs; run++) {
        if (type == FR_Q1_0) move_fifths(direction, file + 2 + 4 * run, block->words[run]);
        for (size_t h = 0; h < 2 && type != FR_Q1_0; h++)
            move_turned(direction, file + 2 + 8 * run + 4 * h, block->words[run] + h);
    }
}

/* Moves half of an NVFP4 block of 64 columns: two scales and 32 codes. In the file, bit 7 of a scale is ignored, with
 * two exceptions: the byte 0x7f means 0, and 0xff means 480, the number that would follow the format's largest one. In
 * the tile, 0x7f means 480. 8 bytes hold the codes of 16 columns, those of the first 8 columns in the low halves. */
FR_INLINE void nvfp4_block(way direction, uint8_t *file, size_t part, lane *block) {
    for (size_t h = 0; h < 2; h++) {
        uint8_t *scale = file + 2 * part + h, *codes = file + 4 + 16 * part + 8 * h;
        if (direction == PUT)
            *scale = block->scales[h] == 0x7f ? 0xff : block->scales[h];
        else
            block->scales[h] = *scale == 0x7f ? 0 : *scale & 0x7f;
        for (size_t j = 0; j < 4; j++) {
            uint8_t *four = codes + 4 * (j % 2);
            unsigned shift = j / 2 * 4, own = (unsigned)h * 4;
            if (direction == TAKE)
                block->words[0][j] |= (load32(four) >> shift & LOW_HALVES) << own;
            else
                join32(four, (block->words[0][j] >> own & LOW_HALVES) << shift);
        }
    }
}

FR_INLINE void small_block(way direction, fr_dtype type, uint8_t *file, lane *block) {
    uint32_t *words = block->words[0];
    if (type == FR_MXFP4) {
        if (direction == TAKE)
            block->d = file[0];
        else
            file[0] = (uint8_t)block->d;
        move_codes(direction, file + 1, words);
        return;
    }
    move16(direction, file, &block->d);
    file += 2;
    if (type == FR_Q8_0) {
        for (size_t g = 0; g < 8; g++)
            if (direction == TAKE)
                words[g] = load32(file + 4 * g) ^ 0x80808080;
            else
                join32(file + 4 * g, words[g] ^ 0x80808080);
        return;
    }
    if (scalings[type] == WITH_MIN) {
        move16(direction, file, &block->m);
        file += 2;
    }
    if (shapes[type].bits == 5) {
        move_fifths(direction, file, words++);
        file += 4;
    }
    move_codes(direction, file, words);
}

/* Moves the 8 scales and 8 minima of Q4_K and Q5_K. The first four scales are the low 6 bits of four bytes, and the
 * first four minima are the low 6 bits of the next four. Of the last four scales and minima, the low 4 bits of a scale
 * and a minimum share a byte. Their high 2 bits are the highest bits of the bytes of the first four. */
FR_INLINE void k_scales(way direction, uint8_t *file, lane *block) {
    for (size_t s = 0; s < 4; s++) {
        move(direction, file + s, 0, block->scales + s, 0, 6);
        move(direction, file + 4 + s, 0, block->mins + s, 0, 6);
        move(direction, file + 8 + s, 0, block->scales + 4 + s, 0, 4);
        move(direction, file + s, 6, block->scales + 4 + s, 4, 2);
        move(direction, file + 8 + s, 4, block->mins + 4 + s, 0, 4);
        move(direction, file + 4 + s, 6, block->mins + 4 + s, 4, 2);
    }
}

/* Moves a block of Q4_K or Q5_K. In every 32 bytes of codes, the low halves are one run and the high halves the next
 * run. In the bytes of fifth bits, bit s of byte i belongs to column i of run s. */
FR_INLINE void k_block(way direction, fr_dtype type, uint8_t *file, lane *block) {
    bool fifths = type == FR_Q5_K;
    uint8_t *codes = file + (fifths ? 48 : 16);
    move16(direction, file, &block->d);
    move16(direction, file + 2, &block->m);
    k_scales(direction, file + 4, block);
    for (unsigned run = 0; run < RUNS; run++) {
        uint32_t *words = block->words[run];
        if (fifths) move_bits(direction, file + 16, run, 1, 8, words++);
        move_halves(direction, codes + run / 2 * RUN, run % 2, words);
    }
}

/* Moves the 2-bit codes of a run. A byte holds one code of each of four runs, so 32 bytes hold four runs. */
FR_INLINE void move_pairs(way direction, uint8_t *file, unsigned run, uint32_t *words) {
    for (size_t h = 0; h < 2; h++) move_bits(direction, file + run / 4 * RUN + h * 16, run % 4 * 2, 2, 4, words + h);
}

/* Moves a block of Q6_K. For each 128 columns, 64 bytes have the low 4 bits: runs 0 and 1 in the low halves of the
 * bytes, runs 2 and 3 in the high halves. 32 more bytes have the two high bits of each of the four runs. */
FR_INLINE void q6_block(way direction, uint8_t *file, lane *block) {
    uint8_t *scales = file + 192;
    for (unsigned run = 0; run < RUNS; run++) {
        uint32_t *words = block->words[run];
        move_halves(direction, file + run / 4 * 64 + run % 2 * RUN, run % 4 / 2, words);
        move_pairs(direction, file + 128, run, words + 4);
    }
    for (size_t s = 0; s < 16; s++) move(direction, scales + s, 0, block->scales + s, 0, 8);
    move16(direction, scales + 16, &block->d);
}

FR_INLINE void xs_block(way direction, uint8_t *file, lane *block) {
    move16(direction, file, &block->d);
    for (unsigned s = 0; s < RUNS; s++) {
        move(direction, file + 4 + s / 2, s % 2 * 4, block->scales + s, 0, 4);
        move(direction, file + 2 + s / 4, s % 4 * 2, block->scales + s, 4, 2);
        move_codes(direction, file + 8 + s * (RUN / 2), block->words[s]);
    }
}

FR_INLINE void q2_block(way direction, uint8_t *file, lane *block) {
    for (size_t h = 0; h < 2 * RUNS; h++) {
        move(direction, file + h, 0, block->scales + h, 0, 4);
        move(direction, file + h, 4, block->mins + h, 0, 4);
    }
    for (unsigned run = 0; run < RUNS; run++) move_pairs(direction, file + 16, run, block->words[run]);
    move16(direction, file + 80, &block->d);
    move16(direction, file + 82, &block->m);
}

/* Moves a block of Q3_K. The first 32 bytes hold the third bits of the codes: bit s of byte i belongs to column i of
 * run s. decode_k.c has the layout of scales. */
FR_INLINE void q3_block(way direction, uint8_t *file, lane *block) {
    uint8_t *scales = file + 96;
    for (unsigned run = 0; run < RUNS; run++) {
        move_bits(direction, file, run, 1, 8, block->words[run]);
        move_pairs(direction, file + 32, run, block->words[run] + 1);
    }
    for (unsigned h = 0; h < 2 * RUNS; h++) {
        move(direction, scales + h % 8, h / 8 * 4, block->scales + h, 0, 4);
        move(direction, scales + 8 + h % 4, h / 4 * 2, block->scales + h, 4, 2);
    }
    move16(direction, file + 108, &block->d);
}

/* Moves 2-bit codes. In the file's form here, they are the low two bits of 32 bytes, a byte for each column. */
FR_INLINE void pairs_of_codes(way direction, uint8_t *codes, uint32_t *words) {
    for (size_t h = 0; h < 2; h++) move_bits(direction, codes + h * 16, 0, 2, 4, words + h);
}

/* Moves a block of IQ1, IQ2 or IQ3. An array with one byte for each column is the intermediate form. */
FR_INLINE void grid_block(way direction, fr_dtype type, uint8_t *file, lane *block) {
    uint8_t codes[RUNS * RUN] = {0};
    if (direction == TAKE) fr_grid_take(type, file, &block->d, codes, block->scales);
    for (size_t run = 0; run < RUNS; run++) {
        uint8_t *of_run = codes + run * RUN;
        uint32_t *words = block->words[run];
        if (shapes[type].bits == 4) {
            move_halves(direction, of_run, 0, words);
            continue;
        }
        move_bits(direction, of_run, 2, 1, 8, words);
        pairs_of_codes(direction, of_run, words + 1);
    }
    if (direction == PUT) fr_grid_put(type, file, block->d, codes, block->scales);
}

/* Moves the base-3 digits of a byte; decode_ternary.c says how a byte holds digits. A byte with only four digits is
 * stored as if its fifth digit were 0. */
FR_INLINE void move_digits(way direction, uint8_t *byte, unsigned digits, uint8_t *codes, size_t apart) {
    static const uint8_t powers[] = {1, 3, 9, 27, 81};
    unsigned sum = 0;
    for (unsigned j = 0; j < digits; j++)
        if (direction == TAKE)
            codes[apart * j] = (uint8_t)((uint8_t)(*byte * powers[j]) * 3 >> 8);
        else
            sum += codes[apart * j] * (unsigned)powers[4 - j];
    if (direction == PUT) *byte = (uint8_t)((sum * 256 + 242) / 243);
}

/* Moves the digits of all bytes of a block. twice: 2 for TQ1_0, 1 for PTQ1_0, whose block is half as long. */
FR_INLINE void all_digits(way direction, uint8_t *file, uint8_t *codes, size_t twice) {
    size_t first = 16 * twice, second = 8 * twice, last = 2 * twice;
    for (size_t i = 0; i < first; i++) move_digits(direction, file + i, 5, codes + i, first);
    file += first, codes += 5 * first;
    for (size_t i = 0; i < second; i++) move_digits(direction, file + i, 5, codes + i, second);
    file += second, codes += 5 * second;
    for (size_t i = 0; i < last; i++) move_digits(direction, file + i, 4, codes + i, last);
}

/* Moves a block of TQ1_0 or PTQ1_0. An array with one byte for each column is the intermediate form. twice: 2 for
 * TQ1_0, 1 for PTQ1_0. */
FR_INLINE void digits_block(way direction, uint8_t *file, lane *block, size_t twice) {
    uint8_t codes[RUNS * RUN] = {0};
    if (direction == TAKE) all_digits(direction, file, codes, twice);
    for (size_t run = 0; run < 4 * twice; run++) pairs_of_codes(direction, codes + run * RUN, block->words[run]);
    if (direction == PUT) all_digits(direction, file, codes, twice);
    move16(direction, file + 26 * twice, &block->d);
}

FR_INLINE void tq2_block(way direction, uint8_t *file, lane *block) {
    for (unsigned run = 0; run < RUNS; run++) move_pairs(direction, file, run, block->words[run]);
    move16(direction, file + 64, &block->d);
}

/* Moves a block of any type. If one block of the file becomes several blocks of the tile, `part` is the index of the
 * tile's block among them. */
FR_INLINE void file_block(way direction, fr_dtype type, uint8_t *file, size_t part, lane *block) {
    switch (type) {
    case FR_Q1_0:
    case FR_Q2_0:
    case FR_PQ2_0: few_bits(direction, type, file, block); break;
    case FR_NVFP4: nvfp4_block(direction, file, part, block); break;
    case FR_TQ1_0: digits_block(direction, file, block, 2); break;
    case FR_PTQ1_0: digits_block(direction, file, block, 1); break;
    case FR_TQ2_0: tq2_block(direction, file, block); break;
    case FR_Q4_K:
    case FR_Q5_K: k_block(direction, type, file, block); break;
    case FR_Q6_K: q6_block(direction, file, block); break;
    case FR_IQ4_XS: xs_block(direction, file, block); break;
    case FR_Q2_K: q2_block(direction, file, block); break;
    case FR_Q3_K: q3_block(direction, file, block); break;
    case FR_IQ1_S:
    case FR_IQ1_M:
    case FR_IQ2_XXS:
    case FR_IQ2_XS:
    case FR_IQ2_S:
    case FR_IQ3_XXS:
    case FR_IQ3_S: grid_block(direction, type, file, block); break;
    default: small_block(direction, type, file, block);
    }
}

/* ---------------------------------------------------------------------------------------------- a block in its tile
 *
 * The functions below copy bits between a lane and its tile. The functions before them copy bits between a lane and the
 * file. */

/* Moves the two 6-bit numbers in row s of the tile's scales: the scale and minimum of a run, or the scales of the run's
 * two halves. */
FR_INLINE void six_bits(way direction, uint8_t *own, unsigned s, uint8_t *first, uint8_t *second) {
    uint8_t *low = own + s * FR_TILE_FEATURES, *high = own + (SCALE_ROWS + s / 2) * FR_TILE_FEATURES;
    move(direction, low, 0, first, 0, 4);
    move(direction, low, 4, second, 0, 4);
    move(direction, high, s % 2 * 4, first, 4, 2);
    move(direction, high, s % 2 * 4 + 2, second, 4, 2);
}

/* Moves the scales that follow d and m in the tile. Returns the address of the first byte after them. */
FR_INLINE uint8_t *tile_scales(way direction, scaling kind, uint8_t *rows, size_t feature, lane *block) {
    uint8_t *own = rows + feature;
    switch (kind) {
    case K_SCALES:
        for (unsigned s = 0; s < RUNS; s++) six_bits(direction, own, s, block->scales + s, block->mins + s);
        return rows + (SCALE_ROWS + 4) * FR_TILE_FEATURES;
    case Q3_SCALES:
        for (unsigned s = 0; s < RUNS; s++)
            six_bits(direction, own, s, block->scales + 2 * s, block->scales + 2 * s + 1);
        return rows + (SCALE_ROWS + 4) * FR_TILE_FEATURES;
    case Q2_SCALES:
        for (size_t h = 0; h < 2 * RUNS; h++) {
            move(direction, own + h * FR_TILE_FEATURES, 0, block->scales + h, 0, 4);
            move(direction, own + h * FR_TILE_FEATURES, 4, block->mins + h, 0, 4);
        }
        return rows + 2 * RUNS * FR_TILE_FEATURES;
    case E4M3_SCALES:
        for (size_t h = 0; h < 2; h++) move(direction, own + h * FR_TILE_FEATURES, 0, block->scales + h, 0, 8);
        return rows + 2 * FR_TILE_FEATURES;
    case Q6_SCALES:
        for (size_t h = 0; h < 16; h++) move(direction, own + h * FR_TILE_FEATURES, 0, block->scales + h, 0, 8);
        return rows + 16 * FR_TILE_FEATURES;
    case XS_SCALES:
        for (unsigned s = 0; s < RUNS; s++) {
            move(direction, own + s / 2 * FR_TILE_FEATURES, s % 2 * 4, block->scales + s, 0, 4);
            move(direction, own + (4 + s / 4) * FR_TILE_FEATURES, s % 4 * 2, block->scales + s, 4, 2);
        }
        return rows + 6 * FR_TILE_FEATURES;
    case OF_RUNS:
    case OF_HALVES: {
        unsigned count = kind == OF_RUNS ? RUNS : 2 * RUNS;
        for (unsigned s = 0; s < count; s++)
            move(direction, own + s / 2 * FR_TILE_FEATURES, s % 2 * 4, block->scales + s, 0, 4);
        return rows + count / 2 * FR_TILE_FEATURES;
    }
    default: return rows;
    }
}

FR_INLINE void tile_block(way direction, fr_dtype type, uint8_t *tile, size_t feature, lane *block) {
    const struct shape *shape = &shapes[type];
    if (type == FR_MXFP4) {
        if (direction == TAKE)
            block->d = tile[feature];
        else
            tile[feature] = (uint8_t)block->d;
        tile += FR_TILE_FEATURES;
    } else if (type != FR_NVFP4) {
        move16(direction, tile + 2 * feature, &block->d);
        tile += HALVES;
    }
    if (scalings[type] == WITH_MIN || scalings[type] == K_SCALES || scalings[type] == Q2_SCALES) {
        move16(direction, tile + 2 * feature, &block->m);
        tile += HALVES;
    }
    tile = tile_scales(direction, scalings[type], tile, feature, block);
    for (size_t run = 0; run < shape->runs; run++)
        for (size_t line = 0; line < shape->bits; line++, tile += LINE) {
            uint32_t *word = &block->words[run][line];
            if (direction == TAKE)
                *word = load32(tile + 4 * feature);
            else
                memcpy(tile + 4 * feature, word, sizeof *word);
        }
}

/* ------------------------------------------------------------------------------------------------------ whole tiles */

/* Clears the words of a lane that its type uses, and everything before them. gcc would turn one call for all words into
 * a string instruction, which takes longer than these few stores. */
FR_INLINE void clear(fr_dtype type, lane *block) {
    memset(block, 0, offsetof(lane, words));
    for (size_t run = 0; run < shapes[type].runs; run++)
        memset(block->words[run], 0, shapes[type].bits * sizeof block->words[run][0]);
}

/* Prefetches `bytes` bytes that will be read soon. The address need not be valid. */
FR_INLINE void prefetch(uintptr_t address, size_t bytes) {
    for (size_t at = 0; at < bytes; at += LINE) __builtin_prefetch((const void *)(address + at));
}

/* Returns the number of blocks of a tile that one block of the file becomes. */
FR_INLINE size_t parts_of(fr_dtype type) {
    return fr_dtype_block(type) / fr_tile_block(type);
}

FR_INLINE void pack_tile(fr_dtype type, uint8_t *tile, const uint8_t *rows, size_t row_bytes, size_t features,
                         size_t cols) {
    size_t file_bytes = fr_dtype_row_bytes(type, fr_dtype_block(type)), blocks = cols / fr_tile_block(type);
    size_t parts = parts_of(type);
    uintptr_t next = (uintptr_t)rows + features * row_bytes; /* the rows of the next tile to be packed */
    memset(tile, 0, blocks * tile_block_bytes(type));
    for (size_t b = 0; b < blocks; b++)
        for (size_t feature = 0; feature < features; feature++) {
            lane block;
            clear(type, &block);
            prefetch(next, file_bytes / parts);
            next += file_bytes / parts;
            uint8_t *file = (uint8_t *)(uintptr_t)rows + feature * row_bytes + b / parts * file_bytes;
            file_block(TAKE, type, file, b % parts, &block);
            tile_block(PUT, type, tile + b * tile_block_bytes(type), feature, &block);
        }
}

/* pack_tile is compiled separately for each type, because loading a model waits for it. A core of a Zen 5 then packs 16
 * GB/s of Q4_0 instead of 0.65, and 3.1 GB/s of Q4_K instead of 1.8. */
void fr_pack_tile(fr_dtype type, uint8_t *tile, const uint8_t *rows, size_t row_bytes, size_t features, size_t cols) {
#define PACK(id, word, ...) \
    case id: pack_tile(id, tile, rows, row_bytes, features, cols); break;
    switch (type) {
        FR_BLOCK_TYPES(PACK)
    default: break;
    }
}

static void take_lane(fr_dtype type, const uint8_t *tile, size_t b, size_t feature, lane *block) {
    clear(type, block);
    tile_block(TAKE, type, (uint8_t *)(uintptr_t)tile + b * tile_block_bytes(type), feature, block);
}

void fr_unpack_row(fr_dtype type, uint8_t *row, const uint8_t *tile, size_t feature, size_t cols) {
    size_t file_bytes = fr_dtype_row_bytes(type, fr_dtype_block(type)), blocks = cols / fr_tile_block(type);
    size_t parts = parts_of(type);
    memset(row, 0, blocks / parts * file_bytes);
    for (size_t b = 0; b < blocks; b++) {
        lane block;
        take_lane(type, tile, b, feature, &block);
        file_block(PUT, type, row + b / parts * file_bytes, b % parts, &block);
    }
}

/* Returns byte i of a word of a lane. */
static unsigned byte_of(const uint32_t *words, size_t line, size_t i) {
    return words[line] >> 8 * i & 0xff;
}

/* Returns the two bits of column c of a run. */
static unsigned pair_of(const uint32_t *words, unsigned c) {
    return byte_of(words, c / 16, c % 4) >> c % 16 / 4 * 2 & 3;
}

static unsigned code_of(unsigned bits, const uint32_t *words, unsigned c) {
    if (bits == 8) return byte_of(words, c / 4, c % 4);
    if (bits == 1) return byte_of(words, 0, c % 4) >> c / 4 & 1;
    if (bits == 2) return pair_of(words, c);
    if (bits == 3) return pair_of(words + 1, c) | (byte_of(words, 0, c % 4) >> c / 4 & 1) << 2;
    const uint32_t *codes = bits == 5 ? words + 1 : words;
    unsigned low = byte_of(codes, c % 16 / 4, c % 4) >> c / 16 * 4 & 15;
    if (bits == 5) return low | (byte_of(words, 0, c % 4) >> c / 4 & 1) << 4;
    if (bits == 6) return low | pair_of(words + 4, c) << 4;
    return low;
}

void fr_tile_parts(fr_dtype type, fr_block_parts *parts, const uint8_t *tile, size_t block, size_t feature) {
    lane own;
    take_lane(type, tile, block, feature, &own);
    *parts = (fr_block_parts){.d = own.d, .m = own.m};
    memcpy(parts->scales, own.scales, sizeof own.scales);
    memcpy(parts->mins, own.mins, sizeof own.mins);
    for (unsigned c = 0; c < fr_tile_block(type); c++)
        parts->codes[c] = (uint8_t)code_of(shapes[type].bits, own.words[c / RUN], c % RUN);
}
