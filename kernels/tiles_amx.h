/* Wraps the tile instructions of AMX that integer products use in functions (Intel's manual, volume 2: LDTILECFG,
 * TILEZERO, TILELOADD, TILESTORED, TDPBSSD, TDPBSUD).
 *
 * The registers have fixed roles, because an instruction names its registers as constants: tiles 0 and 1 hold sums, 4
 * and 5 hold rows of activations, 6 and 7 hold codes of weights. The sums in tile t are products of the rows in tile 4
 * + t and the codes in tile 6 + t. tests/emulated/kernels/tiles_amx.h has functions of the same names in plain C, with
 * which tests run the same kernels on any machine. */
#ifndef FR_KERNELS_TILES_AMX_H
#define FR_KERNELS_TILES_AMX_H

#include "kernels/compiler.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/* The configuration that LDTILECFG reads: the number of rows of each tile, and the bytes of a row. */
typedef struct fr_tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} fr_tile_shapes;

/* Configures the tiles of this thread. `shapes` must point to constant data: gcc does not know which of its bytes the
 * instruction reads. */
FR_INLINE void fr_tiles_configure(const fr_tile_shapes *shapes) {
    _tile_loadconfig(shapes);
}

/* Ends this thread's use of tiles. After that a context switch no longer saves them. */
FR_INLINE void fr_tiles_release(void) {
    _tile_release();
}

FR_INLINE void fr_tile_zero_sums(unsigned tile) {
    switch (tile) {
    case 0: _tile_zero(0); break;
    default: _tile_zero(1);
    }
}

/* Makes the compiler store all values in memory. gcc does not know that a tile is loaded from memory. Without this call
 * it could move a store after the load or omit the store. */
FR_INLINE void fr_tile_settle_memory(void) {
    __asm__ volatile("" ::: "memory");
}

/* Loads rows into the register whose rows are multiplied for the sums in `tile`: register 4 for tile 0, and 5 for tile
 * 1. The rows are `stride` bytes apart. */
FR_INLINE void fr_tile_load_rows(unsigned tile, const int8_t *rows, size_t stride) {
    fr_tile_settle_memory();
    switch (tile) {
    case 0: _tile_loadd(4, rows, stride); break;
    default: _tile_loadd(5, rows, stride);
    }
}

/* Loads codes into the register whose codes are multiplied for the sums in `tile`. The codes are rows of 64 bytes, one
 * after the other. */
FR_INLINE void fr_tile_load_codes(unsigned tile, const uint8_t *codes) {
    fr_tile_settle_memory();
    switch (tile) {
    case 0: _tile_loadd(6, codes, 64); break;
    default: _tile_loadd(7, codes, 64);
    }
}

/* Adds the products of signed rows and signed codes to the sums. */
FR_INLINE void fr_tile_multiply_signed(unsigned tile) {
    switch (tile) {
    case 0: _tile_dpbssd(0, 4, 6); break;
    default: _tile_dpbssd(1, 5, 7);
    }
}

/* Adds the products of signed rows and unsigned codes to the sums. */
FR_INLINE void fr_tile_multiply_unsigned(unsigned tile) {
    switch (tile) {
    case 0: _tile_dpbsud(0, 4, 6); break;
    default: _tile_dpbsud(1, 5, 7);
    }
}

/* Stores sums as rows of 64 bytes, one after the other. */
FR_INLINE void fr_tile_store_sums(unsigned tile, int32_t *to) {
    switch (tile) {
    case 0: _tile_stored(0, to, 64); break;
    default: _tile_stored(1, to, 64);
    }
}

#endif
