/* Reads memory by loads of 8 bytes (read.h). A cache line takes many of these small loads, so a core would not see far
 * enough ahead to keep memory busy. Therefore the loop also prefetches. */
#include "bench/read.h"

enum { SUMS = 8, AHEAD = 1024 };

uint64_t fr_bench_read_scalar(const uint8_t *bytes, size_t size, size_t passes) {
    uint64_t sum[SUMS] = {0}, all = 0;
    for (; passes > 0; passes--) {
        for (const uint64_t *at = (const uint64_t *)bytes, *end = at + size / sizeof *at; at < end; at += SUMS) {
            __builtin_prefetch(at + AHEAD / sizeof *at);
#pragma GCC unroll 8
            for (int s = 0; s < SUMS; s++) sum[s] ^= at[s];
        }
        fr_bench_read_again();
    }
    for (int s = 0; s < SUMS; s++) all ^= sum[s];
    return all;
}
