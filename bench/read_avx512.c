/* Reads memory by loads of 64 bytes (read.h). */
#include <immintrin.h>

#include "bench/read.h"

enum { SUMS = 8 };

uint64_t fr_bench_read_avx512(const uint8_t *bytes, size_t size, size_t passes) {
    __m512i sum[SUMS];
    uint64_t words[8];
#pragma GCC unroll 8
    for (int s = 0; s < SUMS; s++) sum[s] = _mm512_setzero_si512();
    for (; passes > 0; passes--) {
        for (const uint8_t *at = bytes, *end = bytes + size; at < end; at += SUMS * 64) {
#pragma GCC unroll 8
            for (int s = 0; s < SUMS; s++) sum[s] = _mm512_xor_si512(sum[s], _mm512_load_si512(at + 64 * s));
        }
        fr_bench_read_again();
    }
#pragma GCC unroll 8
    for (int s = 1; s < SUMS; s++) sum[0] = _mm512_xor_si512(sum[0], sum[s]);
    _mm512_storeu_si512(words, sum[0]);
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) all ^= words[i];
    return all;
}
