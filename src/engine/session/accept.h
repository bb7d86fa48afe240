/* Acceptance: pure functions of what the target says, what was drafted, and random numbers.
 *
 * Greedy and Gumbel: a draft stands where it is the target's own choice. Rejection sampling (Leviathan et al. 2023,
 * arXiv:2211.17192; Chen et al. 2023, arXiv:2302.01318): a draft that came from q stands with probability min(1, p/q);
 * where it does not, the token comes from the residual max(p - q, 0). The result is distributed as p. */
#ifndef FR_SRC_ENGINE_SESSION_ACCEPT_H
#define FR_SRC_ENGINE_SESSION_ACCEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In: the target's choice after each of the K + 1 verified rows, and the K drafts. Out: how many drafts stand, the
 * longest prefix with drafts[i] == choices[i]. Row i's choice is only worth something while all drafts before it
 * stand. */
size_t fr_accept_greedy(const int64_t *choices, const int32_t *drafts, size_t count);

/* Candidate i, which is token ids[i], has the probability weight[i] / total. */
typedef struct fr_distribution {
    const int32_t *ids; /* NULL: candidate i is token i */
    const float *weight;
    size_t count;
    double total;
} fr_distribution;

double fr_probability(const fr_distribution *p, int32_t id);

/* Whether a draft stands: u < p / q. u is uniform in (0, 1). */
bool fr_accept_draft(double p, double q, double u);

/* The first candidate at which the sum of the probabilities, in their order, exceeds u. -1: none has any. */
int32_t fr_sample(const fr_distribution *p, double u);

/* The same over max(p - q, 0), normalized; over p itself if nothing of that is left. q's candidate i is token i. q
 * NULL: all of q is on the draft. */
int32_t fr_sample_residual(const fr_distribution *p, const fr_distribution *q, int32_t draft, double u);

#endif
