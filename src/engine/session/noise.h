/* Gives random numbers without a state: each number is a function of (seed, position, stream, index), so the order and
 * number of calls do not matter. Philox4x32-10: Salmon, Moraes, Dror, Shaw 2011, doi:10.1145/2063384.2063405.
 *
 * In: a seed, a position of the timeline, a stream. Out: words, uniform numbers, Gumbel noise. */
#ifndef FR_SRC_ENGINE_SESSION_NOISE_H
#define FR_SRC_ENGINE_SESSION_NOISE_H

#include <stdint.h>

/* The uses of random numbers. Each use has a stream of numbers of its own. */
typedef enum fr_noise {
    FR_NOISE_GUMBEL,   /* one number for each token id, for Gumbel sampling */
    FR_NOISE_DRAFT,    /* the drafter's own draw (rejection sampling) */
    FR_NOISE_ACCEPT,   /* the decision to accept a draft */
    FR_NOISE_RESIDUAL, /* the token in place of a rejected draft; also the token that the target draws if there is no
                        * draft */
    FR_NOISE_XTC,      /* XTC's decision to remove tokens */
} fr_noise;

/* Runs the generator itself: 10 rounds. */
void fr_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]);

/* Gives the words of the ids 4 * block .. 4 * block + 3 at a position. */
void fr_noise_words(uint64_t seed, uint64_t position, uint32_t block, uint32_t words[4]);

/* Gives a number in (0, 1) with 52 random bits. */
double fr_noise_uniform(uint64_t seed, uint64_t position, fr_noise stream);

/* Gives the Gumbel noise of a word x, -log(-log((x + 0.5) / 2^32)). It lies between FR_GUMBEL_MIN and
 * FR_GUMBEL_MAX. */
double fr_gumbel(uint32_t word);
#define FR_GUMBEL_MIN -3.13
#define FR_GUMBEL_MAX 22.875

/* Gives an upper bound of fr_gumbel(word), without computing a logarithm. */
double fr_gumbel_bound(uint32_t word);

#endif
