/* Reads the description of quantized weights: see storage_config.h. */
#include "formats/storage_config.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

enum { PATTERN_MAX = 512, PATTERNS_MAX = 1024 };

#define NOT_BUILT "are not built: take the folder that they were made of, or a GGUF file of it"

/* -------------------------------------------------------------------------------------------------------- refusals */

static fr_status refuse(const fr_storage_config *config, const char *key, const char *value) {
    return fr_fail(FR_UNBUILT, "%s: weights of %s %s " NOT_BUILT, config->where, key, value);
}

static bool is_one_of(const char *word, const char *const *words) {
    for (; *words; words++)
        if (strcasecmp(word, *words) == 0) return true;
    return false;
}

/* Refuses a member whose value is not one of the words in `built`. A missing member is accepted. */
static fr_status check_word(const fr_storage_config *config, const json_t *object, const char *key,
                            const char *const *built) {
    const char *word;
    FR_TRY(fr_json_text(object, key, config->where, &word));
    return !word || is_one_of(word, built) ? FR_OK : refuse(config, key, word);
}

/* Accepts a member object only if it is missing, empty, or says only that the weights are dense. */
static fr_status check_empty(const fr_storage_config *config, const char *key) {
    json_t *object;
    FR_TRY(fr_json_object(config->object, key, config->where, &object));
    if (!object || json_object_size(object) == 0) return FR_OK;
    const char *format = json_string_value(json_object_get(object, "format"));
    if (format && strcmp(format, "dense") == 0) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: weights with a %s " NOT_BUILT, config->where, key);
}

/* ----------------------------------------------------------------------------------------------------- the methods */

static fr_status read_awq(fr_storage_config *config) {
    static const char *const versions[] = {"gemm", NULL};
    const json_t *o = config->object;
    const char *bits = json_object_get(o, "bits") ? "bits" : "w_bit";
    FR_TRY(check_word(config, o, "version", versions));
    FR_TRY(check_word(config, o, "format", versions));
    FR_TRY(fr_json_size(o, bits, 1, 64, 4, config->where, &config->bits));
    if (config->bits == 4) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: AWQ weights of %zu bits " NOT_BUILT, config->where, config->bits);
}

static fr_status read_gptq(fr_storage_config *config) {
    static const char *const formats[] = {"gptq", "gptq_v2", NULL};
    const json_t *o = config->object;
    const char *key = json_object_get(o, "checkpoint_format") ? "checkpoint_format" : "format", *format;
    bool marlin;
    FR_TRY(fr_json_bool(o, "is_marlin_format", false, config->where, &marlin));
    if (marlin) return refuse(config, "is_marlin_format", "true");
    FR_TRY(check_word(config, o, key, formats));
    FR_TRY(fr_json_text(o, key, config->where, &format));
    config->less_one = !format || strcasecmp(format, "gptq_v2") != 0;
    FR_TRY(fr_json_size(o, "bits", 0, 64, 0, config->where, &config->bits));
    FR_TRY(fr_json_bool(o, "sym", false, config->where, &config->symmetric));
    if (config->bits <= 4 || config->bits == 8) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: GPTQ weights of %zu bits " NOT_BUILT, config->where, config->bits);
}

static fr_status read_compressed(fr_storage_config *config) {
    static const char *const formats[] = {
        "pack-quantized",       "int-quantized",        "float-quantized", "naive-quantized", "mixed-precision",
        "nvfp4-pack-quantized", "mxfp4-pack-quantized", "mxfp8-quantized", "dense",           NULL};
    json_t *groups, *group;
    const char *name;
    FR_TRY(check_word(config, config->object, "format", formats));
    FR_TRY(check_empty(config, "transform_config"));
    FR_TRY(check_empty(config, "sparsity_config"));
    FR_TRY(fr_json_object(config->object, "config_groups", config->where, &groups));
    json_object_foreach (groups, name, group)
        if (json_is_object(group)) FR_TRY(check_word(config, group, "format", formats));
    return FR_OK;
}

static fr_status read_modelopt(fr_storage_config *config) {
    static const char *const algorithms[] = {
        "NVFP4",           "W4A16_NVFP4", "FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "FP8_BLOCK_SCALES",
        "MIXED_PRECISION", NULL};
    json_t *layers, *layer;
    const char *name;
    FR_TRY(check_word(config, config->object, "quant_algo", algorithms));
    FR_TRY(fr_json_object(config->object, "quantized_layers", config->where, &layers));
    json_object_foreach (layers, name, layer)
        if (json_is_object(layer)) FR_TRY(check_word(config, layer, "quant_algo", algorithms));
    return FR_OK;
}

static fr_status read_mlx(fr_storage_config *config) {
    static const char *const modes[] = {"affine", "mxfp4", "nvfp4", "mxfp8", NULL};
    json_t *member;
    const char *name;
    FR_TRY(check_word(config, config->object, "mode", modes));
    json_object_foreach ((json_t *)(uintptr_t)config->object, name, member)
        if (json_is_object(member)) FR_TRY(check_word(config, member, "mode", modes));
    return fr_json_size(config->object, "bits", 0, 64, 0, config->where, &config->bits);
}

/* Reads the number of columns of a group. -1 or 0 means a whole row. If the member is missing or null, the number stays
 * unknown. */
static fr_status read_group(const json_t *object, const char *where, size_t *group) {
    const char *key = json_object_get(object, "group_size") ? "group_size" : "q_group_size";
    const json_t *said = json_object_get(object, key);
    int64_t size;
    FR_TRY(fr_json_int(object, key, -1, INT32_MAX, 0, where, &size));
    *group = size > 0 ? (size_t)size : said && !json_is_null(said) ? FR_GROUP_ROW : 0;
    return FR_OK;
}

/* Reads AutoRound's description. Its packing_format tells if the tensors are laid out as AWQ's or as GPTQ's. */
static fr_status read_auto_round(fr_storage_config *config) {
    static const char *const packings[] = {"auto_round:auto_gptq", "auto_round:auto_awq", "auto_gptq", "auto_awq",
                                           NULL};
    const char *packing;
    FR_TRY(check_word(config, config->object, "packing_format", packings));
    FR_TRY(fr_json_text(config->object, "packing_format", config->where, &packing));
    config->method = packing && strstr(packing, "awq") ? FR_METHOD_AWQ : FR_METHOD_GPTQ;
    return config->method == FR_METHOD_AWQ ? read_awq(config) : read_gptq(config);
}

static fr_status read_method(fr_storage_config *config, const char *method) {
    static const struct {
        const char *name;
        fr_storage_method method;
        fr_status (*read)(fr_storage_config *config);
    } methods[] = {{"awq", FR_METHOD_AWQ, read_awq},
                   {"gptq", FR_METHOD_GPTQ, read_gptq},
                   {"compressed-tensors", FR_METHOD_COMPRESSED, read_compressed},
                   {"modelopt", FR_METHOD_MODELOPT, read_modelopt},
                   {"modelopt_fp4", FR_METHOD_MODELOPT, read_modelopt},
                   {"auto-round", FR_METHOD_GPTQ, read_auto_round},
                   {"intel/auto-round", FR_METHOD_GPTQ, read_auto_round},
                   {"mlx", FR_METHOD_MLX, read_mlx},
                   {"fp8", FR_METHOD_FP8, NULL},
                   {"fbgemm_fp8", FR_METHOD_FP8, NULL},
                   {"mxfp4", FR_METHOD_NONE, NULL}};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strcasecmp(method, methods[i].name) != 0) continue;
        config->method = methods[i].method;
        FR_TRY(read_group(config->object, config->where, &config->group));
        return methods[i].read ? methods[i].read(config) : FR_OK;
    }
    return refuse(config, "quant_method", method);
}

/* ---------------------------------------------------------------------------------------------- finding the method */

/* Finds the object that describes the quantized weights. Programs write it to different places. If several places have
 * such an object, the first place in this function's order is used. */
static fr_status find_object(const fr_checkpoint *files, fr_storage_config *config) {
    static const char *const keys[] = {"quantization_config", "compression_config", "quantization"};
    json_t *found = NULL, *text;
    config->where = "config.json";
    FR_TRY(fr_json_object(files->config, "text_config", config->where, &text));
    const json_t *roots[] = {files->config, text};
    for (size_t i = 0; i < 6 && !found; i++)
        if (roots[i / 3]) FR_TRY(fr_json_object(roots[i / 3], keys[i % 3], config->where, &found));
    if (!found && files->quantization) {
        config->where = files->quantization_file;
        FR_TRY(fr_json_object(files->quantization, "quantization", config->where, &found));
        if (!found) found = files->quantization;
    }
    config->object = found;
    return FR_OK;
}

fr_status fr_storage_config_read(const fr_checkpoint *files, fr_storage_config *config) {
    const char *method;
    *config = (fr_storage_config){.less_one = true};
    FR_TRY(find_object(files, config));
    const json_t *o = config->object;
    if (!o) return FR_OK;
    FR_TRY(fr_json_text(o, "quant_method", config->where, &method));
    /* If there is no quant_method, the keys of the object show which program wrote it. */
    const json_t *algorithm = json_object_get(o, "quant_algo");
    if (!method && algorithm && !json_is_null(algorithm)) method = "modelopt";
    if (!method && json_object_get(o, "config_groups")) method = "compressed-tensors";
    if (!method && (json_object_get(o, "w_bit") || json_object_get(o, "zero_point"))) method = "awq";
    if (!method && (json_object_get(o, "desc_act") || json_object_get(o, "sym"))) method = "gptq";
    if (!method && json_object_get(o, "bits")) method = "mlx";
    return method ? read_method(config, method) : FR_OK;
}

/* ------------------------------------------------------------------------------------------- settings of one module */

/* Rewrites a Python pattern for regcomp, which has no (?:...) and no \d. Returns false for a pattern with counts or
 * back-references, because matching such a pattern could take any amount of time and memory. */
static bool translate(const char *pattern, char *out, size_t size) {
    size_t used = 0;
    for (; *pattern; pattern++) {
        const char *put = NULL;
        if (*pattern == '{' || used + 8 > size) return false;
        if (strncmp(pattern, "(?:", 3) == 0) {
            put = "(";
            pattern += 2;
        } else if (strncmp(pattern, "(?", 2) == 0) {
            return false;
        } else if (*pattern == '\\' && pattern[1] == 'd') {
            put = "[0-9]";
            pattern++;
        } else if (*pattern == '\\') {
            if (!pattern[1] || (pattern[1] >= '0' && pattern[1] <= '9')) return false;
            out[used++] = *pattern++;
        }
        if (put) used += (size_t)snprintf(out + used, size - used, "%s", put);
        if (!put) out[used++] = *pattern;
    }
    out[used] = '\0';
    return true;
}

/* Holds a compiled pattern for names of modules. `text` points into the object that describes the weights. */
typedef struct fr_name_pattern {
    const char *text;
    bool known; /* false if regcomp can't read the pattern */
    regex_t compiled;
} fr_name_pattern;

/* Gives a compiled pattern. Each pattern is compiled only once and then kept, because hundreds of patterns may be
 * compared with tens of thousands of modules. Returns NULL if there are too many patterns, or no memory. */
static const fr_name_pattern *pattern_of(fr_storage_config *config, const char *text) {
    char translated[PATTERN_MAX];
    for (size_t i = 0; i < config->pattern_count; i++)
        if (config->patterns[i].text == text) return &config->patterns[i];
    if (config->pattern_count == PATTERNS_MAX) return NULL;
    fr_name_pattern *grown = realloc(config->patterns, (config->pattern_count + 1) * sizeof *grown);
    if (!grown) return NULL;
    config->patterns = grown;
    fr_name_pattern *made = &grown[config->pattern_count++];
    made->text = text;
    made->known =
        translate(text, translated, sizeof translated) && regcomp(&made->compiled, translated, REG_EXTENDED) == 0;
    return made;
}

void fr_storage_config_close(fr_storage_config *config) {
    for (size_t i = 0; i < config->pattern_count; i++)
        if (config->patterns[i].known) regfree(&config->patterns[i].compiled);
    free(config->patterns);
    config->patterns = NULL;
    config->pattern_count = 0;
}

/* Returns true if a Python pattern matches the beginning of a name. *known becomes false if the pattern can't be
 * read. */
static bool matches(fr_storage_config *config, const char *text, const char *name, bool *known) {
    regmatch_t match;
    const fr_name_pattern *pattern = pattern_of(config, text);
    *known = pattern && pattern->known;
    /* regexec finds the leftmost match, so it finds a match at the beginning of the name if there is one */
    return *known && regexec(&pattern->compiled, name, 1, &match, 0) == 0 && match.rm_so == 0;
}

/* Reads GPTQModel's "dynamic": settings that replace the general ones for modules that match a pattern. Only symmetry
 * and group size are read, because the shapes of the tensors show the bits. */
static fr_status read_dynamic(fr_storage_config *config, const char *module, fr_storage_scheme *scheme) {
    json_t *dynamic, *other;
    const char *pattern;
    FR_TRY(fr_json_object(config->object, "dynamic", config->where, &dynamic));
    json_object_foreach (dynamic, pattern, other) {
        bool known, symmetric;
        if (!json_is_object(other) || strncmp(pattern, "-:", 2) == 0) continue;
        FR_TRY(fr_json_bool(other, "sym", config->symmetric, config->where, &symmetric));
        bool alike = symmetric == config->symmetric && !json_object_get(other, "group_size");
        bool found = matches(config, pattern + (strncmp(pattern, "+:", 2) == 0 ? 2 : 0), module, &known);
        if (!known && !alike)
            return fr_fail(FR_UNBUILT, "%s: the pattern \"%.200s\" of dynamic is not built", config->where, pattern);
        if (!found) continue;
        scheme->symmetric = symmetric;
        if (json_object_get(other, "group_size")) FR_TRY(read_group(other, config->where, &scheme->group));
        return FR_OK;
    }
    return FR_OK;
}

/* Returns true if the module is one of a group's targets. A target is a class, such as `Linear`, a module's name, or a
 * pattern for names. If by_class is true, only classes count, and each class matches all modules. If by_class is false,
 * only names and patterns count. */
static bool targets(fr_storage_config *config, const json_t *group, const char *module, bool by_class) {
    const json_t *list = json_object_get(group, "targets"), *target;
    size_t i;
    bool known;
    json_array_foreach (list, i, target) {
        const char *text = json_string_value(target);
        if (!text) continue;
        bool pattern = strncmp(text, "re:", 3) == 0, class = !pattern && !strchr(text, '.');
        if (by_class ? class : pattern ? matches(config, text + 3, module, &known) : strcmp(text, module) == 0)
            return true;
    }
    return false;
}

static fr_status read_group_of(fr_storage_config *config, const char *module, fr_storage_scheme *scheme) {
    json_t *groups, *group, *weights = NULL;
    const char *name;
    FR_TRY(fr_json_object(config->object, "config_groups", config->where, &groups));
    for (int by_class = 0; by_class < 2 && json_object_size(groups) > 1 && !weights; by_class++)
        json_object_foreach (groups, name, group)
            if (!weights && json_is_object(group) && targets(config, group, module, by_class))
                FR_TRY(fr_json_object(group, "weights", config->where, &weights));
    /* if there is only one group, all quantized modules belong to it */
    group = json_object_iter_value(json_object_iter(groups));
    if (!weights && json_object_size(groups) == 1 && json_is_object(group))
        FR_TRY(fr_json_object(group, "weights", config->where, &weights));
    if (!weights) return FR_OK;
    FR_TRY(fr_json_size(weights, "num_bits", 0, 64, 0, config->where, &scheme->bits));
    FR_TRY(fr_json_bool(weights, "symmetric", true, config->where, &scheme->symmetric));
    FR_TRY(read_group(weights, config->where, &scheme->group));
    const json_t *block = json_object_get(weights, "block_structure");
    for (size_t i = 0; i < 2 && json_array_size(block) == 2; i++) {
        json_int_t size = json_integer_value(json_array_get(block, i));
        scheme->block[i] = size > 0 && size < INT32_MAX ? (size_t)size : 0;
    }
    return FR_OK;
}

fr_status fr_storage_config_module(fr_storage_config *config, const char *module, fr_storage_scheme *scheme) {
    *scheme = (fr_storage_scheme){config->bits, config->group, config->symmetric, {0}};
    if (config->method == FR_METHOD_GPTQ) return read_dynamic(config, module, scheme);
    if (config->method == FR_METHOD_COMPRESSED) return read_group_of(config, module, scheme);
    const json_t *own = config->method == FR_METHOD_MLX ? json_object_get(config->object, module) : NULL;
    if (!json_is_object(own)) return FR_OK;
    FR_TRY(fr_json_size(own, "bits", 0, 64, (int64_t)config->bits, config->where, &scheme->bits));
    return json_object_get(own, "group_size") ? read_group(own, config->where, &scheme->group) : FR_OK;
}
