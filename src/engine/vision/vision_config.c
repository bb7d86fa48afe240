/* Reads the configuration of a vision tower and of its picture processor from JSON or GGUF metadata into checked
 * numbers: the parts that the kinds of towers have in common (tower.h).
 *
 * In: vision_config of config.json, and image_processor of processor_config.json, or preprocessor_config.json; or a
 * GGUF file of architecture "clip" as llama.cpp's converter writes it. Out: fr_vision_config. Missing keys get the
 * defaults of transformers' classes; an unsupported setting that would change the answer is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_place.h"
#include "src/engine/vision/tower.h"

#define PROCESSOR "preprocessor_config.json"
#define NESTED    "image_processor" /* an object in processor_config.json */

const double fr_clip_mean[FR_VISION_CHANNELS] = {0.48145466, 0.4578275, 0.40821073};
const double fr_clip_deviation[FR_VISION_CHANNELS] = {0.26862954, 0.26130258, 0.27577711};

/* ---------------------------------------------------------------------------------------------- both kinds of files */

/* Checks the heads' width: it must be divisible by 4, because half of a head's rotary pairs are for rows and half for
 * columns. */
static fr_status check(const fr_vision_config *c, const char *where) {
    if (c->hidden % c->heads == 0 && (c->theta == 0 || c->hidden / c->heads % 4 == 0)) return FR_OK;
    return fr_fail(FR_INPUT, "%s: a vision tower of width %zu with %zu heads: a head's width must be a multiple of 4",
                   where, c->hidden, c->heads);
}

/* Makes the table of values. For each channel and each byte the table has the byte's value after rescaling and
 * normalisation, rounded as the published processor does it. */
static void normalize_bytes(fr_vision_config *c, double factor, const double *mean, const double *deviation) {
    c->rescale = factor;
    memcpy(c->mean, mean, sizeof c->mean);
    memcpy(c->deviation, deviation, sizeof c->deviation);
    for (size_t i = 0; i < FR_VISION_CHANNELS; i++)
        for (int byte = 0; byte < 256; byte++)
            c->value[i][byte] = ((float)(byte * factor) - (float)mean[i]) / (float)deviation[i];
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

fr_status fr_tower_size(const json_t *object, const char *key, int64_t low, int64_t high, int64_t fallback,
                        const char *where, size_t *value) {
    int64_t number;
    FR_TRY(fr_json_int(object, key, low, high, fallback, where, &number));
    *value = (size_t)number;
    return FR_OK;
}

/* Reads three numbers, or uses the defaults. low: the smallest value that is allowed. */
static fr_status read_three(const fr_tower_source *s, const char *key, double low, const double *defaults,
                            double *values) {
    const json_t *array = json_object_get(s->processor, key);
    memcpy(values, defaults, FR_VISION_CHANNELS * sizeof *values);
    if (!array || json_is_null(array)) return FR_OK;
    for (size_t i = 0; i < FR_VISION_CHANNELS; i++) {
        const json_t *entry = json_array_get(array, i);
        values[i] = json_number_value(entry);
        if (json_array_size(array) != FR_VISION_CHANNELS || !json_is_number(entry) || values[i] < low ||
            values[i] > 1e6)
            return fr_fail(FR_INPUT, "%s: %s must be %d numbers of %g to 1e6", s->where, key, FR_VISION_CHANNELS, low);
    }
    return FR_OK;
}

fr_status fr_tower_pixels(const fr_tower_source *s, const double *mean, const double *deviation,
                          fr_vision_config *config) {
    static const double none[FR_VISION_CHANNELS] = {0}, one[] = {1.0, 1.0, 1.0};
    bool rescale, normalize;
    double factor, means[FR_VISION_CHANNELS], deviations[FR_VISION_CHANNELS];
    FR_TRY(fr_json_bool(s->processor, "do_rescale", true, s->where, &rescale));
    FR_TRY(fr_json_bool(s->processor, "do_normalize", true, s->where, &normalize));
    FR_TRY(fr_json_real(s->processor, "rescale_factor", 1e-9, 1e9, 1.0 / 255.0, s->where, &factor));
    FR_TRY(read_three(s, "image_mean", -1e6, mean, means));
    FR_TRY(read_three(s, "image_std", 1e-6, deviation, deviations));
    normalize_bytes(config, rescale ? factor : 1.0, normalize ? means : none, normalize ? deviations : one);
    return FR_OK;
}

fr_status fr_tower_same(const fr_tower_source *s, const char *key, size_t wanted) {
    size_t found;
    FR_TRY(fr_tower_size(s->processor, key, 1, 1 << 16, (int64_t)wanted, s->where, &found));
    if (found == wanted) return FR_OK;
    return fr_fail(FR_INPUT, "%s: %s is %zu, the vision tower in " FR_TOWER_CONFIG " has %zu", s->where, key, found,
                   wanted);
}

fr_status fr_tower_same_outside(const fr_tower_source *s, const char *key, size_t wanted) {
    const fr_tower_source outside = {.processor = s->outer, .where = FR_TOWER_PROCESSORS};
    return fr_tower_same(&outside, key, wanted);
}

fr_status fr_tower_same_text(const fr_tower_source *s, const char *key, const char *wanted) {
    const char *found;
    FR_TRY(fr_json_text(s->outer, key, FR_TOWER_PROCESSORS, &found));
    if (!found || strcmp(found, wanted) == 0) return FR_OK;
    return fr_fail(FR_UNBUILT, FR_TOWER_PROCESSORS ": %s %s is not built (%s is)", key, found, wanted);
}

fr_status fr_tower_activation(const json_t *vision, const char *key, fr_vision_activation fallback,
                              fr_vision_activation *activation) {
    static const char *const words[] = {
        [FR_VISION_SILU] = "silu", [FR_VISION_GELU_TANH] = "gelu_pytorch_tanh", [FR_VISION_GELU_ERF] = "gelu"};
    const char *word;
    FR_TRY(fr_json_text(vision, key, FR_TOWER_CONFIG, &word));
    *activation = fallback;
    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) *activation = (fr_vision_activation)i;
    if (!word || strcmp(word, words[*activation]) == 0) return FR_OK;
    return fr_fail(FR_UNBUILT, FR_TOWER_CONFIG ": %s %s of the vision tower is not built (%s, %s and %s are)", key,
                   word, words[FR_VISION_SILU], words[FR_VISION_GELU_TANH], words[FR_VISION_GELU_ERF]);
}

fr_status fr_tower_resizes(const fr_tower_source *s) {
    bool resize;
    int64_t bicubic;
    FR_TRY(fr_json_bool(s->processor, "do_resize", true, s->where, &resize));
    if (!resize) return fr_fail(FR_UNBUILT, "%s: do_resize false is not built", s->where);
    return fr_json_int(s->processor, "resample", 3, 3, 3, s->where, &bicubic);
}

fr_status fr_tower_resample(const fr_tower_source *s, fr_vision_config *config) {
    bool resize;
    int64_t filter;
    FR_TRY(fr_json_bool(s->processor, "do_resize", true, s->where, &resize));
    if (!resize) return fr_fail(FR_UNBUILT, "%s: do_resize false is not built", s->where);
    FR_TRY(fr_json_int(s->processor, "resample", FR_RESAMPLE_LANCZOS, FR_RESAMPLE_BICUBIC, config->resample, s->where,
                       &filter));
    config->resample = (fr_resample)filter;
    return FR_OK;
}

/* The picture processor's settings, which are in one of two files. */
typedef struct processor {
    json_t *newer, *older; /* processor_config.json, preprocessor_config.json */
    json_t *root;          /* the object in one of these two files that has the settings */
    const char *where;
} processor;

/* Reads the object in a file; NULL if there is no such file. */
static fr_status read_file(const fr_checkpoint *files, const char *name, json_t **root) {
    char *path = fr_path_join(files->path, name);
    *root = NULL;
    if (!path) return fr_fail_memory("path", strlen(files->path));
    fr_status status = fr_file_exists(path) ? fr_json_read(path, 1 << 20, root) : FR_OK;
    free(path);
    if (*root && !json_is_object(*root)) status = fr_fail(FR_INPUT, "%s: expected an object", name);
    return status;
}

/* Opens the picture processor's settings, if there are any: image_processor of processor_config.json, which newer
 * checkpoints have, otherwise preprocessor_config.json. */
static fr_status open_processor(const fr_checkpoint *files, processor *p) {
    FR_TRY(read_file(files, FR_TOWER_PROCESSORS, &p->newer));
    FR_TRY(fr_json_object(p->newer, NESTED, FR_TOWER_PROCESSORS, &p->root));
    p->where = FR_TOWER_PROCESSORS ": " NESTED;
    if (p->root) return FR_OK;
    p->where = PROCESSOR;
    FR_TRY(read_file(files, PROCESSOR, &p->older));
    p->root = p->older;
    return FR_OK;
}

static fr_status from_json(fr_vision_config *c, fr_tower_source *source) {
    processor p = {0};
    json_t *vision;
    FR_TRY(fr_json_object(source->root, "vision_config", FR_TOWER_CONFIG, &vision));
    if (!vision) return fr_fail(FR_INPUT, FR_TOWER_CONFIG ": vision_config is missing");
    source->vision = vision;
    fr_status status = open_processor(source->weights->files, &p);
    source->processor = p.root;
    source->where = p.where;
    source->outer = p.newer;
    if (status == FR_OK) status = c->tower->read(c, source);
    json_decref(p.newer);
    json_decref(p.older);
    return status == FR_OK ? check(c, FR_TOWER_CONFIG) : status;
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

static fr_status gguf_three(const fr_gguf *gguf, const char *key, double low, double *values) {
    const fr_gguf_value *array;
    FR_TRY(fr_gguf_array(gguf, key, FR_GGUF_F32, &array));
    for (size_t i = 0; i < FR_VISION_CHANNELS; i++) {
        values[i] = array && array->count == FR_VISION_CHANNELS ? (double)fr_gguf_f32(array, i) : NAN;
        if (!(values[i] >= low && values[i] <= 1e6))
            return fr_fail(FR_INPUT, "%s: key clip%s must be %d numbers of %g to 1e6", gguf->path, key,
                           FR_VISION_CHANNELS, low);
    }
    return FR_OK;
}

fr_status fr_tower_gguf_pixels(const fr_gguf *gguf, fr_vision_config *c) {
    double mean[FR_VISION_CHANNELS], deviation[FR_VISION_CHANNELS];
    FR_TRY(gguf_three(gguf, ".vision.image_mean", -1e6, mean));
    FR_TRY(gguf_three(gguf, ".vision.image_std", 1e-6, deviation));
    normalize_bytes(c, 1.0 / 255.0, mean, deviation);
    return FR_OK;
}

fr_status fr_tower_gguf_sizes(const fr_gguf *gguf, fr_vision_config *c) {
    double eps;
    FR_TRY(fr_gguf_size(gguf, ".vision.embedding_length", 4, 1 << 16, FR_GGUF_REQUIRED, &c->hidden));
    FR_TRY(fr_gguf_size(gguf, ".vision.block_count", 1, FR_VISION_LAYERS_MAX, FR_GGUF_REQUIRED, &c->layers));
    FR_TRY(fr_gguf_size(gguf, ".vision.attention.head_count", 1, 4096, FR_GGUF_REQUIRED, &c->heads));
    FR_TRY(fr_gguf_size(gguf, ".vision.feed_forward_length", 1, 1 << 20, FR_GGUF_REQUIRED, &c->ffn));
    FR_TRY(fr_gguf_size(gguf, ".vision.projection_dim", 1, 1 << 17, FR_GGUF_REQUIRED, &c->out));
    FR_TRY(fr_gguf_real(gguf, ".vision.attention.layer_norm_epsilon", 0.0, 1.0, NAN, &eps));
    FR_TRY(fr_gguf_size(gguf, ".vision.patch_size", 1, 256, FR_GGUF_REQUIRED, &c->patch));
    c->eps = (float)eps;
    return fr_tower_gguf_pixels(gguf, c);
}

fr_status fr_vision_config_read(fr_vision_config *config, const fr_weights *weights) {
    const fr_checkpoint *files = weights->files;
    fr_tower_source source = {.weights = weights, .root = files->config, .gguf = files->gguf};
    *config = (fr_vision_config){.tower = fr_tower_of(files), .pixel_count = 1, .resample = FR_RESAMPLE_BICUBIC};
    if (!config->tower) return fr_tower_refuse(files);
    if (!files->gguf) return from_json(config, &source);
    FR_TRY(config->tower->read(config, &source));
    return check(config, files->gguf->path);
}
