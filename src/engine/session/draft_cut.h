/* Decides which of a round's drafts are verified, so that all timelines together give the most tokens a second.
 *
 * In: the chains of drafts that the methods of all timelines made, with the probabilities that the methods gave; and
 * the measured times and rates of the engine (draft_depth.h). Out: for each chain, how many of its last drafts are left
 * out.
 *
 * Let S(d) be the probability that a draft and all drafts before it in its chain are accepted. S(d) is the product of
 * these drafts' probabilities, corrected by how often such drafts were accepted (calibration.h). If the method gives no
 * probabilities, S(d) is the product of the shares of drafts that were accepted at these depths before. S falls along a
 * chain. So the drafts of all chains are ordered by S, and the first n of them are verified. Each chain then loses only
 * a tail. n is chosen so that this gain, in tokens, is largest:
 *     S(first) + ... + S(n-th) - rate * (T(base + n) - T(base))
 * T(rows) is the time of a forward (draft_depth.h), and `base` is the number of rows without these drafts. `rate` is
 * the engine's tokens a second (fr_draft_depth_rate). `rate` is measured over many rounds. The rate of this round alone
 * would be low if its drafts are unlikely. Measured by such a low rate, even drafts that are not worth their time would
 * seem worth it. The time of making the drafts does not count, because it is already spent.
 *
 * Each row beyond the largest measured number of rows is assumed to cost half as much as a measured row. At most twice
 * the largest measured number is tried. In the first rounds, and for timelines whose round is a try (draft_depth.h), as
 * many drafts are verified as planned. */
#ifndef FR_SRC_ENGINE_SESSION_DRAFT_CUT_H
#define FR_SRC_ENGINE_SESSION_DRAFT_CUT_H

#include "src/engine/session/draft_depth.h"

/* Sets `left_out` of all parts, and `stands` of the parts whose methods give probabilities. At most `room` drafts are
 * verified. taken: number of rows that the round has already, not counting one row for each timeline. */
void fr_draft_cut(const fr_draft_depth *draft_depth, fr_draft_depth_part *parts, size_t count, size_t room,
                  size_t taken);

#endif
