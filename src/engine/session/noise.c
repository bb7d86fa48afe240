/* Computes Philox words and numbers from them: see noise.h. */
#include "src/engine/session/noise.h"

#include "kernels/double_math.h"

void fr_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53 * c0, b = (uint64_t)0xCD9E8D57 * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

static void words_of(uint64_t seed, uint64_t position, fr_noise stream, uint32_t index, uint32_t words[4]) {
    const uint32_t counter[4] = {index, (uint32_t)stream, (uint32_t)position, (uint32_t)(position >> 32)},
                   key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    fr_philox(counter, key, words);
}

void fr_noise_words(uint64_t seed, uint64_t position, uint32_t block, uint32_t words[4]) {
    words_of(seed, position, FR_NOISE_GUMBEL, block, words);
}

double fr_noise_uniform(uint64_t seed, uint64_t position, fr_noise stream) {
    uint32_t words[4];
    words_of(seed, position, stream, 0, words);
    uint64_t bits = ((uint64_t)words[0] << 32 | words[1]) >> 12;
    return ((double)bits + 0.5) * 0x1p-52;
}

double fr_gumbel(uint32_t word) {
    return -fr_log_double(-fr_log_double(((double)word + 0.5) * 0x1p-32));
}

/* Gives an upper bound of the noise without a logarithm. Let u = (word + 0.5) / 2^32. If the word begins with k ones,
 * then 1 - u > 2^-(k + 1). Since -log u > 1 - u, the noise is below (k + 1) * log 2. */
double fr_gumbel_bound(uint32_t word) {
    if (word == UINT32_MAX) return FR_GUMBEL_MAX;
    return (__builtin_clz(~word) + 1) * 0.6931471806;
}
