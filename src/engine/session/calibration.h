/* How often drafts of a chance stand: what a drafter's own chances are worth, by what became of its drafts.
 *
 * In: the chances of drafts that were verified, and how many of them stood. Out: for each depth and each bin of
 * chances the share of drafts that stood where all before them had. A bin that has seen little is guessed by the same
 * bin of all depths, and that by its chance alone. All fades, for what is drafted changes. */
#ifndef FR_SRC_ENGINE_SESSION_CALIBRATION_H
#define FR_SRC_ENGINE_SESSION_CALIBRATION_H

#include "src/engine/draft/draft_gain.h"

/* hits of tries, both fading. */
typedef struct fr_draft_rate {
    double hits, tries;
} fr_draft_rate;

typedef struct fr_calibration {
    fr_draft_rate bins[FR_DRAFT_GAIN_DEPTHS][FR_DRAFT_GAIN_BINS];
} fr_calibration;

void fr_calibration_learn(fr_calibration *calibration, const float *chances, size_t verified, size_t accepted);
void fr_calibration_tell(const fr_calibration *calibration, fr_draft_gain *gains);

#endif
