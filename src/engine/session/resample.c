/* Changes how an open session draws: by other options, or through the caller's mask.
 *
 * In: options, or a mask function. Out: a new sampler, with memory of its own, in place of the old one. If the token
 * after a prompt has been chosen but not given yet, that token is chosen again. A failure changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/draft/draft_own.h"
#include "src/engine/session/session.h"
#include "src/engine/session/timeline.h"

/* Some settings can't be changed in an open session, because its memory was laid out for them. Copies these settings
 * into the new options. */
static void keep_opened(fr_options *options, const fr_options *opened) {
    fr_options given = *options;
    *options = *opened;
    options->biases = given.biases;
    options->bias_count = given.bias_count;
    memcpy(options->filters, given.filters, sizeof given.filters);
    options->filter_count = given.filter_count;
    options->filters_given = given.filters_given;
    options->breakers = given.breakers;
    for (fr_option o = 0; o < FR_OPT_COUNT; o++) {
        if (o == FR_OPT_LOGPROBS || o == FR_OPT_LOGPROBS_DRAWN ||
            (o < FR_OPT_REPEAT_PENALTY && o != FR_OPT_DRAFT_MIN && o != FR_OPT_DRAFT_P_MIN))
            continue;
        options->value[o] = given.value[o];
        options->number[o] = given.number[o];
    }
}

/* Makes a sampler with these options, and with memory of its own. */
static fr_status make_sampler(const fr_session *s, const fr_options *options, fr_sampler *sampler, fr_arena *arena) {
    const fr_model *model = s->model;
    FR_TRY(fr_session_check_n_min(s, options));
    FR_TRY(fr_sampler_set(sampler, options, model->kernels, model->trunk.spec.vocab));
    fr_sampler_suppress(sampler, model->suppressed, model->suppressed_count);
    fr_sampler_limit(sampler, s->context);
    if (sampler->rejection != s->sampling.sampler.rejection && fr_draft_inner(s->drafting.draft) != s->drafting.draft)
        return fr_fail(FR_USAGE, "accept can't change while a method of the caller's drafts");
    size_t depths = s->drafter ? s->drafting.max : 0;
    fr_sampler_layout(sampler, arena, depths);
    FR_TRY(fr_arena_open(arena, arena->used, "a sampler"));
    fr_sampler_layout(sampler, arena, depths);
    FR_TRY(fr_arena_check(arena, "a sampler"));
    return fr_sampler_open(sampler, options, model->tokenizer);
}

fr_status fr_session_resample(fr_session *s, const fr_options *options) {
    fr_options merged = *options;
    fr_sampler sampler = {0};
    fr_arena arena = {0};
    keep_opened(&merged, &s->options);
    fr_status status = fr_options_own_biases(&merged);
    if (status == FR_OK) status = make_sampler(s, &merged, &sampler, &arena);
    if (status == FR_OK && s->phase == FR_PHASE_PREDICTED) status = fr_timeline_again(s);
    if (status != FR_OK) {
        fr_sampler_close(&sampler);
        fr_arena_close(&arena);
        free(merged.biases);
        return status;
    }
    sampler.told = s->sampling.sampler.told;
    sampler.mask = s->sampling.sampler.mask;
    sampler.mask_context = s->sampling.sampler.mask_context;
    sampler.constraint = s->sampling.sampler.constraint;
    sampler.masked = s->sampling.sampler.masked;
    sampler.masked_ids = s->sampling.sampler.masked_ids;
    fr_sampler_begin(&sampler);
    fr_sampler_become(&sampler, &s->sampling.sampler);
    fr_sampler_close(&s->sampling.sampler);
    fr_arena_close(&s->sampling.arena);
    s->sampling.arena = arena;
    s->sampling.sampler = sampler;
    s->sampling.picker = fr_sampler_token_picker(&s->sampling.sampler);
    free(s->options.biases);
    s->options = merged;
    s->ignore_eos = merged.value[FR_OPT_IGNORE_EOS] != 0;
    s->drafting.min = (size_t)merged.value[FR_OPT_DRAFT_MIN];
    s->drafting.p_min = merged.number[FR_OPT_DRAFT_P_MIN];
    return FR_OK;
}

fr_status fr_session_mask(fr_session *s, fr_mask_fn *mask, void *context) {
    if (s->phase == FR_PHASE_PREDICTED) FR_TRY(fr_timeline_again(s));
    return fr_sampler_mask(&s->sampling.sampler, mask, context);
}

fr_status fr_session_constrain(fr_session *s, fr_grammar *grammar) {
    if (grammar && fr_grammar_tree(grammar)->tokenizer != s->model->tokenizer)
        return fr_fail(FR_USAGE, "fr_session_set_grammar: the grammar is of another tokenizer than the model's");
    if (s->phase == FR_PHASE_PREDICTED) FR_TRY(fr_timeline_again(s));
    return fr_sampler_constrain(&s->sampling.sampler, grammar, s->model, s->context + FR_STEP_MAX);
}

fr_status fr_session_decide(fr_session *s, uint8_t decisions) {
    if (s->phase == FR_PHASE_PREDICTED) FR_TRY(fr_timeline_again(s));
    s->leader_decides = decisions;
    return FR_OK;
}

fr_status fr_session_begin_constraint(fr_session *s, size_t position) {
    if (!s->sampling.sampler.constraint.grammar)
        return fr_fail(FR_USAGE, "fr_session_begin_grammar: the session has no grammar");
    if (position > s->length)
        return fr_fail(FR_USAGE, "fr_session_begin_grammar: position %zu is beyond the timeline's %zu", position,
                       s->length);
    if (s->phase == FR_PHASE_PREDICTED) FR_TRY(fr_timeline_again(s));
    fr_constraint_begin_at(&s->sampling.sampler.constraint, position);
    return FR_OK;
}
