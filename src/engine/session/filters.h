/* Chooses the tokens and the temperature of a draw: runs the filters of a chain one after the other.
 *
 * In: a sampler and candidates with their logits. Out: fewer candidates, either by a limit that logits must reach or by
 * a list in the sampler's arrays. Holtzman et al. 2020, arXiv:1904.09751 (top-p); Nguyen et al. 2024, arXiv:2407.01082
 * (min-p); Meister et al. 2023, arXiv:2202.00666 (typical); Basu et al. 2021, arXiv:2007.14966 (mirostat); Tang et al.
 * 2024, arXiv:2411.07641 (top-n-sigma). Section 12 of quant/NUMERICS.md has the roundings. */
#ifndef FR_SRC_ENGINE_SESSION_FILTERS_H
#define FR_SRC_ENGINE_SESSION_FILTERS_H

#include "src/engine/session/sampler.h"

/* The candidates of a draw. A candidate is still in the draw if its logit is above `lowest`, or if its logit equals
 * `lowest` and its id is at most `last`. */
typedef struct fr_choices {
    const float *logits;
    const int32_t *ids; /* NULL: candidate i is token i */
    size_t count;
    double temperature; /* 1 until the temperature filter sets it; 0: only the largest logits are left */
    double largest, lowest;
    int32_t last;
    uint64_t position;
} fr_choices;

/* Chooses the filters that have an effect, in the order that the options name. */
void fr_filters_choose(fr_sampler *sampler, const fr_options *options);

/* Runs all filters over choices whose largest logit is known. */
void fr_filters_run(fr_sampler *sampler, fr_choices *choices);

int32_t fr_choice_id(const fr_choices *choices, size_t candidate);
bool fr_choice_stays(const fr_choices *choices, size_t candidate);

/* Fills sampler->weight with exp((logit - largest) / temperature) of all candidates, and returns the sum. */
double fr_choices_weigh(const fr_sampler *sampler, const fr_choices *choices);

/* Gives mirostat's bound on surprise after a token was drawn. choices: the candidates of that draw, with none
 * removed. */
double fr_mirostat_next(const fr_sampler *sampler, const fr_choices *choices, int32_t id);

#endif
