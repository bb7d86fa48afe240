/* DRY, "don't repeat yourself": a penalty for tokens that would go on with a repetition, the larger the longer it is.
 * By p-e-w and others, github.com/oobabooga/text-generation-webui/pull/5677; the details are llama.cpp's.
 *
 * In: the tokens before a draw. Out: what to take off each token's logit: multiplier * base^(n - allowed), where the
 * last n tokens stand before an earlier occurrence of that token too, n being at least `allowed`. Texts that break
 * sequences end the look back: nothing is a repetition across them, and a token that is one by itself is free. */
#ifndef FR_SRC_ENGINE_SESSION_DRY_H
#define FR_SRC_ENGINE_SESSION_DRY_H

#include "base/arena.h"
#include "base/options.h"
#include "src/engine/draft/token_picker.h"
#include "src/language/tokenizer/tokenizer.h"

#define FR_DRY_TAIL_MAX 20

/* The tokens behind a first one that make up a text that breaks sequences; `next` is another of the same first token,
 * plus one. */
typedef struct fr_dry_tail {
    uint32_t next, length;
    int32_t ids[FR_DRY_TAIL_MAX];
} fr_dry_tail;

typedef struct fr_dry {
    double multiplier, base;
    size_t allowed, last_n; /* last_n 0: off */
    uint32_t most;          /* exponent; 0: any */
    size_t room;            /* tokens that it can look back over */

    uint32_t *first;        /* [vocab] a tail of each token plus one, 0: it begins none; NULL: there are none */
    fr_dry_tail *tails;
    size_t tail_count, capacity;

    uint32_t *shared;  /* [room] how many of the last tokens stand so far back too */
    uint32_t *repeats; /* [vocab] the repetition that a token would go on with, plus one; all 0 between draws */
} fr_dry;

/* Reads the settings; off unless they say otherwise. */
void fr_dry_set(fr_dry *dry, const fr_options *options);

/* Finds out which tokens break sequences; without a tokenizer none do, and texts that were given are FR_INPUT. */
fr_status fr_dry_open(fr_dry *dry, const fr_options *options, const fr_tokenizer *tokenizer, size_t vocab);
void fr_dry_close(fr_dry *dry);

/* Takes its memory, or measures it. */
void fr_dry_layout(fr_dry *dry, fr_arena *arena, size_t vocab);

/* Fills and clears `repeats`. */
void fr_dry_count(fr_dry *dry, const fr_past *past);
void fr_dry_forget(fr_dry *dry, const fr_past *past);

double fr_dry_penalty(const fr_dry *dry, int32_t id);

#endif
