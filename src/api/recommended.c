/* Sets the sampling options that a model's makers recommend: see fr_options_recommend of forerun.h.
 *
 * In: a model, whose file or folder may contain any values. Out: one option, set or unchanged. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "forerun.h"
#include "src/engine/model/model.h"
#include "src/engine/model/sampling_keys.h"

/* Sets an option. Returns false if the option does not accept the value, which then counts as no recommendation. */
static bool set_number(fr_options *options, fr_option option, double value) {
    fr_option_kind kind;
    if (isnan(value) || fr_option_range(option, &kind, NULL, NULL) != FR_OK) return false;
    if (kind == FR_OPTION_WHOLE) return fr_options_set(options, option, (int64_t)value) == FR_OK;
    return fr_options_set_number(options, option, value) == FR_OK;
}

static bool set_order(fr_options *options, const fr_model *model) {
    char order[256];
    fr_text text = fr_sampling_order(&model->files);
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
    for (size_t i = 0; i < FR_SAMPLING_KEYS; i++)
        if (fr_sampling_keys[i].option == option)
            *found = set_number(options, option, fr_sampling_number(&model->files, &fr_sampling_keys[i]));
    return FR_OK;
}
