/* Penalizes tokens that would continue a repetition; a longer repetition gets a larger penalty. The method is DRY
 * ("don't repeat yourself") by p-e-w and others, github.com/oobabooga/text-generation-webui/pull/5677. The details are
 * as in llama.cpp.
 *
 * In: the tokens before a draw. Out: the number that is subtracted from each token's logit. It is multiplier * base^(n
 * - allowed) if the last n tokens also precede an earlier occurrence of that token, and if n is at least `allowed`.
 * Some texts, such as a line break, break sequences: a repetition does not reach across such a text, and a token that
 * consists of such a text gets no penalty. */
#ifndef FR_SRC_ENGINE_SESSION_DRY_H
#define FR_SRC_ENGINE_SESSION_DRY_H

#include "base/arena.h"
#include "base/options.h"
#include "src/engine/draft/token_picker.h"
#include "src/language/tokenizer/tokenizer.h"

#define FR_DRY_TAIL_MAX 20 /* most tokens of a tail; longer tails are cut */

/* A text that breaks sequences may have several tokens. Its tail is the tokens after the first one. `next`: 1 + index
 * of another tail that belongs to the same first token; 0: there is none. */
typedef struct fr_dry_tail {
    uint32_t next, length;
    int32_t ids[FR_DRY_TAIL_MAX];
} fr_dry_tail;

typedef struct fr_dry {
    double multiplier, base;
    size_t allowed, last_n; /* allowed: repetitions shorter than this have no penalty; last_n: number of tokens to look
                             * back over, 0 if DRY is off */
    uint32_t most;          /* the largest exponent; 0: no limit */
    size_t room;            /* the most tokens for which there is memory to look back over */

    uint32_t *first; /* [vocab] 1 + index of a tail of each token; 0: the token has no tail; NULL: no token has a
                      * tail */
    fr_dry_tail *tails;
    size_t tail_count, capacity;

    uint32_t *shared;  /* [room] shared[k]: length of the longest run of tokens that ends k tokens before the draw and
                        * equals the last tokens */
    uint32_t *repeats; /* [vocab] 1 + length of the repetition that a token would continue; all 0 between draws */
} fr_dry;

/* Reads the settings. DRY is on only if the settings turn it on. */
void fr_dry_set(fr_dry *dry, const fr_sampler_settings *settings);

/* Finds the tokens that break sequences. Without a tokenizer there are none. Fails with FR_INPUT if the options name
 * texts that break sequences but there is no tokenizer. */
fr_status fr_dry_open(fr_dry *dry, const fr_options *options, const fr_tokenizer *tokenizer, size_t vocab);
void fr_dry_close(fr_dry *dry);

/* Takes DRY's memory from the arena, which may only count bytes (base/arena.h). */
void fr_dry_layout(fr_dry *dry, fr_arena *arena, size_t vocab);

/* fr_dry_count fills in `repeats` before a draw. fr_dry_forget sets `repeats` back to 0 after the draw. */
void fr_dry_count(fr_dry *dry, const fr_past *past);
void fr_dry_forget(fr_dry *dry, const fr_past *past);

double fr_dry_penalty(const fr_dry *dry, int32_t id);

#endif
