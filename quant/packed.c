/* Between GGUF's blocks and packed tiles, by way of a block's parts: see packed.h.
 *
 * In: blocks of one out. Out: the same bits in their places of a tile, or back. For each type there is one description
 * of its tile (`shapes`) and one pair of functions for its place in the file. */
#include "quant/packed.h"

#include <string.h>

enum { RUN = 32, RUNS = 8, HALVES = 2 * FR_TILE_OUTS, SCALE_ROWS = 8 };

/* How the values of a block are scaled, beside d. */
typedef enum scaling {
    PLAIN,     /* d alone */
    WITH_MIN,  /* d and m */
    K_SCALES,  /* 8 scales and minima of 6 bits, times d and m */
    Q6_SCALES, /* 16 signed bytes */
    XS_SCALES  /* 8 scales of 6 bits */
} scaling;

static const struct shape {
    uint8_t bits; /* of a code */
    scaling scaling;
} shapes[FR_KERNEL_TYPES] = {
    [FR_Q8_0] = {8, PLAIN},    [FR_Q4_0] = {4, PLAIN},    [FR_Q4_1] = {4, WITH_MIN},  [FR_Q5_0] = {5, PLAIN},
    [FR_Q5_1] = {5, WITH_MIN}, [FR_IQ4_NL] = {4, PLAIN},  [FR_MXFP4] = {4, PLAIN},    [FR_Q4_K] = {4, K_SCALES},
    [FR_Q5_K] = {5, K_SCALES}, [FR_Q6_K] = {6, Q6_SCALES}, [FR_IQ4_XS] = {4, XS_SCALES},
};

bool fr_packs(fr_dtype type) {
    return type >= FR_FLOAT_TYPES && type < FR_KERNEL_TYPES;
}

size_t fr_packed_bytes(fr_dtype type, size_t outs, size_t cols) {
    return (outs + FR_TILE_OUTS - 1) / FR_TILE_OUTS * FR_TILE_OUTS * fr_dtype_row_bytes(type, cols);
}

static uint16_t load16(const uint8_t *bytes) {
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static void store16(uint8_t *bytes, uint16_t value) {
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
}

static uint8_t byte(unsigned value) {
    return (uint8_t)value;
}

/* ------------------------------------------------------------------------------------------ a block in its file's form
 *
 * Each form is written once, as a walk over its bits that either takes them from there or puts them there. */

typedef enum way { TAKE, PUT } way;

/* Moves `width` bits between a byte of the file, at `shift`, and a code, at `at`. To the file, bytes start as zeros. */
static inline void move(way direction, uint8_t *file, unsigned shift, uint8_t *code, unsigned at, unsigned width) {
    unsigned mask = (1u << width) - 1;
    if (direction == TAKE) *code |= byte((*file >> shift & mask) << at);
    else *file |= byte((*code >> at & mask) << shift);
}

static void move16(way direction, uint8_t *file, uint16_t *value) {
    if (direction == TAKE) *value = load16(file);
    else store16(file, *value);
}

/* Low halves of 16 bytes are columns 0..15 of a run, high halves 16..31. */
static void nibbles_of_run(way direction, uint8_t *file, uint8_t *codes) {
    for (size_t i = 0; i < RUN / 2; i++) {
        move(direction, file + i, 0, codes + i, 0, 4);
        move(direction, file + i, 4, codes + RUN / 2 + i, 0, 4);
    }
}

static void small_block(way direction, fr_dtype type, uint8_t *file, fr_block_parts *parts) {
    if (type == FR_MXFP4) {
        if (direction == TAKE) parts->d = file[0];
        else file[0] = byte(parts->d);
        nibbles_of_run(direction, file + 1, parts->codes);
        return;
    }
    move16(direction, file, &parts->d);
    file += 2;
    if (type == FR_Q8_0) {
        for (size_t i = 0; i < RUN; i++)
            if (direction == TAKE) parts->codes[i] = file[i] ^ 0x80;
            else file[i] = parts->codes[i] ^ 0x80;
        return;
    }
    if (shapes[type].scaling == WITH_MIN) {
        move16(direction, file, &parts->m);
        file += 2;
    }
    if (shapes[type].bits == 5) {
        for (unsigned i = 0; i < RUN; i++) move(direction, file + i / 8, i % 8, parts->codes + i, 4, 1);
        file += 4;
    }
    nibbles_of_run(direction, file, parts->codes);
}

/* Scales and minima of Q4_K and Q5_K: the first four of each in 6 bits; the last four's low halves share a byte, their
 * high bits stand above those of the first. */
static void k_scales(way direction, uint8_t *file, fr_block_parts *parts) {
    for (size_t s = 0; s < 4; s++) {
        move(direction, file + s, 0, parts->scales + s, 0, 6);
        move(direction, file + 4 + s, 0, parts->mins + s, 0, 6);
        move(direction, file + 8 + s, 0, parts->scales + 4 + s, 0, 4);
        move(direction, file + s, 6, parts->scales + 4 + s, 4, 2);
        move(direction, file + 8 + s, 4, parts->mins + 4 + s, 0, 4);
        move(direction, file + 4 + s, 6, parts->mins + 4 + s, 4, 2);
    }
}

/* Halves of 32 bytes are two neighbouring runs; bit s of byte i of the fifth bits belongs to run s. */
static void k_block(way direction, fr_dtype type, uint8_t *file, fr_block_parts *parts) {
    uint8_t *fifths = file + 16, *nibbles = type == FR_Q5_K ? file + 48 : file + 16;
    move16(direction, file, &parts->d);
    move16(direction, file + 2, &parts->m);
    k_scales(direction, file + 4, parts);
    for (size_t run = 0; run < RUNS; run++)
        for (size_t i = 0; i < RUN; i++) {
            uint8_t *code = parts->codes + run * RUN + i;
            move(direction, nibbles + run / 2 * RUN + i, run % 2 * 4, code, 0, 4);
            if (type == FR_Q5_K) move(direction, fifths + i, (unsigned)run, code, 4, 1);
        }
}

/* Each half of the block: 64 bytes of halves (runs 0, 1 low, then 2, 3 high), 32 bytes of two bits for each run. */
static void q6_block(way direction, uint8_t *file, fr_block_parts *parts) {
    uint8_t *low = file, *high = file + 128, *scales = file + 192;
    for (size_t run = 0; run < RUNS; run++)
        for (size_t i = 0; i < RUN; i++) {
            size_t half = run / 4;
            unsigned of_four = run % 4;
            uint8_t *code = parts->codes + run * RUN + i;
            move(direction, low + half * 64 + of_four % 2 * RUN + i, of_four / 2 * 4, code, 0, 4);
            move(direction, high + half * RUN + i, of_four * 2, code, 4, 2);
        }
    for (size_t s = 0; s < 16; s++) move(direction, scales + s, 0, parts->scales + s, 0, 8);
    move16(direction, scales + 16, &parts->d);
}

static void xs_block(way direction, uint8_t *file, fr_block_parts *parts) {
    move16(direction, file, &parts->d);
    for (unsigned s = 0; s < RUNS; s++) {
        move(direction, file + 4 + s / 2, s % 2 * 4, parts->scales + s, 0, 4);
        move(direction, file + 2 + s / 4, s % 4 * 2, parts->scales + s, 4, 2);
        nibbles_of_run(direction, file + 8 + s * (RUN / 2), parts->codes + s * RUN);
    }
}

static void file_block(way direction, fr_dtype type, uint8_t *file, fr_block_parts *parts) {
    switch (type) {
    case FR_Q4_K:
    case FR_Q5_K: k_block(direction, type, file, parts); break;
    case FR_Q6_K: q6_block(direction, file, parts); break;
    case FR_IQ4_XS: xs_block(direction, file, parts); break;
    default: small_block(direction, type, file, parts);
    }
}

/* ---------------------------------------------------------------------------------------------- a block in its tile */

/* Between a code and the tile's bytes as move() is between a code and the file's; a tile's bytes start as zeros too. */
static void tile_run(way direction, unsigned bits, uint8_t *run, size_t out, uint8_t *codes) {
    uint8_t *own = run + 4 * out; /* byte 0 of the out's lane; lines are 64 bytes */
    if (bits == 8) {
        for (size_t c = 0; c < RUN; c++) move(direction, own + c / 4 * 64 + c % 4, 0, codes + c, 0, 8);
        return;
    }
    uint8_t *nibbles = bits == 5 ? own + 64 : own, *highs = own + 256;
    for (unsigned c = 0; c < RUN; c++) {
        if (bits == 5) move(direction, own + c % 4, c / 4, codes + c, 4, 1);
        if (bits == 6) move(direction, highs + c / 16 * 64 + c % 4, c % 16 / 4 * 2, codes + c, 4, 2);
        move(direction, nibbles + c % 16 / 4 * 64 + c % 4, c / 16 * 4, codes + c, 0, 4);
    }
}

/* The rows of scales behind d and m; returns what comes after them. */
static uint8_t *tile_scales(way direction, scaling kind, uint8_t *rows, size_t out, fr_block_parts *parts) {
    uint8_t *own = rows + out;
    switch (kind) {
    case K_SCALES:
        for (unsigned s = 0; s < RUNS; s++) {
            uint8_t *high = own + (SCALE_ROWS + s / 2) * FR_TILE_OUTS;
            move(direction, own + s * FR_TILE_OUTS, 0, parts->scales + s, 0, 4);
            move(direction, own + s * FR_TILE_OUTS, 4, parts->mins + s, 0, 4);
            move(direction, high, s % 2 * 4, parts->scales + s, 4, 2);
            move(direction, high, s % 2 * 4 + 2, parts->mins + s, 4, 2);
        }
        return rows + (SCALE_ROWS + 4) * FR_TILE_OUTS;
    case Q6_SCALES:
        for (size_t h = 0; h < 16; h++) move(direction, own + h * FR_TILE_OUTS, 0, parts->scales + h, 0, 8);
        return rows + 16 * FR_TILE_OUTS;
    case XS_SCALES:
        for (unsigned s = 0; s < RUNS; s++) {
            move(direction, own + s / 2 * FR_TILE_OUTS, s % 2 * 4, parts->scales + s, 0, 4);
            move(direction, own + (4 + s / 4) * FR_TILE_OUTS, s % 4 * 2, parts->scales + s, 4, 2);
        }
        return rows + 6 * FR_TILE_OUTS;
    default: return rows;
    }
}

static void tile_block(way direction, fr_dtype type, uint8_t *block, size_t out, fr_block_parts *parts) {
    static const size_t run_bytes[] = {[4] = 256, [5] = 320, [6] = 384, [8] = 512};
    const struct shape *shape = &shapes[type];
    if (type == FR_MXFP4) {
        if (direction == TAKE) parts->d = block[out];
        else block[out] = byte(parts->d);
        block += FR_TILE_OUTS;
    } else {
        move16(direction, block + 2 * out, &parts->d);
        block += HALVES;
    }
    if (shape->scaling == WITH_MIN || shape->scaling == K_SCALES) {
        move16(direction, block + 2 * out, &parts->m);
        block += HALVES;
    }
    block = tile_scales(direction, shape->scaling, block, out, parts);
    for (size_t run = 0; run < fr_dtype_block(type) / RUN; run++)
        tile_run(direction, shape->bits, block + run * run_bytes[shape->bits], out, parts->codes + run * RUN);
}

/* ------------------------------------------------------------------------------------------------------ whole tiles */

void fr_pack_tile(fr_dtype type, uint8_t *tile, const uint8_t *rows, size_t row_bytes, size_t outs, size_t cols) {
    size_t block_bytes = fr_dtype_row_bytes(type, fr_dtype_block(type)), blocks = cols / fr_dtype_block(type);
    memset(tile, 0, FR_TILE_OUTS * fr_dtype_row_bytes(type, cols));
    for (size_t b = 0; b < blocks; b++)
        for (size_t out = 0; out < outs; out++) {
            uint8_t file[FR_MAX_BLOCK_BYTES];
            fr_block_parts parts = {0};
            memcpy(file, rows + out * row_bytes + b * block_bytes, block_bytes);
            file_block(TAKE, type, file, &parts);
            tile_block(PUT, type, tile + b * FR_TILE_OUTS * block_bytes, out, &parts);
        }
}

void fr_tile_parts(fr_dtype type, fr_block_parts *parts, const uint8_t *tile, size_t block, size_t out) {
    size_t block_bytes = fr_dtype_row_bytes(type, fr_dtype_block(type));
    memset(parts, 0, sizeof *parts);
    tile_block(TAKE, type, (uint8_t *)(uintptr_t)tile + block * FR_TILE_OUTS * block_bytes, out, parts);
}

void fr_unpack_row(fr_dtype type, uint8_t *row, const uint8_t *tile, size_t out, size_t cols) {
    size_t block_bytes = fr_dtype_row_bytes(type, fr_dtype_block(type)), blocks = cols / fr_dtype_block(type);
    memset(row, 0, blocks * block_bytes);
    for (size_t b = 0; b < blocks; b++) {
        fr_block_parts parts;
        fr_tile_parts(type, &parts, tile, b, out);
        file_block(PUT, type, row + b * block_bytes, &parts);
    }
}
