/* Reads the configuration of the vision tower and of its picture processor from JSON or GGUF metadata into checked
 * numbers.
 *
 * In: vision_config of config.json, and image_processor of processor_config.json, or preprocessor_config.json; or a
 * GGUF file of architecture "clip" as llama.cpp's converter writes it for a GLM tower. Out: fr_vision_config. Missing
 * keys get the defaults of transformers' classes; an unsupported setting that would change the answer is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_place.h"
#include "src/engine/vision/vision_parts.h"

#define MODEL      "config.json"
#define PROCESSOR  "preprocessor_config.json"
#define PROCESSORS "processor_config.json"
#define NESTED     "image_processor" /* an object in processor_config.json */

/* The limits on a picture's pixels times its frames. */
#define MIN_PIXELS (112 * 112)
#define PIXELS_MAX (28 * 28 * 15000)

#define BUILT "glm4v" /* the only supported projector; llama.cpp names towers after it */

/* ------------------------------------------------------------------------------------------------------------- both */

/* Checks the heads' width: a head's rotary pairs are divided into one half for rows and one for columns. */
static fr_status check(const fr_vision_config *c, const char *where) {
    if (c->hidden % c->heads == 0 && c->hidden / c->heads % 4 == 0) return FR_OK;
    return fr_fail(FR_INPUT, "%s: a vision tower of width %zu with %zu heads: a head's width must be a multiple of 4",
                   where, c->hidden, c->heads);
}

/* Makes a table of every byte of every channel, rescaled and normalised with the roundings of the published
 * processor. */
static void normalize_bytes(fr_vision_config *c, double factor, const double *mean, const double *deviation) {
    for (size_t i = 0; i < FR_VISION_CHANNELS; i++)
        for (int byte = 0; byte < 256; byte++)
            c->value[i][byte] = ((float)(byte * factor) - (float)mean[i]) / (float)deviation[i];
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

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
        return fr_fail(FR_UNBUILT, MODEL ": hidden_act %s of the vision tower is not built (silu is)", activation);
    FR_TRY(fr_json_object(vision, "rope_parameters", MODEL, &rope));
    c->theta = 10000.0;
    if (rope) FR_TRY(fr_json_real(rope, "rope_theta", 1.0, 1e12, c->theta, MODEL, &c->theta));
    c->eps = (float)eps;
    c->out_ffn = c->out * channels;
    return check(c, MODEL);
}

/* The picture processor's settings, which are in one of two files. */
typedef struct processor {
    json_t *file, *root; /* root: the object in the file that has the settings */
    const char *where;
} processor;

/* Reads three numbers, or uses the defaults; low is the lowest value allowed. */
static fr_status read_three(const processor *p, const char *key, double low, const double *defaults, double *values) {
    const json_t *array = json_object_get(p->root, key);
    memcpy(values, defaults, FR_VISION_CHANNELS * sizeof *values);
    if (!array || json_is_null(array)) return FR_OK;
    for (size_t i = 0; i < FR_VISION_CHANNELS; i++) {
        const json_t *entry = json_array_get(array, i);
        values[i] = json_number_value(entry);
        if (json_array_size(array) != FR_VISION_CHANNELS || !json_is_number(entry) || values[i] < low ||
            values[i] > 1e6)
            return fr_fail(FR_INPUT, "%s: %s must be %d numbers of %g to 1e6", p->where, key, FR_VISION_CHANNELS, low);
    }
    return FR_OK;
}

static fr_status read_values(const processor *p, fr_vision_config *c) {
    static const double clip_mean[] = {0.48145466, 0.4578275, 0.40821073}, none[FR_VISION_CHANNELS] = {0};
    static const double clip_deviation[] = {0.26862954, 0.26130258, 0.27577711}, one[] = {1.0, 1.0, 1.0};
    bool rescale, normalize;
    double factor, mean[FR_VISION_CHANNELS], deviation[FR_VISION_CHANNELS];
    FR_TRY(fr_json_bool(p->root, "do_rescale", true, p->where, &rescale));
    FR_TRY(fr_json_bool(p->root, "do_normalize", true, p->where, &normalize));
    FR_TRY(fr_json_real(p->root, "rescale_factor", 1e-9, 1e9, 1.0 / 255.0, p->where, &factor));
    FR_TRY(read_three(p, "image_mean", -1e6, clip_mean, mean));
    FR_TRY(read_three(p, "image_std", 1e-6, clip_deviation, deviation));
    normalize_bytes(c, rescale ? factor : 1.0, normalize ? mean : none, normalize ? deviation : one);
    return FR_OK;
}

static fr_status same(const processor *p, const char *key, size_t wanted) {
    size_t found;
    FR_TRY(read_size(p->root, key, 1, 1 << 16, (int64_t)wanted, p->where, &found));
    if (found == wanted) return FR_OK;
    return fr_fail(FR_INPUT, "%s: %s is %zu, the vision tower in " MODEL " has %zu", p->where, key, found, wanted);
}

static fr_status read_processor(const processor *p, fr_vision_config *c) {
    json_t *size;
    bool resize;
    int64_t bicubic;
    FR_TRY(fr_json_object(p->root, "size", p->where, &size));
    FR_TRY(fr_json_int(size, "shortest_edge", 1, INT32_MAX, MIN_PIXELS, p->where, &c->min_pixels));
    FR_TRY(fr_json_int(size, "longest_edge", 1, INT32_MAX, PIXELS_MAX, p->where, &c->max_pixels));
    FR_TRY(fr_json_bool(p->root, "do_resize", true, p->where, &resize));
    if (!resize) return fr_fail(FR_UNBUILT, "%s: do_resize false is not built", p->where);
    FR_TRY(fr_json_int(p->root, "resample", 3, 3, 3, p->where, &bicubic));
    FR_TRY(same(p, "patch_size", c->patch));
    FR_TRY(same(p, "temporal_patch_size", c->frames));
    FR_TRY(same(p, "merge_size", c->merge));
    return read_values(p, c);
}

/* Reads a file's object; NULL if there is no such file. */
static fr_status read_file(const fr_checkpoint *files, const char *name, json_t **root) {
    char *path = fr_path_join(files->path, name);
    *root = NULL;
    if (!path) return fr_fail_memory("path", strlen(files->path));
    fr_status status = fr_file_exists(path) ? fr_json_read(path, 1 << 20, root) : FR_OK;
    free(path);
    if (*root && !json_is_object(*root)) status = fr_fail(FR_INPUT, "%s: expected an object", name);
    return status;
}

/* Opens image_processor of processor_config.json, which newer checkpoints have, or else preprocessor_config.json, if
 * either exists. */
static fr_status open_processor(const fr_checkpoint *files, processor *p) {
    FR_TRY(read_file(files, PROCESSORS, &p->file));
    FR_TRY(fr_json_object(p->file, NESTED, PROCESSORS, &p->root));
    p->where = PROCESSORS ": " NESTED;
    if (p->root) return FR_OK;
    json_decref(p->file);
    p->where = PROCESSOR;
    FR_TRY(read_file(files, PROCESSOR, &p->file));
    p->root = p->file;
    return FR_OK;
}

static fr_status from_json(fr_vision_config *c, const fr_checkpoint *files) {
    processor p = {0};
    FR_TRY(read_tower(files->config, c));
    fr_status status = open_processor(files, &p);
    if (status == FR_OK) status = read_processor(&p, c);
    json_decref(p.file);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* Refuses towers of other models, which have the name of another projector, and towers with another activation, for
 * which there is a flag. */
static fr_status refuse_others(const fr_gguf *gguf) {
    fr_text type;
    bool silu;
    FR_TRY(fr_gguf_text(gguf, ".projector_type", &type));
    if (type.length != strlen(BUILT) || memcmp(type.bytes, BUILT, type.length) != 0)
        return fr_fail(FR_UNBUILT, "%s: a vision tower with projector \"%.*s\" is not built (" BUILT " is)", gguf->path,
                       type.length < 64 ? (int)type.length : 64, type.bytes ? type.bytes : "");
    FR_TRY(fr_gguf_bool(gguf, ".use_silu", false, &silu));
    if (!silu) return fr_fail(FR_UNBUILT, "%s: a vision tower without clip.use_silu is not built", gguf->path);
    return FR_OK;
}

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

static fr_status gguf_picture(const fr_gguf *gguf, fr_vision_config *c) {
    const int64_t frames = FR_VISION_GGUF_FRAMES;
    double mean[FR_VISION_CHANNELS], deviation[FR_VISION_CHANNELS];
    c->frames = FR_VISION_GGUF_FRAMES;
    FR_TRY(fr_gguf_size(gguf, ".vision.patch_size", 1, 256, FR_GGUF_REQUIRED, &c->patch));
    FR_TRY(fr_gguf_size(gguf, ".vision.spatial_merge_size", 1, 16, 2, &c->merge));
    FR_TRY(fr_gguf_int(gguf, ".vision.image_min_pixels", 1, INT32_MAX, MIN_PIXELS / frames, &c->min_pixels));
    FR_TRY(fr_gguf_int(gguf, ".vision.image_max_pixels", 1, INT32_MAX, PIXELS_MAX / frames, &c->max_pixels));
    c->min_pixels *= frames;
    c->max_pixels *= frames;
    FR_TRY(gguf_three(gguf, ".vision.image_mean", -1e6, mean));
    FR_TRY(gguf_three(gguf, ".vision.image_std", 1e-6, deviation));
    normalize_bytes(c, 1.0 / 255.0, mean, deviation);
    return FR_OK;
}

static fr_status from_gguf(fr_vision_config *c, const fr_weights *weights) {
    const fr_gguf *gguf = weights->files->gguf;
    double eps;
    FR_TRY(refuse_others(gguf));
    FR_TRY(fr_gguf_size(gguf, ".vision.embedding_length", 4, 1 << 16, FR_GGUF_REQUIRED, &c->hidden));
    FR_TRY(fr_gguf_size(gguf, ".vision.block_count", 1, 1024, FR_GGUF_REQUIRED, &c->layers));
    FR_TRY(fr_gguf_size(gguf, ".vision.attention.head_count", 1, 4096, FR_GGUF_REQUIRED, &c->heads));
    FR_TRY(fr_gguf_size(gguf, ".vision.feed_forward_length", 1, 1 << 20, FR_GGUF_REQUIRED, &c->ffn));
    FR_TRY(fr_gguf_size(gguf, ".vision.projection_dim", 1, 1 << 17, FR_GGUF_REQUIRED, &c->out));
    FR_TRY(fr_gguf_real(gguf, ".vision.attention.layer_norm_epsilon", 0.0, 1.0, NAN, &eps));
    c->eps = (float)eps;
    c->theta = 10000.0;
    c->out_ffn = c->out * FR_VISION_CHANNELS;
    c->bias = fr_weights_has(weights, "v.blk.0.", "attn_qkv.bias");
    FR_TRY(gguf_picture(gguf, c));
    return check(c, gguf->path);
}

fr_status fr_vision_config_read(fr_vision_config *config, const fr_weights *weights) {
    const fr_checkpoint *files = weights->files;
    *config = (fr_vision_config){0};
    return files->gguf ? from_gguf(config, weights) : from_json(config, files);
}
