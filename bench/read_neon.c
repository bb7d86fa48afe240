/* Reads memory by pairs of loads of 16 bytes (read.h). */
#include <arm_neon.h>

#include "bench/read.h"

enum { SUMS = 8 };

uint64_t fr_bench_read_neon(const uint8_t *bytes, size_t size, size_t passes) {
    uint64x2_t sum[SUMS];
    uint64_t words[2];
#pragma GCC unroll 8
    for (int s = 0; s < SUMS; s++) sum[s] = vdupq_n_u64(0);
    for (; passes > 0; passes--) {
        for (const uint8_t *at = bytes, *end = bytes + size; at < end; at += SUMS * 16) {
#pragma GCC unroll 8
            for (int s = 0; s < SUMS; s++) sum[s] = veorq_u64(sum[s], vld1q_u64((const uint64_t *)(at + 16 * s)));
        }
        fr_bench_read_again();
    }
#pragma GCC unroll 8
    for (int s = 1; s < SUMS; s++) sum[0] = veorq_u64(sum[0], sum[s]);
    vst1q_u64(words, sum[0]);
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) all ^= words[i];
    return all;
}
