/* Decides whether drafts are worth their time: see draft_gain.h. */
#include "src/engine/draft/draft_gain.h"

#include <math.h>

#include "base/sizes.h"

/* Upper bounds of the bins into which the probabilities of drafts are sorted. Bins are narrow near 1, because most
 * drafts have a probability near 1. */
static const double bounds[FR_DRAFT_GAIN_BINS - 1] = {0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 0.99};

size_t fr_draft_gain_depth(size_t depth) {
    return fr_smaller(depth, FR_DRAFT_GAIN_DEPTHS - 1);
}

size_t fr_draft_gain_bin(double chance) {
    size_t bin = 0;
    while (bin < FR_DRAFT_GAIN_BINS - 1 && chance >= bounds[bin]) bin++;
    return bin;
}

/* Estimates how often drafts of a bin are accepted, until this has been measured. The likeliest ids of two models are
 * the same more often than the drafter's probability says. An example is a 0.5B model that drafts for a 1.5B one: 72 %
 * of the drafts with a probability of 0.57 are accepted, and 93 % of those with 0.85. */
double fr_draft_gain_guess(size_t bin) {
    double low = bin ? bounds[bin - 1] : 0, high = bin < FR_DRAFT_GAIN_BINS - 1 ? bounds[bin] : 1;
    double misses = 1 - (low + high) / 2;
    return 1 - misses * sqrt(misses);
}

fr_draft_gain_verdict fr_draft_gain_judge(const fr_draft_gain *gains, const float *chances, size_t count) {
    double all_stand = 1;
    for (size_t d = 0; d < count; d++)
        all_stand *= gains->stands[fr_draft_gain_depth(d)][fr_draft_gain_bin((double)chances[d])];
    if (all_stand < gains->row[count - 1]) return FR_DRAFT_GAIN_NONE;
    if (count >= FR_STEP_MAX - 1) return FR_DRAFT_GAIN_LAST;
    return all_stand * gains->next[count] >= gains->step[count] + gains->row[count] ? FR_DRAFT_GAIN_MORE
                                                                                    : FR_DRAFT_GAIN_LAST;
}

double fr_draft_gain_expected(const fr_draft_gain *gains, size_t count) {
    double all_stand = 1, gain = 0, most = 0;
    for (size_t d = 0; d < count; d++) {
        all_stand *= gains->next[d];
        gain += all_stand - gains->step[d] - gains->row[d];
        if (gain > most) most = gain;
    }
    return most;
}
