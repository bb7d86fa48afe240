/* Settings: see options.h. */
#include "base/options.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/topology.h"

typedef struct option_range {
    const char *name;
    int64_t low, high, fallback;
} option_range;

static const option_range ranges[FR_OPT_COUNT] = {
    [FR_OPT_THREADS] = {"threads", 1, FR_MAX_THREADS, -1},
    [FR_OPT_PIN] = {"pin", -1, 1, -1},
    [FR_OPT_NUMA] = {"numa", 0, 1, 1},
    [FR_OPT_ISA] = {"isa", 0, -1, 0}, /* text only */
    [FR_OPT_MMAP] = {"mmap", 0, 1, 1},
    [FR_OPT_MLOCK] = {"mlock", 0, 1, 0},
    [FR_OPT_MMPROJ] = {"mmproj", 0, -1, 0},                    /* text only */
    [FR_OPT_CONTEXT] = {"context", 1, 1 << 24, -1},
    [FR_OPT_CHUNK] = {"chunk", 1, 4096, -1},
    [FR_OPT_DRAFT_MAX] = {"draft-max", FR_DRAFT_AUTO, FR_STEP_MAX - 1, FR_DRAFT_AUTO},
    [FR_OPT_IGNORE_EOS] = {"ignore-eos", 0, 1, 0},
    [FR_OPT_CTX_CHECKPOINTS] = {"ctx-checkpoints", 0, 1024, 8},
    [FR_OPT_KV_MEMORY] = {"kv-memory", 0, INT64_MAX, 0},
    [FR_OPT_MEMORY] = {"memory", 0, INT64_MAX, 0},
    [FR_OPT_SWA_FULL] = {"swa-full", 0, 1, 0},
    [FR_OPT_KV_K] = {"cache-type-k", 0, -1, -1}, /* text only */
    [FR_OPT_KV_V] = {"cache-type-v", 0, -1, -1},
    [FR_OPT_SPEC_TYPE] = {"spec-type", 0, -1, 0}, /* text only */
    [FR_OPT_TOP_K] = {"top-k", 0, INT32_MAX, 0},
    [FR_OPT_REPEAT_LAST_N] = {"repeat-last-n", -1, INT32_MAX, 64},
    [FR_OPT_LOGIT_BIAS] = {"logit-bias", 0, -1, 0}, /* text only */
    [FR_OPT_SEED] = {"seed", 0, INT64_MAX, 0},
    [FR_OPT_ACCEPT] = {"accept", 0, -1, FR_ACCEPT_GUMBEL}, /* text only */
    [FR_OPT_LOGPROBS] = {"logprobs", -1, FR_LOGPROBS_MAX, -1},
    [FR_OPT_DRAFT_MIN] = {"draft-min", 0, FR_STEP_MAX - 1, 0},
    [FR_OPT_CHAT_TEMPLATE] = {"chat-template-file", 0, -1, 0}, /* text only */
};

typedef struct number_range {
    const char *name; /* NULL: takes no number */
    double low, high, fallback;
} number_range;

static const number_range numbers[FR_OPT_COUNT] = {
    [FR_OPT_TEMPERATURE] = {"temperature", 0, 100, 0},
    [FR_OPT_TOP_P] = {"top-p", 0, 1, 1},
    [FR_OPT_MIN_P] = {"min-p", 0, 1, 0},
    [FR_OPT_DRAFT_P_MIN] = {"draft-p-min", 0, 1, 0},
    [FR_OPT_REPEAT_PENALTY] = {"repeat-penalty", 0.01, 100, 1},
    [FR_OPT_PRESENCE_PENALTY] = {"presence-penalty", -1000, 1000, 0},
    [FR_OPT_FREQUENCY_PENALTY] = {"frequency-penalty", -1000, 1000, 0},
};

fr_options fr_options_resolve(const fr_options *options) {
    if (options) return *options;
    fr_options defaults = {0};
    for (size_t i = 0; i < FR_OPT_COUNT; i++) {
        defaults.value[i] = ranges[i].fallback;
        defaults.number[i] = numbers[i].fallback;
    }
    return defaults;
}

fr_options *fr_options_new(void) {
    fr_options *options = malloc(sizeof *options);
    if (options) *options = fr_options_resolve(NULL);
    return options;
}

fr_options *fr_options_copy(const fr_options *options) {
    fr_options *copy = malloc(sizeof *copy);
    if (copy) *copy = fr_options_resolve(options);
    return copy;
}

void fr_options_free(fr_options *options) {
    free(options);
}

/* That there is such an option. */
static fr_status check_option(fr_option option) {
    if ((unsigned)option < FR_OPT_COUNT) return FR_OK;
    return fr_fail(FR_USAGE, "%d is no option: they are 0 to %d", (int)option, FR_OPT_COUNT - 1);
}

static fr_option_kind kind_of(fr_option option) {
    if (numbers[option].name) return FR_OPTION_NUMBER;
    return ranges[option].high < ranges[option].low ? FR_OPTION_TEXT : FR_OPTION_WHOLE;
}

/* That an option takes such a value. */
static fr_status check_kind(fr_option option, fr_option_kind kind) {
    static const char *const kinds[] = {"a whole number", "a number", "a text"};
    FR_TRY(check_option(option));
    if (kind_of(option) == kind) return FR_OK;
    return fr_fail(FR_USAGE, "%s takes %s, not %s", fr_option_name(option), kinds[kind_of(option)], kinds[kind]);
}

fr_status fr_options_set(fr_options *options, fr_option option, int64_t value) {
    if (!options) return fr_fail_null("fr_options_set", "options");
    FR_TRY(check_option(option));
    const option_range *range = &ranges[option];
    if (numbers[option].name) return fr_options_set_number(options, option, (double)value);
    FR_TRY(check_kind(option, FR_OPTION_WHOLE));
    if (value < range->low || value > range->high)
        return fr_fail(FR_USAGE, "%s must be %lld to %lld, not %lld", range->name, (long long)range->low,
                       (long long)range->high, (long long)value);
    options->value[option] = value;
    return FR_OK;
}

fr_status fr_options_set_number(fr_options *options, fr_option option, double value) {
    if (!options) return fr_fail_null("fr_options_set_number", "options");
    FR_TRY(check_kind(option, FR_OPTION_NUMBER));
    const number_range *range = &numbers[option];
    if (!(value >= range->low && value <= range->high))
        return fr_fail(FR_USAGE, "%s must be %g to %g, not %g", range->name, range->low, range->high, value);
    options->number[option] = value;
    return FR_OK;
}

fr_status fr_options_get(const fr_options *options, fr_option option, int64_t *value) {
    if (!value) return fr_fail_null("fr_options_get", "a place for the value");
    *value = 0;
    FR_TRY(check_kind(option, FR_OPTION_WHOLE));
    *value = options ? options->value[option] : ranges[option].fallback;
    return FR_OK;
}

fr_status fr_options_get_number(const fr_options *options, fr_option option, double *value) {
    if (!value) return fr_fail_null("fr_options_get_number", "a place for the value");
    *value = 0;
    FR_TRY(check_kind(option, FR_OPTION_NUMBER));
    *value = options ? options->number[option] : numbers[option].fallback;
    return FR_OK;
}

const char *fr_option_name(fr_option option) {
    if ((unsigned)option >= FR_OPT_COUNT) return NULL;
    return numbers[option].name ? numbers[option].name : ranges[option].name;
}

fr_status fr_option_range(fr_option option, fr_option_kind *kind, double *low, double *high) {
    FR_TRY(check_option(option));
    fr_option_kind takes = kind_of(option);
    bool number = takes == FR_OPTION_NUMBER;
    if (kind) *kind = takes;
    if (low) *low = number ? numbers[option].low : (double)ranges[option].low;
    if (high) *high = number ? numbers[option].high : (double)ranges[option].high;
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
