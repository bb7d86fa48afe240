/* Acceptance: see accept.h. */
#include "src/accept.h"

size_t fr_accept_greedy(const int64_t *choices, const int32_t *drafts, size_t count) {
    size_t accepted = 0;
    while (accepted < count && choices[accepted] == drafts[accepted]) accepted++;
    return accepted;
}
