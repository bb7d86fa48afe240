/* Reaches AMX's peak for BF16 (peaks.h). Each instruction multiplies a 16x32 tile by a 32x16 tile, which is 8192
 * multiply-adds. */
#include "bench/amx_tiles.h"
#include "bench/peaks.h"

double fr_bench_bfdot_amx(size_t rounds) {
    _tile_loadconfig(&shapes); /* this also sets the tiles to zero */
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
