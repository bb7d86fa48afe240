/* Reads the sampling settings in a model's files: see sampling_keys.h. */
#include "src/engine/model/sampling_keys.h"

#include <math.h>

#include "formats/gguf.h"
#include "formats/json.h"

const fr_sampling_key fr_sampling_keys[FR_SAMPLING_KEYS] = {
#define FR_SAMPLER_PUBLISHED(id, gguf, json, chat) {FR_OPT_##id, "general.sampling." gguf, json},
#include "samplers.def"
};

/* transformers decodes greedily if do_sample is false. The temperature is then 0, whatever temperature the file has. */
double fr_sampling_number(const fr_checkpoint *files, const fr_sampling_key *key) {
    fr_option_kind kind;
    double value = NAN, low, high;
    if (files->gguf) {
        if (fr_gguf_real(files->gguf, key->key, -INFINITY, INFINITY, NAN, &value) != FR_OK) return NAN;
    } else {
        const json_t *found = json_object_get(files->generation, key->name);
        if (json_is_number(found)) value = json_number_value(found);
        if (key->option == FR_OPT_TEMPERATURE && json_is_false(json_object_get(files->generation, "do_sample")))
            value = 0;
    }
    bool followed = fr_option_range(key->option, &kind, &low, &high) == FR_OK && value >= low && value <= high;
    return followed && (kind != FR_OPTION_WHOLE || value == floor(value)) ? value : NAN;
}

fr_text fr_sampling_order(const fr_checkpoint *files) {
    fr_text order = {0};
    if (files->gguf) return fr_gguf_text(files->gguf, FR_SAMPLING_ORDER_KEY, &order) == FR_OK ? order : (fr_text){0};
    const json_t *found = json_object_get(files->generation, FR_SAMPLING_ORDER_NAME);
    return json_is_string(found) ? (fr_text){json_string_value(found), json_string_length(found)} : order;
}
