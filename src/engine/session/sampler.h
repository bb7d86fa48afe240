/* Draws tokens from logits: penalties, bias, temperature, filters, then one token.
 *
 * In: a row of logits, and the tokens before it. Out: a token, which depends only on this input, the settings, the seed
 * and the position. First come the repeat, frequency and presence penalties, which count tokens of the timeline and of
 * the drafts before the row. Then come the bias and the ids that the model excludes, and DRY (dry.h). Then a chain of
 * filters runs, by default top-k (ties with the k-th stay), top-p (logits descending, ids ascending), min-p and
 * temperature (filters.h).
 *
 * The only state is mirostat's bound. The bound is a function of the tokens drawn since the last prompt and of the rows
 * from which they were drawn. Only accepted tokens change the bound.
 *
 * Gumbel: the token is argmax((logit - largest) / temperature + g(seed, position, id)) over the candidates that the
 * filters left, the lowest id among equals. The drafter draws from its own logits with the same noise. So it often
 * draws the same token as the target, and the draft is accepted. At temperature 0 the token is the largest logit. With
 * rejection sampling, the target's and the drafter's distributions are compared (accept.h), and each draw has noise of
 * its own.
 *
 * Section 12 of quant/NUMERICS.md has the roundings. Nothing depends on threads or instruction sets. */
#ifndef FR_SRC_ENGINE_SESSION_SAMPLER_H
#define FR_SRC_ENGINE_SESSION_SAMPLER_H

#include "base/arena.h"
#include "base/options.h"
#include "kernels/kernels.h"
#include "src/engine/draft/token_picker.h"
#include "src/engine/session/accept.h"
#include "src/engine/session/constraint.h"
#include "src/engine/session/dry.h"
#include "src/engine/session/logprobs.h"

typedef struct fr_sampler {
    const fr_kernels *kernels;
    size_t vocab;
    bool on; /* false: the largest logit is the token, and the sampler is not needed */
    bool rejection;
    bool draws;                       /* the temperature may be above 0 */
    bool selects;                     /* filters must run, because tokens are drawn or a filter may exclude the largest
                                       * logit */
    bool mirostat;                    /* mirostat is on, and something is drawn */
    bool tells;                       /* log-probabilities of the draws themselves are wanted */
    fr_logprobs *told;                /* receives the log-probabilities of the draws; NULL if `tells` is false */
    fr_sampler_settings set;          /* the options' settings; with mirostat the temperature has no range */
    uint8_t filters[FR_FILTER_COUNT]; /* the filters that have an effect, in order */
    size_t filter_count;
    size_t last_n; /* tokens that penalties look back over */
    uint64_t seed;
    fr_dry dry;
    double mu;               /* mirostat's bound on surprise, in bits */
    double mus[FR_STEP_MAX]; /* mirostat's bound after each row of the last verification */

    float *logits;    /* [vocab] logits after penalties, bias and filters */
    int32_t *ids;     /* [vocab] ids of `logits` once a filter left some out; `ids`, `scratch` and `weight` are NULL if
                       * sampling is greedy */
    int32_t *scratch; /* [vocab] indices of candidates, for the filter that runs */
    float *weight;    /* [vocab] exp((logit - largest) / temperature) */
    float *nearness;  /* [vocab] distances from the mean, for typical sampling; NULL: it is off */
    uint32_t *seen;   /* [vocab] counts of tokens, all 0 between draws; NULL: no penalties */
    float *bias;      /* [vocab] a bias for each id; NULL: there are none */
    float *drafter;   /* [depths, vocab] the weights that drafts were drawn from */
    fr_distribution drafted[FR_STEP_MAX]; /* the distributions of the last proposal */
    size_t depths, known;                 /* depths: rows of `drafter`; known: valid entries of `drafted` */
    const fr_logit_bias *biases;          /* the options' biases; fr_sampler_layout copies them into `bias` */
    size_t bias_count;
    const int32_t *suppressed; /* ids that the model must never give, even with a bias */
    size_t suppressed_count;

    fr_mask_fn *mask; /* the caller's mask; NULL: none */
    void *mask_context;
    fr_constraint constraint; /* the grammar, whose mask is applied after the caller's */
    float *masked;            /* [vocab] malloc'd: a row after the masks */
    int32_t *masked_ids;      /* [vocab] malloc'd: the ids to which the logits in `masked` belong, if the masks left
                               * only some ids */
    fr_status mask_status;    /* status of the last calls of the masks */
} fr_sampler;

/* Reads the settings. A bias for an id outside the vocabulary fails with FR_INPUT. */
fr_status fr_sampler_set(fr_sampler *sampler, const fr_options *options, const fr_kernels *kernels, size_t vocab);

/* Sets ids below the vocabulary that are never drawn. The array must outlive the sampler. Called before the sampler's
 * layout. */
void fr_sampler_suppress(fr_sampler *sampler, const int32_t *ids, size_t count);

/* Limits the length of the timeline. Called before the sampler's layout. */
void fr_sampler_limit(fr_sampler *sampler, size_t context);

/* Finds the tokens that break sequences for DRY. This needs a tokenizer. */
fr_status fr_sampler_open(fr_sampler *sampler, const fr_options *options, const fr_tokenizer *tokenizer);
void fr_sampler_close(fr_sampler *sampler);

/* fr_sampler_begin moves mirostat's bound to its start, for a new text. fr_sampler_become copies another sampler's
 * bound. fr_sampler_restore sets a saved bound. fr_sampler_commit moves the bound over the first `count` tokens of the
 * last verification. */
void fr_sampler_begin(fr_sampler *sampler);
void fr_sampler_become(fr_sampler *sampler, const fr_sampler *of);
void fr_sampler_restore(fr_sampler *sampler, double mu); /* NaN: the bound is unchanged */
void fr_sampler_commit(fr_sampler *sampler, size_t count);

/* Returns true if mirostat's bound is not at its start. */
bool fr_sampler_moved(const fr_sampler *sampler);

/* Sets a mask that is applied to the target's rows before all else; NULL: none. If it fails with FR_MEMORY, nothing
 * changes. */
fr_status fr_sampler_mask(fr_sampler *sampler, fr_mask_fn *mask, void *context);

/* Sets the grammar that texts of at most `room` ids follow; NULL: none. If it fails with FR_MEMORY, nothing changes. */
fr_status fr_sampler_constrain(fr_sampler *sampler, fr_grammar *grammar, const fr_model *model, size_t room);

/* Takes the sampler's memory from the arena, which may only count bytes (base/arena.h). depths: number of drafts whose
 * distributions can be stored. */
void fr_sampler_layout(fr_sampler *sampler, fr_arena *arena, size_t depths);

/* Draws the target's token. Returns -1 if no token is left, or if a logit is not a number. */
int32_t fr_sampler_draw(fr_sampler *sampler, const fr_scores *scores, const fr_past *past);

/* fr_sampler_draft draws the drafter's token at depth past->drafted. With rejection sampling it also stores the
 * distribution from which the token was drawn. fr_sampler_forget drops the stored distributions; it is called at the
 * beginning of each proposal. A draft without a stored distribution counts as a draft of probability 1. */
int32_t fr_sampler_draft(fr_sampler *sampler, const fr_scores *scores, const fr_past *past);
void fr_sampler_forget(fr_sampler *sampler);

/* Gives a draft method the functions that draw drafts as this sampler does, and that store their distributions. */
fr_token_picker fr_sampler_token_picker(fr_sampler *sampler);

/* Uses the target's logits, [drafted + 1, vocab], to count how many of the past->drafted drafts are accepted. Also
 * gives the token after the accepted drafts (-1 as in fr_sampler_draw). */
size_t fr_sampler_verify(fr_sampler *sampler, const float *logits, const int64_t *best, const fr_past *past,
                         int32_t *token);

/* Gives the distribution of the target's draw, for tests; valid until the next call. */
fr_distribution fr_sampler_distribution(fr_sampler *sampler, const fr_scores *scores, const fr_past *past);

#endif
