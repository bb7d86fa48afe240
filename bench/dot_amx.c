/* The int8 peak of AMX: a 16x64 by a 64x16 tile, 16384 multiply-adds an instruction (peaks.h). */
#include <immintrin.h>
#include <stdint.h>

#include "bench/peaks.h"

enum { SUMS = 6 }; /* of 8 tiles; the other two are the operands, all zero */

typedef struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_shapes;

double fr_bench_dot_amx(size_t rounds) {
    static const tile_shapes shapes = {
        .palette = 1,
        .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
        .rows = {16, 16, 16, 16, 16, 16, 16, 16},
    };
    _tile_loadconfig(&shapes); /* clears the tiles */
    for (size_t r = 0; r < rounds; r++) {
        _tile_dpbssd(0, 6, 7);
        _tile_dpbssd(1, 6, 7);
        _tile_dpbssd(2, 6, 7);
        _tile_dpbssd(3, 6, 7);
        _tile_dpbssd(4, 6, 7);
        _tile_dpbssd(5, 6, 7);
    }
    _tile_release();
    return (double)rounds * SUMS * 16384;
}
