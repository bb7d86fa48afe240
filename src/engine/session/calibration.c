/* Learns how often drafts of a given probability are accepted: see calibration.h. */
#include "src/engine/session/calibration.h"

#define FADE  (1.0 / 256) /* share of its counts that a bin forgets with each try */
#define PRIOR 8.0         /* a guessed rate of acceptance counts as this many tries */

void fr_calibration_learn(fr_calibration *calibration, const float *chances, size_t verified, size_t accepted) {
    for (size_t d = 0; d < verified && d <= accepted; d++) {
        fr_draft_rate *bin = &calibration->bins[fr_draft_gain_depth(d)][fr_draft_gain_bin((double)chances[d])];
        bin->hits += (d < accepted) - FADE * bin->hits;
        bin->tries += 1 - FADE * bin->tries;
    }
}

void fr_calibration_tell(const fr_calibration *calibration, fr_draft_gain *gains) {
    for (size_t bin = 0; bin < FR_DRAFT_GAIN_BINS; bin++) {
        double hits = PRIOR * fr_draft_gain_guess(bin), tries = PRIOR;
        for (size_t d = 0; d < FR_DRAFT_GAIN_DEPTHS; d++) {
            hits += calibration->bins[d][bin].hits;
            tries += calibration->bins[d][bin].tries;
        }
        for (size_t d = 0; d < FR_DRAFT_GAIN_DEPTHS; d++) {
            const fr_draft_rate *own = &calibration->bins[d][bin];
            gains->stands[d][bin] = (own->hits + PRIOR * hits / tries) / (own->tries + PRIOR);
        }
    }
}
