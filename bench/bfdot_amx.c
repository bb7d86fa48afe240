/* The BF16 peak of AMX: a 16x32 by a 32x16 tile, 8192 multiply-adds an instruction (peaks.h). */
#include <immintrin.h>
#include <stdint.h>

#include "bench/peaks.h"

enum { SUMS = 6 }; /* of 8 tiles; the other two are the operands, all zero */

typedef struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_shapes;

double fr_bench_bfdot_amx(size_t rounds) {
    static const tile_shapes shapes = {
        .palette = 1,
        .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
        .rows = {16, 16, 16, 16, 16, 16, 16, 16},
    };
    _tile_loadconfig(&shapes); /* clears the tiles */
    for (size_t r = 0; r < rounds; r++) {
        _tile_dpbf16ps(0, 6, 7);
        _tile_dpbf16ps(1, 6, 7);
        _tile_dpbf16ps(2, 6, 7);
        _tile_dpbf16ps(3, 6, 7);
        _tile_dpbf16ps(4, 6, 7);
        _tile_dpbf16ps(5, 6, 7);
    }
    _tile_release();
    return (double)rounds * SUMS * 8192;
}
