/* Decides which of a round's drafts are verified, so that all timelines together give the most tokens a second.
 *
 * In: the chains of drafts that the methods of all timelines made, with the chances that they gave; and what is known
 * of the engine (draft_depth.h). Out: for each chain, how many of its last drafts are left out.
 *
 * Let S(d) be the probability that a draft and all drafts before it in its chain are accepted. It is the product of
 * their chances, corrected by how often such drafts were accepted (calibration.h). If the method gives no chances, it
 * is the product of the shares of drafts that were accepted at these depths before. S falls along a chain, so if the
 * drafts of all chains are taken in the order of S, each chain loses only a tail. The first n of them are verified,
 * with the n that makes this number of tokens largest:
 *     S(first) + ... + S(n-th) - rate * (T(base + n) - T(base))
 * T is as in draft_depth.h, base the number of rows without these drafts, and `rate` the tokens a second that
 * the engine gives otherwise. This is not the round's own rate: if drafts are unlikely, their rows should wait for a
 * round in which they bring more. Making the drafts is paid for already, so its time does not count.
 *
 * Rows beyond the largest measured number are assumed to cost half as much as others, and at most twice as many are
 * tried at a time. While little is known, and for timelines whose round is a try (draft_depth.h), as many drafts are
 * verified as planned. */
#ifndef FR_SRC_ENGINE_SESSION_DRAFT_CUT_H
#define FR_SRC_ENGINE_SESSION_DRAFT_CUT_H

#include "src/engine/session/draft_depth.h"

/* Sets `left_out` of all parts, and `stands` of the parts whose methods give chances. At most `room` drafts are
 * verified. taken: as for fr_draft_depth_choose. */
void fr_draft_cut(const fr_draft_depth *draft_depth, fr_draft_depth_part *parts, size_t count, size_t room,
                  size_t taken);

#endif
