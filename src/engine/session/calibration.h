/* Learns how often drafts are accepted, by the probability that the drafter gave them.
 *
 * In: the probabilities of drafts that were verified, and how many of these were accepted. Out: for each depth and each
 * bin of probabilities, the share of drafts that were accepted, among drafts whose predecessors were all accepted. If a
 * bin has few counts at one depth, its share is mixed with the share of the same bin over all depths. If the bin has
 * few counts over all depths too, the share is mixed with a guess from the probability alone. Old counts fade, because
 * the text changes. */
#ifndef FR_SRC_ENGINE_SESSION_CALIBRATION_H
#define FR_SRC_ENGINE_SESSION_CALIBRATION_H

#include "src/engine/draft/draft_gain.h"

/* Counts drafts (tries) and the accepted ones among them (hits). Old counts of both fade. */
typedef struct fr_draft_rate {
    double hits, tries;
} fr_draft_rate;

typedef struct fr_calibration {
    fr_draft_rate bins[FR_DRAFT_GAIN_DEPTHS][FR_DRAFT_GAIN_BINS];
} fr_calibration;

void fr_calibration_learn(fr_calibration *calibration, const float *chances, size_t verified, size_t accepted);
void fr_calibration_tell(const fr_calibration *calibration, fr_draft_gain *gains);

#endif
