/* Acceptance: a pure function of what the target says and what was drafted.
 *
 * In: the target's choice after each of the K + 1 verified rows, and the K drafts. Out: how many drafts stand. */
#ifndef FR_SRC_ACCEPT_H
#define FR_SRC_ACCEPT_H

#include <stddef.h>
#include <stdint.h>

/* The longest prefix of drafts with drafts[i] == choices[i]. Row i's choice is only worth something while all drafts
 * before it stand. Leviathan et al. 2023, arXiv:2211.17192, in the greedy case. */
size_t fr_accept_greedy(const int64_t *choices, const int32_t *drafts, size_t count);

#endif
