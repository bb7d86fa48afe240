/* Declares AMX's instructions as functions. Each does what Intel's manual (volume 2) says, byte for byte.
 *
 * In and out: the tiles of the calling thread. If the processor would raise an exception, the program ends with a line
 * that names the instruction. */
#ifndef FR_TESTS_EMULATED_TILES_H
#define FR_TESTS_EMULATED_TILES_H

#include <stddef.h>
#include <stdint.h>

/* The 64 bytes that LDTILECFG reads. */
typedef struct fr_tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} fr_tile_shapes;

void fr_emulated_ldtilecfg(const fr_tile_shapes *shapes);
void fr_emulated_tilerelease(void);
void fr_emulated_tilezero(unsigned tile);
void fr_emulated_tileloadd(unsigned tile, const void *base, ptrdiff_t stride);
void fr_emulated_tilestored(unsigned tile, void *base, ptrdiff_t stride);

/* These functions add products to tile `sums`. The products are those of tile `a`, whose bytes are signed, and tile
 * `b`. The bytes of `b` are signed in fr_emulated_tdpbssd, and unsigned in fr_emulated_tdpbsud. */
void fr_emulated_tdpbssd(unsigned sums, unsigned a, unsigned b);
void fr_emulated_tdpbsud(unsigned sums, unsigned a, unsigned b);

#endif
