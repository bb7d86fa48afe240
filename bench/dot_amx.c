/* Reaches AMX's peak for int8 (peaks.h). Each instruction multiplies a 16x64 tile by a 64x16 tile, which is 16384
 * multiply-adds. */
#include "bench/amx_tiles.h"
#include "bench/peaks.h"

double fr_bench_dot_amx(size_t rounds) {
    _tile_loadconfig(&shapes); /* this also sets the tiles to zero */
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
