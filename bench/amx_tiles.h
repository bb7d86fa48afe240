/* Configures AMX's tiles for the loops that are timed: all eight have 16 rows of 64 bytes (peaks.h). */
#ifndef FR_BENCH_AMX_TILES_H
#define FR_BENCH_AMX_TILES_H

#include <immintrin.h>
#include <stdint.h>

enum { SUMS = 6 }; /* sums in six of the 8 tiles; the other two are the operands, which are zero */

typedef struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_shapes;

static const tile_shapes shapes = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

#endif
