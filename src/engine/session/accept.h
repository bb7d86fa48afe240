/* Accepts or rejects drafts: pure functions of the target's logits or choices, the drafts, and random numbers.
 *
 * By default a draft is accepted if it is the target's own choice. Without sampling that is the token with the largest
 * logit (fr_accept_greedy). With sampling it is the token that the target draws (fr_sampler_verify of sampler.h
 * compares the two). With --accept rejection (Leviathan et al. 2023, arXiv:2211.17192; Chen et al. 2023,
 * arXiv:2302.01318) a draft that was drawn from q is accepted with probability min(1, p/q); if it is rejected, the
 * token is drawn from the residual max(p - q, 0). The result is distributed as p. */
#ifndef FR_SRC_ENGINE_SESSION_ACCEPT_H
#define FR_SRC_ENGINE_SESSION_ACCEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts the accepted drafts: the longest prefix in which drafts[i] == choices[i]. choices: [count + 1] the target's
 * choice after each verified row. choices[i] is valid only if all drafts before index i are accepted. */
size_t fr_accept_greedy(const int64_t *choices, const int32_t *drafts, size_t count);

/* A distribution: candidate i, which is token ids[i], has the probability weight[i] / total. */
typedef struct fr_distribution {
    const int32_t *ids; /* NULL: candidate i is token i */
    const float *weight;
    size_t count;
    double total;
} fr_distribution;

/* Returns the probability of a token. */
double fr_probability(const fr_distribution *p, int32_t id);

/* Returns true if a draft is accepted, which it is if u < p / q. p is the draft's probability in the target's
 * distribution, q that in the drafter's distribution. u is uniform in (0, 1). */
bool fr_accept_draft(double p, double q, double u);

/* Draws a token: adds up the probabilities of the candidates in their order, and returns the first token at which the
 * sum exceeds u. Returns -1 if all probabilities are 0. */
int32_t fr_sample(const fr_distribution *p, double u);

/* Draws the token that replaces a rejected draft. The token is drawn from the residual max(p - q, 0), normalized. If
 * the residual is 0 for all tokens, the token is drawn from p. u is used as in fr_sample. Candidate i of q is token i.
 * If q is NULL, the draft has probability 1 in q. */
int32_t fr_sample_residual(const fr_distribution *p, const fr_distribution *q, int32_t draft, double u);

#endif
