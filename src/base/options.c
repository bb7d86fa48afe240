/* Settings: see options.h. */
#include "src/base/options.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "kernels/cpu.h"
#include "src/base/topology.h"
#include "src/decoder/kv.h"
#include "src/draft/draft_list.h"

typedef struct option_range {
    const char *name;
    int64_t low, high, fallback;
} option_range;

static const option_range ranges[FR_OPT_COUNT] = {
    [FR_OPT_THREADS] = {"threads", 1, FR_MAX_THREADS, -1},
    [FR_OPT_PIN] = {"pin", 0, 1, 1},
    [FR_OPT_NUMA] = {"numa", 0, 1, 1},
    [FR_OPT_ISA] = {"isa", 0, -1, 0}, /* text only */
    [FR_OPT_MMAP] = {"mmap", 0, 1, 1},
    [FR_OPT_MLOCK] = {"mlock", 0, 1, 0},
    [FR_OPT_MMPROJ] = {"mmproj", 0, -1, 0}, /* text only */
    [FR_OPT_CONTEXT] = {"context", 1, 1 << 24, -1},
    [FR_OPT_CHUNK] = {"chunk", 1, 4096, 64},
    [FR_OPT_DRAFT_MAX] = {"draft-max", FR_DRAFT_AUTO, FR_STEP_MAX - 1, FR_DRAFT_AUTO},
    [FR_OPT_IGNORE_EOS] = {"ignore-eos", 0, 1, 0},
    [FR_OPT_CTX_CHECKPOINTS] = {"ctx-checkpoints", 0, 1024, 8},
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
};

typedef struct number_range {
    const char *name; /* NULL: takes no number */
    double low, high, fallback;
} number_range;

static const number_range numbers[FR_OPT_COUNT] = {
    [FR_OPT_TEMPERATURE] = {"temperature", 0, 100, 0},
    [FR_OPT_TOP_P] = {"top-p", 0, 1, 1},
    [FR_OPT_MIN_P] = {"min-p", 0, 1, 0},
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

void fr_options_free(fr_options *options) {
    free(options);
}

fr_status fr_options_set(fr_options *options, fr_option option, int64_t value) {
    if (!options || (unsigned)option >= FR_OPT_COUNT) return fr_fail(FR_USAGE, "no such option");
    const option_range *range = &ranges[option];
    if (numbers[option].name) return fr_options_set_number(options, option, (double)value);
    if (value < range->low || value > range->high)
        return fr_fail(FR_USAGE, "%s must be %lld to %lld, not %lld", range->name, (long long)range->low,
                       (long long)range->high, (long long)value);
    options->value[option] = value;
    return FR_OK;
}

fr_status fr_options_set_number(fr_options *options, fr_option option, double value) {
    if (!options || (unsigned)option >= FR_OPT_COUNT || !numbers[option].name)
        return fr_fail(FR_USAGE, "no such option that takes a number");
    const number_range *range = &numbers[option];
    if (!(value >= range->low && value <= range->high))
        return fr_fail(FR_USAGE, "%s must be %g to %g, not %g", range->name, range->low, range->high, value);
    options->number[option] = value;
    return FR_OK;
}

static fr_status set_isa(fr_options *options, const char *word) {
    for (size_t i = 0; fr_isa_word(i); i++) {
        if (strcmp(fr_isa_word(i), word) != 0) continue;
        snprintf(options->isa, sizeof options->isa, "%s", word);
        return FR_OK;
    }
    return fr_fail(FR_USAGE, "isa %s is not known (scalar avx2 avxvnni avx512 avx512vnni amx neon dotprod i8mm)", word);
}

static fr_status set_kv_type(fr_options *options, fr_option option, const char *word) {
    fr_dtype type = fr_kv_type_from_word(word);
    if (type == FR_DTYPE_COUNT)
        return fr_fail(FR_USAGE, "%s %s is not known (f32 f16 bf16 q8_0 q4_0)", ranges[option].name, word);
    options->value[option] = type;
    return FR_OK;
}

static fr_status set_spec_type(fr_options *options, const char *words) {
    FR_TRY(fr_draft_words_check(words));
    if (strlen(words) >= sizeof options->spec_type) return fr_fail(FR_USAGE, "spec-type: too many words");
    snprintf(options->spec_type, sizeof options->spec_type, "%s", words);
    return FR_OK;
}

static fr_status set_mmproj(fr_options *options, const char *path) {
    if (strlen(path) >= sizeof options->mmproj)
        return fr_fail(FR_USAGE, "mmproj: a path of more than %zu bytes", sizeof options->mmproj - 1);
    snprintf(options->mmproj, sizeof options->mmproj, "%s", path);
    return FR_OK;
}

static fr_status set_accept(fr_options *options, const char *word) {
    bool rejection = strcmp(word, "rejection") == 0;
    if (!rejection && strcmp(word, "gumbel") != 0)
        return fr_fail(FR_USAGE, "accept %s is not known (gumbel rejection)", word);
    options->value[FR_OPT_ACCEPT] = rejection ? FR_ACCEPT_REJECTION : FR_ACCEPT_GUMBEL;
    return FR_OK;
}

/* "id+x", "id-x" or "id:x" at the beginning of a text; where it ends, or NULL. */
static const char *read_bias(const char *text, fr_logit_bias *bias) {
    char *end;
    errno = 0;
    long id = strtol(text, &end, 10);
    if (end == text || *text < '0' || *text > '9' || errno || id > INT32_MAX) return NULL;
    text = *end == ':' ? end + 1 : end;
    if (end == text && *text != '+' && *text != '-') return NULL;
    if (strchr(" \t\n\v\f\r", *text)) return NULL; /* which strtod would pass by, and the end of the text */
    double value = strtod(text, &end);
    if (end == text || isnan(value) || value > FLT_MAX || (value < -FLT_MAX && !isinf(value))) return NULL;
    *bias = (fr_logit_bias){(int32_t)id, (float)value};
    return end;
}

/* All of a list, or nothing of it. */
static fr_status add_biases(fr_options *options, const char *list) {
    size_t count = options->bias_count;
    for (const char *at = list; at; at = *at == ',' ? at + 1 : NULL) {
        fr_logit_bias bias;
        at = read_bias(at, &bias);
        if (!at || (*at && *at != ','))
            return fr_fail(FR_USAGE, "logit-bias %s: not a list such as 15+1.5,20-1,30-inf", list);
        if (count == FR_BIAS_MAX) return fr_fail(FR_USAGE, "logit-bias: at most %d ids", FR_BIAS_MAX);
        options->biases[count++] = bias;
    }
    options->bias_count = count;
    return FR_OK;
}

fr_status fr_options_set_text(fr_options *options, fr_option option, const char *value) {
    bool kv = option == FR_OPT_KV_K || option == FR_OPT_KV_V;
    if (options && value && option == FR_OPT_ISA) return set_isa(options, value);
    if (options && value && option == FR_OPT_SPEC_TYPE) return set_spec_type(options, value);
    if (options && value && kv) return set_kv_type(options, option, value);
    if (options && value && option == FR_OPT_MMPROJ) return set_mmproj(options, value);
    if (options && value && option == FR_OPT_ACCEPT) return set_accept(options, value);
    if (options && value && option == FR_OPT_LOGIT_BIAS) return add_biases(options, value);
    return fr_fail(FR_USAGE, "no such text option");
}

void fr_options_set_progress(fr_options *options, fr_progress_fn *progress, void *context) {
    if (!options) return;
    options->progress = progress;
    options->progress_context = context;
}

void fr_options_set_log(fr_options *options, fr_log_fn *log, void *context) {
    if (options) options->log = (fr_log){log, context};
}
