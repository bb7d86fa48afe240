/* Settings: see options.h. */
#include "src/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "kernels/cpu.h"
#include "src/kv.h"
#include "src/topology.h"

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
    [FR_OPT_CONTEXT] = {"context", 1, 1 << 24, -1},
    [FR_OPT_CHUNK] = {"chunk", 1, 4096, 64},
    [FR_OPT_DRAFT_MAX] = {"draft-max", 0, FR_STEP_MAX - 1, 3},
    [FR_OPT_IGNORE_EOS] = {"ignore-eos", 0, 1, 0},
    [FR_OPT_CTX_CHECKPOINTS] = {"ctx-checkpoints", 0, 1024, 8},
    [FR_OPT_SWA_FULL] = {"swa-full", 0, 1, 0},
    [FR_OPT_KV_K] = {"cache-type-k", 0, -1, -1}, /* text only */
    [FR_OPT_KV_V] = {"cache-type-v", 0, -1, -1},
};

fr_options fr_options_resolve(const fr_options *options) {
    if (options) return *options;
    fr_options defaults = {0};
    for (size_t i = 0; i < FR_OPT_COUNT; i++) defaults.value[i] = ranges[i].fallback;
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
    if (value < range->low || value > range->high)
        return fr_fail(FR_USAGE, "%s must be %lld to %lld, not %lld", range->name, (long long)range->low,
                       (long long)range->high, (long long)value);
    options->value[option] = value;
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

fr_status fr_options_set_text(fr_options *options, fr_option option, const char *value) {
    bool kv = option == FR_OPT_KV_K || option == FR_OPT_KV_V;
    if (options && value && option == FR_OPT_ISA) return set_isa(options, value);
    if (options && value && kv) return set_kv_type(options, option, value);
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
