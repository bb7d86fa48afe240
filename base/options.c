/* Keeps, checks and copies the options: see options.h. */
#include "base/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/topology.h"

const fr_option_bounds fr_options_bounds[FR_OPT_COUNT] = {
    [FR_OPT_THREADS] = {"threads", FR_OPTION_WHOLE, .whole = {1, FR_THREADS_MAX, -1}},
    [FR_OPT_PIN] = {"pin", FR_OPTION_WHOLE, .whole = {-1, 1, -1}},
    [FR_OPT_NUMA] = {"numa", FR_OPTION_WHOLE, .whole = {0, 1, 1}},
    [FR_OPT_ISA] = {"isa", .kind = FR_OPTION_TEXT},
    [FR_OPT_MMAP] = {"mmap", FR_OPTION_WHOLE, .whole = {0, 1, 1}},
    [FR_OPT_MLOCK] = {"mlock", FR_OPTION_WHOLE, .whole = {0, 1, 0}},
    [FR_OPT_MMPROJ] = {"mmproj", .kind = FR_OPTION_TEXT},
    [FR_OPT_CONTEXT] = {"context", FR_OPTION_WHOLE, .whole = {1, 1 << 24, -1}},
    [FR_OPT_CHUNK] = {"chunk", FR_OPTION_WHOLE, .whole = {1, 4096, -1}},
    [FR_OPT_DRAFT_MAX] = {"draft-max", FR_OPTION_WHOLE, .whole = {FR_DRAFT_AUTO, FR_STEP_MAX - 1, FR_DRAFT_AUTO}},
    [FR_OPT_IGNORE_EOS] = {"ignore-eos", FR_OPTION_WHOLE, .whole = {0, 1, 0}},
    [FR_OPT_KV_K] = {"cache-type-k", FR_OPTION_TEXT, .whole.fallback = -1},
    [FR_OPT_KV_V] = {"cache-type-v", FR_OPTION_TEXT, .whole.fallback = -1},
    [FR_OPT_SPEC_TYPE] = {"spec-type", .kind = FR_OPTION_TEXT},
    [FR_OPT_CTX_CHECKPOINTS] = {"ctx-checkpoints", FR_OPTION_WHOLE, .whole = {0, 1024, 8}},
    [FR_OPT_SWA_FULL] = {"swa-full", FR_OPTION_WHOLE, .whole = {0, 1, 0}},
    [FR_OPT_LOGIT_BIAS] = {"logit-bias", .kind = FR_OPTION_TEXT},
    [FR_OPT_SEED] = {"seed", FR_OPTION_WHOLE, .whole = {0, INT64_MAX, 0}},
    [FR_OPT_ACCEPT] = {"accept", FR_OPTION_TEXT, .whole.fallback = FR_ACCEPT_GUMBEL},
    [FR_OPT_LOGPROBS] = {"logprobs", FR_OPTION_WHOLE, .whole = {-1, FR_LOGPROBS_MAX, -1}},
    [FR_OPT_LOGPROBS_DRAWN] = {"logprobs-drawn", FR_OPTION_WHOLE, .whole = {0, 1, 0}},
    [FR_OPT_CHAT_TEMPLATE] = {"chat-template-file", .kind = FR_OPTION_TEXT},
    [FR_OPT_KV_MEMORY] = {"kv-memory", FR_OPTION_WHOLE, .whole = {0, INT64_MAX, 0}},
    [FR_OPT_MEMORY] = {"memory", FR_OPTION_WHOLE, .whole = {0, INT64_MAX, 0}},
    [FR_OPT_DRAFT_P_MIN] = {"draft-p-min", FR_OPTION_NUMBER, .number = {0, 1, FR_DRAFT_P_AUTO}},
    [FR_OPT_DRAFT_HEAD] = {"draft-head", .kind = FR_OPTION_TEXT},
    [FR_OPT_DRAFT_TIMES] = {"draft-times", .kind = FR_OPTION_TEXT},
    [FR_OPT_DRAFT_MIN] = {"draft-min", FR_OPTION_WHOLE, .whole = {0, FR_STEP_MAX - 1, 0}},
    [FR_OPT_DRY_SEQUENCE_BREAKER] = {"dry-sequence-breaker", .kind = FR_OPTION_TEXT},
    [FR_OPT_SAMPLERS] = {"samplers", .kind = FR_OPTION_TEXT},
    [FR_OPT_TOKENIZER_PRE] = {"tokenizer-pre", .kind = FR_OPTION_TEXT},
    [FR_OPT_IMAGE_MIN_PIXELS] = {"image-min-pixels", FR_OPTION_WHOLE, .whole = {0, 1 << 27, 0}},
    [FR_OPT_IMAGE_MAX_PIXELS] = {"image-max-pixels", FR_OPTION_WHOLE, .whole = {0, 1 << 27, 0}},
    [FR_OPT_IMAGE_MIN_TOKENS] = {"image-min-tokens", FR_OPTION_WHOLE, .whole = {0, 1 << 20, 0}},
    [FR_OPT_IMAGE_MAX_TOKENS] = {"image-max-tokens", FR_OPTION_WHOLE, .whole = {0, 1 << 20, 0}},
    [FR_OPT_PROMPT_REUSE] = {"prompt-reuse", FR_OPTION_WHOLE, .whole = {0, 1, 1}},
#define FR_SAMPLER_NUMBER(id, key, low, high, usual, name, ...) \
    [FR_OPT_##id] = {name, FR_OPTION_NUMBER, .number = {low, high, usual}},
#define FR_SAMPLER_WHOLE(id, key, low, high, usual, name, ...) \
    [FR_OPT_##id] = {name, FR_OPTION_WHOLE, .whole = {low, high, usual}},
#include "samplers.def"
};

const fr_sampler_name fr_sampler_names[FR_FILTER_NAMED] = {
#define FR_SAMPLER(id, word, letter, run, drops_best, works) {word, letter},
#include "samplers.def"
};

fr_options fr_options_resolve(const fr_options *options) {
    if (options) return *options;
    fr_options defaults = {0};
    for (size_t i = 0; i < FR_OPT_COUNT; i++) {
        defaults.value[i] = fr_options_bounds[i].whole.fallback;
        defaults.number[i] = fr_options_bounds[i].number.fallback;
    }
    return defaults;
}

fr_sampler_settings fr_options_sampling(const fr_options *options) {
    return (fr_sampler_settings){
#define FR_SAMPLER_NUMBER(id, key, low, high, usual, name, ...) .key = options->number[FR_OPT_##id],
#define FR_SAMPLER_WHOLE(id, key, low, high, usual, name, ...)  .key = options->value[FR_OPT_##id],
#include "samplers.def"
    };
}

fr_options *fr_options_new(void) {
    fr_options *options = malloc(sizeof *options);
    if (options) *options = fr_options_resolve(NULL);
    return options;
}

fr_status fr_options_own_biases(fr_options *options) {
    size_t count = options->bias_count, room = 2 * count * sizeof *options->biases;
    fr_logit_bias *own = count ? malloc(room) : NULL;
    if (own) memcpy(own, options->biases, count * sizeof *own);
    options->biases = own;
    if (own || !count) return FR_OK;
    options->bias_count = 0;
    return fr_fail_memory("logit biases", room);
}

fr_options *fr_options_copy(const fr_options *options) {
    fr_options *copy = malloc(sizeof *copy);
    if (!copy) return NULL;
    *copy = fr_options_resolve(options);
    if (fr_options_own_biases(copy) == FR_OK) return copy;
    free(copy);
    return NULL;
}

void fr_options_free(fr_options *options) {
    if (options) free(options->biases);
    free(options);
}

/* Fails if there is no such option. */
static fr_status check_option(fr_option option) {
    if ((unsigned)option < FR_OPT_COUNT) return FR_OK;
    return fr_fail(FR_USAGE, "%d is no option: options are 0 to %d", (int)option, FR_OPT_COUNT - 1);
}

/* Fails if the option's values are not of the given kind. */
static fr_status check_kind(fr_option option, fr_option_kind kind) {
    static const char *const kinds[] = {"a whole number", "a number", "a text"};
    FR_TRY(check_option(option));
    fr_option_kind takes = fr_options_bounds[option].kind;
    if (takes == kind) return FR_OK;
    return fr_fail(FR_USAGE, "%s takes %s, not %s", fr_option_name(option), kinds[takes], kinds[kind]);
}

fr_status fr_options_set(fr_options *options, fr_option option, int64_t value) {
    if (!options) return fr_fail_null("fr_options_set", "options");
    FR_TRY(check_option(option));
    const fr_option_bounds *bounds = &fr_options_bounds[option];
    if (bounds->kind == FR_OPTION_NUMBER) return fr_options_set_number(options, option, (double)value);
    FR_TRY(check_kind(option, FR_OPTION_WHOLE));
    if (value < bounds->whole.low || value > bounds->whole.high)
        return fr_fail(FR_USAGE, "%s must be %lld to %lld, not %lld", bounds->name, (long long)bounds->whole.low,
                       (long long)bounds->whole.high, (long long)value);
    options->value[option] = value;
    return FR_OK;
}

fr_status fr_options_set_number(fr_options *options, fr_option option, double value) {
    if (!options) return fr_fail_null("fr_options_set_number", "options");
    FR_TRY(check_kind(option, FR_OPTION_NUMBER));
    const fr_option_bounds *bounds = &fr_options_bounds[option];
    bool automatic = option == FR_OPT_DRAFT_P_MIN && value == FR_DRAFT_P_AUTO; /* allowed, although the value is
                                                                                * outside the option's range */
    if (!automatic && !(value >= bounds->number.low && value <= bounds->number.high))
        return fr_fail(FR_USAGE, "%s must be %g to %g, not %g", bounds->name, bounds->number.low, bounds->number.high,
                       value);
    options->number[option] = value;
    return FR_OK;
}

fr_status fr_options_get(const fr_options *options, fr_option option, int64_t *value) {
    if (!value) return fr_fail_null("fr_options_get", "a place for the value");
    *value = 0;
    FR_TRY(check_kind(option, FR_OPTION_WHOLE));
    *value = options ? options->value[option] : fr_options_bounds[option].whole.fallback;
    return FR_OK;
}

fr_status fr_options_get_number(const fr_options *options, fr_option option, double *value) {
    if (!value) return fr_fail_null("fr_options_get_number", "a place for the value");
    *value = 0;
    FR_TRY(check_kind(option, FR_OPTION_NUMBER));
    *value = options ? options->number[option] : fr_options_bounds[option].number.fallback;
    return FR_OK;
}

const char *fr_option_name(fr_option option) {
    return (unsigned)option < FR_OPT_COUNT ? fr_options_bounds[option].name : NULL;
}

fr_status fr_option_range(fr_option option, fr_option_kind *kind, double *low, double *high) {
    FR_TRY(check_option(option));
    const fr_option_bounds *bounds = &fr_options_bounds[option];
    bool number = bounds->kind == FR_OPTION_NUMBER;
    if (kind) *kind = bounds->kind;
    if (low) *low = number ? bounds->number.low : (double)bounds->whole.low;
    if (high) *high = number ? bounds->number.high : (double)bounds->whole.high;
    return FR_OK;
}

void fr_options_set_progress(fr_options *options, fr_progress_fn *progress, void *context) {
    if (!options) return;
    options->progress = progress;
    options->progress_context = context;
}

void fr_options_set_log(fr_options *options, fr_log_fn *log, void *context) {
    if (options) options->log = (fr_log){log, context};
}
