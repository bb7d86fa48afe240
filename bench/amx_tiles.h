/* Configures AMX's eight tiles for the timed loops (peaks.h): each tile has 16 rows of 64 bytes.
 *
 * Six of the tiles hold sums. The other two hold the operands, whose values are all zero. */
#ifndef FR_BENCH_AMX_TILES_H
#define FR_BENCH_AMX_TILES_H

#include <immintrin.h>
#include <stdint.h>

enum { SUMS = 6 }; /* number of tiles that hold sums */

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
