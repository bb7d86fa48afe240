/* Emulates the tile instructions of kernels/tiles_amx.h in C, for tests on machines without AMX.
 *
 * tests/check.mk compiles the kernels of AMX a second time, with tests/emulated first in the include path, so that the
 * kernels include this file. These kernels are linked to the suites that have the word links=tiles.
 * tests/emulated/tiles.c implements the instructions. */
#ifndef FR_KERNELS_TILES_AMX_H
#define FR_KERNELS_TILES_AMX_H

#include "tests/emulated/tiles.h"

static inline void fr_tiles_configure(const fr_tile_shapes *shapes) {
    fr_emulated_ldtilecfg(shapes);
}

static inline void fr_tiles_release(void) {
    fr_emulated_tilerelease();
}

static inline void fr_tile_zero_sums(unsigned tile) {
    fr_emulated_tilezero(tile);
}

static inline void fr_tile_load_rows(unsigned tile, const int8_t *rows, size_t stride) {
    fr_emulated_tileloadd(4 + tile, rows, (ptrdiff_t)stride);
}

static inline void fr_tile_load_codes(unsigned tile, const uint8_t *codes) {
    fr_emulated_tileloadd(6 + tile, codes, 64);
}

static inline void fr_tile_multiply_signed(unsigned tile) {
    fr_emulated_tdpbssd(tile, 4 + tile, 6 + tile);
}

static inline void fr_tile_multiply_unsigned(unsigned tile) {
    fr_emulated_tdpbsud(tile, 4 + tile, 6 + tile);
}

static inline void fr_tile_store_sums(unsigned tile, int32_t *to) {
    fr_emulated_tilestored(tile, to, 64);
}

#endif
