/* The vision tower's configuration, and that of the picture's way to it: JSON to checked numbers.
 *
 * In: vision_config of config.json, preprocessor_config.json beside it. Out: fr_vision_config. Keys left out take the
 * defaults of transformers' classes; what would change the answer and is not built is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "src/vision_parts.h"

#define MODEL     "config.json"
#define PROCESSOR "preprocessor_config.json"

static fr_status read_size(const json_t *object, const char *key, int64_t low, int64_t high, int64_t fallback,
                           const char *where, size_t *value) {
    int64_t number;
    FR_TRY(fr_json_int(object, key, low, high, fallback, where, &number));
    *value = (size_t)number;
    return FR_OK;
}

static fr_status read_tower(const json_t *root, fr_vision_config *c) {
    json_t *vision, *rope;
    double eps;
    const char *activation;
    size_t channels;
    FR_TRY(fr_json_object(root, "vision_config", MODEL, &vision));
    if (!vision) return fr_fail(FR_INPUT, MODEL ": vision_config is missing");
    FR_TRY(read_size(vision, "hidden_size", 4, 1 << 16, 1024, MODEL, &c->hidden));
    FR_TRY(read_size(vision, "depth", 1, 1024, 24, MODEL, &c->layers));
    FR_TRY(read_size(vision, "num_heads", 1, 4096, 16, MODEL, &c->heads));
    FR_TRY(read_size(vision, "intermediate_size", 1, 1 << 20, 4096, MODEL, &c->ffn));
    FR_TRY(read_size(vision, "out_hidden_size", 1, 1 << 17, 1536, MODEL, &c->out));
    FR_TRY(read_size(vision, "patch_size", 1, 256, 14, MODEL, &c->patch));
    FR_TRY(read_size(vision, "temporal_patch_size", 1, 16, 2, MODEL, &c->frames));
    FR_TRY(read_size(vision, "spatial_merge_size", 1, 16, 2, MODEL, &c->merge));
    FR_TRY(read_size(vision, "in_channels", FR_VISION_CHANNELS, FR_VISION_CHANNELS, 3, MODEL, &channels));
    FR_TRY(fr_json_bool(vision, "attention_bias", true, MODEL, &c->bias));
    FR_TRY(fr_json_real(vision, "rms_norm_eps", 0.0, 1.0, 1e-5, MODEL, &eps));
    FR_TRY(fr_json_text(vision, "hidden_act", MODEL, &activation));
    if (activation && strcmp(activation, "silu") != 0)
        return fr_fail(FR_INPUT, MODEL ": hidden_act %s of the vision tower is not built (silu is)", activation);
    FR_TRY(fr_json_object(vision, "rope_parameters", MODEL, &rope));
    c->theta = 10000.0;
    if (rope) FR_TRY(fr_json_real(rope, "rope_theta", 1.0, 1e12, c->theta, MODEL, &c->theta));
    c->eps = (float)eps;
    c->out_ffn = c->out * channels;
    if (c->hidden % c->heads || c->hidden / c->heads % 4)
        return fr_fail(FR_INPUT,
                       MODEL ": a vision tower of hidden_size %zu with %zu heads: a head's width must be a "
                             "multiple of 4",
                       c->hidden, c->heads);
    return FR_OK;
}

/* Three numbers, or the defaults; low is the least that is allowed. */
static fr_status read_three(const json_t *object, const char *key, double low, const double *defaults, double *values) {
    const json_t *array = json_object_get(object, key);
    memcpy(values, defaults, FR_VISION_CHANNELS * sizeof *values);
    if (!array || json_is_null(array)) return FR_OK;
    for (size_t i = 0; i < FR_VISION_CHANNELS; i++) {
        const json_t *entry = json_array_get(array, i);
        values[i] = json_number_value(entry);
        if (json_array_size(array) != FR_VISION_CHANNELS || !json_is_number(entry) || values[i] < low ||
            values[i] > 1e6)
            return fr_fail(FR_INPUT, PROCESSOR ": %s must be %d numbers of %g to 1e6", key, FR_VISION_CHANNELS, low);
    }
    return FR_OK;
}

/* Every byte of every channel, rescaled and normalised with the roundings of the published processor. */
static fr_status read_values(const json_t *root, fr_vision_config *c) {
    static const double clip_mean[] = {0.48145466, 0.4578275, 0.40821073};
    static const double clip_deviation[] = {0.26862954, 0.26130258, 0.27577711};
    bool rescale, normalize;
    double factor, mean[FR_VISION_CHANNELS], deviation[FR_VISION_CHANNELS];
    FR_TRY(fr_json_bool(root, "do_rescale", true, PROCESSOR, &rescale));
    FR_TRY(fr_json_bool(root, "do_normalize", true, PROCESSOR, &normalize));
    FR_TRY(fr_json_real(root, "rescale_factor", 1e-9, 1e9, 1.0 / 255.0, PROCESSOR, &factor));
    FR_TRY(read_three(root, "image_mean", -1e6, clip_mean, mean));
    FR_TRY(read_three(root, "image_std", 1e-6, clip_deviation, deviation));
    for (size_t i = 0; i < FR_VISION_CHANNELS; i++)
        for (int byte = 0; byte < 256; byte++) {
            float value = rescale ? (float)(byte * factor) : (float)byte;
            c->value[i][byte] = normalize ? (value - (float)mean[i]) / (float)deviation[i] : value;
        }
    return FR_OK;
}

static fr_status same(const json_t *root, const char *key, size_t wanted) {
    size_t found;
    FR_TRY(read_size(root, key, 1, 1 << 16, (int64_t)wanted, PROCESSOR, &found));
    if (found == wanted) return FR_OK;
    return fr_fail(FR_INPUT, PROCESSOR ": %s is %zu, the vision tower in " MODEL " has %zu", key, found, wanted);
}

static fr_status read_processor(const json_t *root, fr_vision_config *c) {
    json_t *size;
    bool resize;
    int64_t bicubic;
    FR_TRY(fr_json_object(root, "size", PROCESSOR, &size));
    FR_TRY(fr_json_int(size, "shortest_edge", 1, INT32_MAX, 112 * 112, PROCESSOR, &c->min_pixels));
    FR_TRY(fr_json_int(size, "longest_edge", 1, INT32_MAX, 28 * 28 * 15000, PROCESSOR, &c->max_pixels));
    FR_TRY(fr_json_bool(root, "do_resize", true, PROCESSOR, &resize));
    if (!resize) return fr_fail(FR_INPUT, PROCESSOR ": do_resize false is not built");
    FR_TRY(fr_json_int(root, "resample", 3, 3, 3, PROCESSOR, &bicubic));
    FR_TRY(same(root, "patch_size", c->patch));
    FR_TRY(same(root, "temporal_patch_size", c->frames));
    FR_TRY(same(root, "merge_size", c->merge));
    return read_values(root, c);
}

/* The processor's file, or an empty object where there is none. */
static fr_status open_processor(const fr_checkpoint *files, json_t **root) {
    char *path = fr_path_join(files->path, PROCESSOR);
    if (!path) return fr_fail_memory("path", strlen(files->path));
    fr_status status = FR_OK;
    if (fr_file_exists(path))
        status = fr_json_read(path, 1 << 20, root);
    else if (!(*root = json_object()))
        status = fr_fail_memory("configuration", 1);
    free(path);
    return status;
}

fr_status fr_vision_config_read(fr_vision_config *config, const fr_checkpoint *files) {
    json_t *processor = NULL;
    *config = (fr_vision_config){0};
    FR_TRY(read_tower(files->config, config));
    FR_TRY(open_processor(files, &processor));
    fr_status status = json_is_object(processor) ? read_processor(processor, config)
                                                 : fr_fail(FR_INPUT, PROCESSOR ": expected an object");
    json_decref(processor);
    return status;
}
