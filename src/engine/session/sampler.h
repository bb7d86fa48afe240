/* Draws tokens from logits: penalties, bias, temperature, filters, then one token.
 *
 * In: a row of logits, and the tokens before it. Out: a token, which is a pure function of those, the settings, the
 * seed and the position. Order: penalties (repeat, frequency, presence; over the timeline and the drafts before the
 * row), bias and the ids that the model keeps out, DRY (dry.h); then top-k (ties with the k-th stay), top-p (logits
 * descending, ids ascending), min-p, temperature, or another chain (filters.h).
 *
 * Mirostat's bound is the one state there is: a function of what was drawn since the last prompt and of the rows it was
 * drawn from. It moves on over accepted tokens alone.
 *
 * Gumbel: the token is argmax((logit - largest) / temperature + g(seed, position, id)) over what the filters left, the
 * lowest id of equals. The drafter draws from its own logits with the same noise, so the two agree often, and a draft
 * stands where they do. Temperature 0: the largest logit.
 * Rejection: the target's and the drafter's distributions are compared (accept.h), each draw with noise of its own.
 *
 * quant/NUMERICS.md, 12, has the roundings. Nothing depends on threads or instruction sets. */
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
    bool on; /* false: greedy, nobody has to ask the sampler */
    bool rejection;
    bool draws;     /* temperatures above 0 may come */
    bool selects;   /* filters run: there may be draws, or filters that the largest logit needn't pass */
    bool mirostat;
    bool tells;        /* the draws give their log-probabilities */
    fr_logprobs *told; /* receives those; NULL otherwise */
    double temperature, top_p, min_p, repeat, presence, frequency;
    double top_n_sigma, typical, xtc_probability, xtc_threshold, dynatemp_range, dynatemp_exponent;
    double mirostat_eta, mirostat_tau;
    uint8_t filters[FR_FILTER_COUNT]; /* that do something, in order */
    size_t filter_count;
    size_t top_k;  /* 0: off */
    size_t last_n; /* tokens that penalties look back over */
    uint64_t seed;
    fr_dry dry;
    double mu;               /* mirostat's bound on surprise in bits; */
    double mus[FR_STEP_MAX]; /* and behind each row of the last verification */

    float *logits;                   /* [vocab] after penalties, bias and filters */
    int32_t *ids;     /* [vocab] of those, once a filter has left some out; greedy: NULL, as the next two */
    int32_t *scratch; /* [vocab] */
    float *weight;    /* [vocab] exp((logit - largest) / temperature) */
    float *nearness;                 /* [vocab] of typical sampling; NULL: off */
    uint32_t *seen;                  /* [vocab] all 0 between draws; NULL: no penalties */
    float *bias;                     /* [vocab]; NULL: none */
    float *drafter;                  /* [depths, vocab] the weights that drafts were drawn from */
    fr_distribution drafted[FR_STEP_MAX]; /* the distributions of the last proposal */
    size_t depths, known;            /* how many there is room for; how many there are */
    const fr_logit_bias *biases; /* those of the options that set it, until its layout */
    size_t bias_count;
    const int32_t *suppressed; /* the model's, banned whatever the biases say */
    size_t suppressed_count;

    fr_mask_fn *mask; /* the caller's; NULL: none */
    void *mask_context;
    fr_constraint constraint; /* a grammar's mask, behind that one */
    float *masked;            /* [vocab] a row as the masks have left it, or */
    int32_t *masked_ids;      /* [vocab] candidates; both malloc'd; */
    fr_status mask_status;    /* what they said last */
} fr_sampler;

/* Reads the settings; a bias for an id outside the vocabulary is FR_INPUT. */
fr_status fr_sampler_set(fr_sampler *sampler, const fr_options *options, const fr_kernels *kernels, size_t vocab);

/* Ids that are never drawn, below the vocabulary, which must outlive the sampler; before its layout. */
void fr_sampler_suppress(fr_sampler *sampler, const int32_t *ids, size_t count);

/* The timeline is never longer than that; before its layout. */
void fr_sampler_limit(fr_sampler *sampler, size_t context);

/* What can't be had from the options alone: the tokens that break sequences, for DRY. */
fr_status fr_sampler_open(fr_sampler *sampler, const fr_options *options, const fr_tokenizer *tokenizer);
void fr_sampler_close(fr_sampler *sampler);

/* A new text begins; it is at a place where another one is; so many of the tokens last verified stand. */
void fr_sampler_begin(fr_sampler *sampler);
void fr_sampler_become(fr_sampler *sampler, const fr_sampler *of);
void fr_sampler_restore(fr_sampler *sampler, double mu); /* NaN: it begins */
void fr_sampler_commit(fr_sampler *sampler, size_t count);

/* Whether it is elsewhere than where it begins. */
bool fr_sampler_moved(const fr_sampler *sampler);

/* What the target's rows go through before anything else, NULL: nothing. FR_MEMORY leaves it as it was. */
fr_status fr_sampler_mask(fr_sampler *sampler, fr_mask_fn *mask, void *context);

/* Texts of at most `room` ids are to be of a grammar, NULL: of none. FR_MEMORY leaves it as it was. */
fr_status fr_sampler_constrain(fr_sampler *sampler, fr_grammar *grammar, const fr_model *model, size_t room);

/* Takes its memory, or measures it; depths: of drafts whose distributions it will be told. */
void fr_sampler_layout(fr_sampler *sampler, fr_arena *arena, size_t depths);

/* The target's own draw. -1: no token is left to draw, or a logit is not a number. */
int32_t fr_sampler_draw(fr_sampler *sampler, const fr_scores *scores, const fr_past *past);

/* The drafter's draw at depth past->drafted; under rejection its distribution is kept. A proposal begins by forgetting
 * those of the last one; drafts without a distribution count as certain. */
int32_t fr_sampler_draft(fr_sampler *sampler, const fr_scores *scores, const fr_past *past);
void fr_sampler_forget(fr_sampler *sampler);

/* Both, for a draft method. */
fr_token_picker fr_sampler_token_picker(fr_sampler *sampler);

/* How many of past->drafted drafts stand by the target's logits, [drafted + 1, vocab], and the token after them (-1 as
 * above). Rows behind that token's are not looked at. best: [drafted + 1] what argmax gives of each row, NULL: nobody
 * has looked. */
size_t fr_sampler_verify(fr_sampler *sampler, const float *logits, const int64_t *best, const fr_past *past,
                         int32_t *token);

/* The distribution that the target's draw has, for tests: valid until the next call. */
fr_distribution fr_sampler_distribution(fr_sampler *sampler, const fr_scores *scores, const fr_past *past);

#endif
