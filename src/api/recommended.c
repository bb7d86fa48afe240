/* Sampling settings that a model's makers publish with it: see fr_options_recommend of forerun.h.
 *
 * In: a model, whose file or folder may say anything. Out: one option set, or left as it is. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "forerun.h"
#include "formats/gguf.h"
#include "src/model/model.h"

typedef struct recommendation {
    fr_option option;
    const char *key;  /* in a GGUF file */
    const char *name; /* in generation_config.json; NULL: it has none */
} recommendation;

static const recommendation recommendations[] = {
    {FR_OPT_TEMPERATURE, "general.sampling.temp", "temperature"},
    {FR_OPT_TOP_K, "general.sampling.top_k", "top_k"},
    {FR_OPT_TOP_P, "general.sampling.top_p", "top_p"},
    {FR_OPT_MIN_P, "general.sampling.min_p", "min_p"},
    {FR_OPT_TYPICAL_P, "general.sampling.typical_p", "typical_p"},
    {FR_OPT_REPEAT_PENALTY, "general.sampling.penalty_repeat", "repetition_penalty"},
    {FR_OPT_REPEAT_LAST_N, "general.sampling.penalty_last_n", NULL},
    {FR_OPT_XTC_PROBABILITY, "general.sampling.xtc_probability", NULL},
    {FR_OPT_XTC_THRESHOLD, "general.sampling.xtc_threshold", NULL},
    {FR_OPT_MIROSTAT, "general.sampling.mirostat", NULL},
    {FR_OPT_MIROSTAT_LR, "general.sampling.mirostat_eta", NULL},
    {FR_OPT_MIROSTAT_ENT, "general.sampling.mirostat_tau", NULL},
};

/* Finds the number in the file or folder; NAN if it has none. Transformers decodes greedily where do_sample is false,
 * whatever the temperature beside it. */
static double find_number(const fr_model *model, const recommendation *r) {
    double value = NAN;
    if (model->files.gguf)
        return fr_gguf_real(model->files.gguf, r->key, -INFINITY, INFINITY, NAN, &value) == FR_OK ? value : NAN;
    const json_t *generation = model->files.generation;
    if (r->option == FR_OPT_TEMPERATURE && json_is_false(json_object_get(generation, "do_sample"))) return 0;
    const json_t *found = r->name ? json_object_get(generation, r->name) : NULL;
    return json_is_number(found) ? json_number_value(found) : NAN;
}

/* Sets the option if the value is in its range; a value outside it can't be followed, so it is no recommendation. */
static bool set_number(fr_options *options, fr_option option, double value) {
    fr_option_kind kind;
    double low, high;
    bool known = fr_option_range(option, &kind, &low, &high) == FR_OK && value >= low && value <= high;
    if (!known) return false;
    if (kind != FR_OPTION_WHOLE) return fr_options_set_number(options, option, value) == FR_OK;
    return value == floor(value) && fr_options_set(options, option, (int64_t)value) == FR_OK;
}

static bool set_order(fr_options *options, const fr_model *model) {
    fr_text text = {0};
    char order[256];
    const fr_gguf *gguf = model->files.gguf;
    if (!gguf || fr_gguf_text(gguf, "general.sampling.sequence", &text) != FR_OK) return false;
    if (text.length == 0 || text.length >= sizeof order || memchr(text.bytes, 0, text.length)) return false;
    memcpy(order, text.bytes, text.length);
    order[text.length] = '\0';
    return fr_options_set_text(options, FR_OPT_SAMPLERS, order) == FR_OK;
}

fr_status fr_options_recommend(fr_options *options, const fr_model *model, fr_option option, bool *found) {
    if (!options) return fr_fail_null("fr_options_recommend", "options");
    if (!model) return fr_fail_null("fr_options_recommend", "model");
    if (!found) return fr_fail_null("fr_options_recommend", "found");
    *found = option == FR_OPT_SAMPLERS && set_order(options, model);
    for (size_t i = 0; i < sizeof recommendations / sizeof *recommendations; i++) {
        if (recommendations[i].option != option) continue;
        double value = find_number(model, &recommendations[i]);
        *found = !isnan(value) && set_number(options, option, value);
    }
    return FR_OK;
}
