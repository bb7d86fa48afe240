/* When a chain of drafts ends: see worth.h. */
#include "src/engine/draft/worth.h"

#include <math.h>

#include "base/sizes.h"

/* Drafters are mostly sure: where most of their chances are, bins are narrow. */
static const double bounds[FR_WORTH_BINS - 1] = {0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 0.99};

size_t fr_worth_depth(size_t depth) {
    return fr_smaller(depth, FR_WORTH_DEPTHS - 1);
}

size_t fr_worth_bin(double chance) {
    size_t bin = 0;
    while (bin < FR_WORTH_BINS - 1 && chance >= bounds[bin]) bin++;
    return bin;
}

/* Two likeliest ids agree more often than the chance of one of them says: of a 0.5B for a 1.5B 0.72 at 0.57, 0.93 at
 * 0.85. */
double fr_worth_guess(size_t bin) {
    double low = bin ? bounds[bin - 1] : 0, high = bin < FR_WORTH_BINS - 1 ? bounds[bin] : 1;
    double misses = 1 - (low + high) / 2;
    return 1 - misses * sqrt(misses);
}

fr_worth_verdict fr_worth_judge(const fr_draft_worth *worth, const float *chances, size_t count) {
    double all_stand = 1;
    for (size_t d = 0; d < count; d++)
        all_stand *= worth->stands[fr_worth_depth(d)][fr_worth_bin((double)chances[d])];
    if (all_stand < worth->row[count - 1]) return FR_WORTH_NONE;
    if (count >= FR_STEP_MAX - 1) return FR_WORTH_LAST;
    return all_stand * worth->next[count] >= worth->step[count] + worth->row[count] ? FR_WORTH_MORE : FR_WORTH_LAST;
}

double fr_worth_expected(const fr_draft_worth *worth, size_t count) {
    double all_stand = 1, gain = 0, most = 0;
    for (size_t d = 0; d < count; d++) {
        all_stand *= worth->next[d];
        gain += all_stand - worth->step[d] - worth->row[d];
        if (gain > most) most = gain;
    }
    return most;
}
