/* Reads the files of sentence-transformers: see recipe.h. */
#include "src/engine/embed/recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_place.h"
#include "formats/json_member.h"
#include "formats/safetensors.h"
#include "src/engine/encoder/encoder.h"
#include "src/language/tokenizer/tokenizer.h"

#define FILE_MAX ((size_t)4 << 20)
enum { DENSE_MAX = 1 << 20 };

/* Reads an object or array from a file of the folder. *value is NULL if the file is missing. */
static fr_status read_file(const char *folder, const char *place, const char *name, json_t **value) {
    char *inner = *place ? fr_path_join(folder, place) : strdup(folder);
    char *path = inner ? fr_path_join(inner, name) : NULL;
    *value = NULL;
    fr_status status = path ? FR_OK : fr_fail_memory("a path", strlen(folder));
    if (status == FR_OK && fr_file_exists(path)) status = fr_json_read(path, FILE_MAX, value);
    if (status == FR_OK && *value && !json_is_object(*value) && !json_is_array(*value)) {
        json_decref(*value);
        *value = NULL;
        status = fr_fail(FR_INPUT, "%s: neither a JSON object nor an array", path);
    }
    free(inner);
    free(path);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- pooling */

/* The names of the pooling modes in newer and in older files. If an older file names several modes, their results are
 * joined in this order. */
static const struct {
    const char *word, *flag;
    fr_pool_mode mode;
} modes[] = {{"cls", "pooling_mode_cls_token", FR_POOL_CLS},
             {"max", "pooling_mode_max_tokens", FR_POOL_MAX},
             {"mean", "pooling_mode_mean_tokens", FR_POOL_MEAN},
             {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", FR_POOL_MEAN_SQRT},
             {"weightedmean", "pooling_mode_weightedmean_tokens", FR_POOL_WEIGHTED},
             {"lasttoken", "pooling_mode_lasttoken", FR_POOL_LAST}};

static fr_status add_mode(fr_recipe *recipe, const char *word, const char *where) {
    for (size_t i = 0; i < FR_POOL_MODES; i++)
        if (word && strcmp(word, modes[i].word) == 0) {
            if (recipe->mode_count == FR_POOL_MODES) break;
            recipe->modes[recipe->mode_count++] = modes[i].mode;
            return FR_OK;
        }
    return fr_fail(FR_UNBUILT, "%s: pooling_mode \"%.60s\" is not built yet", where, word ? word : "");
}

static fr_status read_pooling(const json_t *c, const char *where, size_t hidden, fr_recipe *recipe) {
    const json_t *mode = json_object_get(c, "pooling_mode");
    const json_t *width = json_object_get(c, "embedding_dimension");
    bool keeps;
    if (!width) width = json_object_get(c, "word_embedding_dimension");
    if (width && json_is_integer(width) && (size_t)json_integer_value(width) != hidden)
        return fr_fail(FR_INPUT, "%s: rows of %lld are pooled, and the model's have %zu numbers", where,
                       (long long)json_integer_value(width), hidden);
    FR_TRY(fr_json_bool(c, "include_prompt", true, where, &keeps));
    recipe->skips_prompt = !keeps;
    recipe->mode_count = 0;
    if (json_is_string(mode)) return add_mode(recipe, json_string_value(mode), where);
    if (json_is_null(mode)) mode = NULL;
    if (mode && !json_is_array(mode)) return fr_fail(FR_INPUT, "%s: pooling_mode is neither a word nor a list", where);
    for (size_t i = 0; i < json_array_size(mode); i++)
        FR_TRY(add_mode(recipe, json_string_value(json_array_get(mode, i)), where));
    for (size_t i = 0; !mode && i < FR_POOL_MODES; i++) {
        bool is;
        FR_TRY(fr_json_bool(c, modes[i].flag, false, where, &is));
        if (is) FR_TRY(add_mode(recipe, modes[i].word, where));
    }
    return recipe->mode_count ? FR_OK : add_mode(recipe, "mean", where);
}

/* ------------------------------------------------------------------------------------------------------------ steps */

static fr_status take_tensor(const fr_tensors *tensors, const char *name, size_t rows, size_t cols, const char *where,
                             float **values) {
    const fr_tensor *t = fr_tensors_find(tensors, name);
    if (!t) return fr_fail(FR_INPUT, "%s: tensor %s is missing", where, name);
    bool fits = rows ? t->dims == 2 && t->shape[0] == rows && t->shape[1] == cols : t->dims == 1 && t->shape[0] == cols;
    if (!fits || t->type >= FR_FLOAT_TYPES)
        return fr_fail(FR_INPUT, "%s: tensor %s is not of %zu x %zu floats", where, name, rows ? rows : 1, cols);
    size_t count = (rows ? rows : 1) * cols;
    *values = malloc(count * sizeof **values);
    if (!*values) return fr_fail_memory(name, count * sizeof **values);
    fr_dtype_decode(t->type, t->data, *values, count);
    for (size_t i = 0; i < count; i++)
        if (!isfinite((*values)[i]))
            return fr_fail(FR_INPUT, "%s: tensor %s has a value that is not finite at index %zu", where, name, i);
    return FR_OK;
}

static fr_status take_weights(const fr_tensors *t, const char *where, bool biased, fr_recipe_step *step) {
    if (step->kind == FR_STEP_LAYER_NORM) {
        FR_TRY(take_tensor(t, "norm.weight", 0, step->in, where, &step->weight));
        return take_tensor(t, "norm.bias", 0, step->in, where, &step->bias);
    }
    FR_TRY(take_tensor(t, "linear.weight", step->out, step->in, where, &step->weight));
    if (biased) FR_TRY(take_tensor(t, "linear.bias", 0, step->out, where, &step->bias));
    if (!step->adds_input || step->in == step->out) return FR_OK;
    return take_tensor(t, "residual.weight", step->out, step->in, where, &step->residual);
}

/* Reads the weights of a module from its model.safetensors. */
static fr_status read_weights(const char *folder, const char *place, bool biased, fr_recipe_step *step) {
    char *inner = fr_path_join(folder, place), *path = inner ? fr_path_join(inner, "model.safetensors") : NULL;
    fr_tensors tensors = {0}, unread = {0};
    fr_map map;
    fr_status status = path ? FR_OK : fr_fail_memory("a path", strlen(folder));
    if (status == FR_OK && !fr_file_exists(path))
        status =
            fr_fail(FR_INPUT, "%s is missing: weights in other files, such as pytorch_model.bin, are not read", path);
    if (status == FR_OK && (status = fr_map_open(&map, path, true)) == FR_OK) {
        status = fr_safetensors_read(&map, 0, &tensors, &unread);
        if (status == FR_OK) status = take_weights(&tensors, path, biased, step);
        fr_tensors_free(&tensors);
        fr_tensors_free(&unread);
        fr_map_close(&map);
    }
    free(inner);
    free(path);
    return status;
}

static fr_status read_activation(const json_t *c, const char *key, fr_dense_activation usual, const char *where,
                                 fr_dense_activation *activation) {
    static const struct {
        const char *name;
        fr_dense_activation activation;
    } known[] = {{"Identity", FR_DENSE_IDENTITY}, {"Tanh", FR_DENSE_TANH}, {"GELU", FR_DENSE_GELU},
                 {"SiLU", FR_DENSE_SILU},         {"ReLU", FR_DENSE_RELU}, {"Sigmoid", FR_DENSE_SIGMOID}};
    const char *path;
    FR_TRY(fr_json_text(c, key, where, &path));
    *activation = usual;
    if (!path || strncmp(path, "torch.", 6) != 0)
        return FR_OK; /* for code from outside torch, sentence-transformers uses the default too */
    const char *name = strrchr(path, '.') + 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0) {
            *activation = known[i].activation;
            return FR_OK;
        }
    return fr_fail(FR_UNBUILT, "%s: %s \"%.80s\" is not built yet", where, key, path);
}

static fr_status check_names(const json_t *c, const char *where) {
    static const char *const keys[] = {"module_input_name", "module_output_name"};
    for (size_t i = 0; i < 2; i++) {
        const char *name;
        FR_TRY(fr_json_text(c, keys[i], where, &name));
        if (name && strcmp(name, "sentence_embedding") != 0)
            return fr_fail(FR_UNBUILT, "%s: %s \"%.60s\" is not built yet", where, keys[i], name);
    }
    return FR_OK;
}

static fr_status add_step(fr_recipe *recipe, const char *folder, const char *place, const json_t *c,
                          fr_recipe_step_kind kind) {
    char where[96];
    snprintf(where, sizeof where, "%.64s/config.json", place);
    if (recipe->step_count == FR_RECIPE_STEPS)
        return fr_fail(FR_UNBUILT, "%s: more than %d modules are not built", where, FR_RECIPE_STEPS);
    fr_recipe_step *step = &recipe->steps[recipe->step_count++];
    *step = (fr_recipe_step){.kind = kind, .in = recipe->width, .out = recipe->width};
    if (kind == FR_STEP_NORMALIZE) return check_names(c, where);
    bool biased = true;
    size_t in;
    if (kind == FR_STEP_DENSE) {
        FR_TRY(check_names(c, where));
        FR_TRY(fr_json_size(c, "in_features", 1, DENSE_MAX, FR_JSON_REQUIRED, where, &in));
        FR_TRY(fr_json_size(c, "out_features", 1, DENSE_MAX, FR_JSON_REQUIRED, where, &step->out));
        FR_TRY(fr_json_bool(c, "bias", true, where, &biased));
        FR_TRY(fr_json_bool(c, "use_residual", false, where, &step->adds_input));
        FR_TRY(read_activation(c, "activation_function", FR_DENSE_TANH, where, &step->activation));
    } else {
        FR_TRY(fr_json_size(c, "dimension", 1, DENSE_MAX, FR_JSON_REQUIRED, where, &in));
    }
    if (in != step->in) return fr_fail(FR_INPUT, "%s: it reads rows of %zu, and gets rows of %zu", where, in, step->in);
    FR_TRY(read_weights(folder, place, biased, step));
    recipe->width = step->out;
    return FR_OK;
}

/* --------------------------------------------------------------------------------------------------------- settings */

static bool is_one_of(const char *word, const char *const *words) {
    while (*words && strcmp(word, *words) != 0) words++;
    return *words != NULL;
}

static bool is_empty(const json_t *value) {
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* Refuses settings of the first module that would change the rows that the module makes. */
static fr_status check_transformer(const fr_model *model, const json_t *c, const char *where) {
    static const struct {
        const char *key, *known[4];
    } words[] = {{"transformer_task", {"feature-extraction", "sequence-classification", "text-generation"}},
                 {"module_output_name", {"token_embeddings", "scores", "causal_logits"}}};
    static const char *const refused[] = {"query_length", "document_length", "query_expansion"};
    static const char *const outputs[] = {"last_hidden_state", "logits", NULL};
    const char *word;
    json_t *group, *text;
    bool lowers;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        FR_TRY(fr_json_text(c, words[i].key, where, &word));
        if (word && !is_one_of(word, words[i].known))
            return fr_fail(FR_UNBUILT, "%s: %s \"%.60s\" is not built yet", where, words[i].key, word);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (!is_empty(json_object_get(c, refused[i])))
            return fr_fail(FR_UNBUILT, "%s: %s is not built yet", where, refused[i]);
    FR_TRY(fr_json_object(c, "modality_config", where, &group));
    FR_TRY(fr_json_object(group, "text", where, &text));
    FR_TRY(fr_json_text(text, "method_output_name", where, &word));
    if (word && !is_one_of(word, outputs))
        return fr_fail(FR_UNBUILT, "%s: method_output_name \"%.60s\" is not built yet", where, word);
    FR_TRY(fr_json_object(c, "processing_kwargs", where, &group));
    if (!is_empty(json_object_get(group, "common")) || !is_empty(json_object_get(group, "text")))
        return fr_fail(FR_UNBUILT, "%s: processing_kwargs for texts is not built yet", where);
    FR_TRY(fr_json_bool(c, "do_lower_case", false, where, &lowers));
    if (lowers && model->tokenizer && !fr_tokenizer_lowers(model->tokenizer))
        return fr_fail(FR_UNBUILT, "%s: do_lower_case is not built for a tokenizer that keeps capitals", where);
    return FR_OK;
}

/* Reads from the settings of the first module how many tokens of a text are read at most. The rest of a longer text is
 * not read. */
static fr_status read_transformer(const fr_model *model, const char *folder, const char *place, fr_recipe *recipe) {
    static const char *const names[] = {"sentence_bert_config.json",       "sentence_roberta_config.json",
                                        "sentence_distilbert_config.json", "sentence_camembert_config.json",
                                        "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
                                        "sentence_xlnet_config.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *c;
        FR_TRY(read_file(folder, place, names[i], &c));
        if (!c) continue;
        fr_status status = fr_json_size(c, "max_seq_length", 1, 1 << 24, 0, names[i], &recipe->limit);
        if (status == FR_OK) status = check_transformer(model, c, names[i]);
        json_decref(c);
        return status;
    }
    return FR_OK;
}

static fr_status add_module(fr_recipe *recipe, const fr_model *model, const char *folder, const json_t *module,
                            size_t hidden) {
    const char *type, *place, *path;
    json_t *c = NULL;
    FR_TRY(fr_json_text(module, "type", "modules.json", &type));
    FR_TRY(fr_json_text(module, "path", "modules.json", &path));
    if (!type) return fr_fail(FR_INPUT, "modules.json: a module has no \"type\"");
    place = path ? path : "";
    if (strstr(place, "..") || *place == '/')
        return fr_fail(FR_INPUT, "modules.json: \"%.60s\" is no folder inside the model's", place);
    const char *word = strrchr(type, '.') ? strrchr(type, '.') + 1 : type;
    if (strcmp(word, "Transformer") == 0) return read_transformer(model, folder, place, recipe);
    if (strcmp(word, "Dropout") == 0) return FR_OK;
    /* A row is pooled once, before the modules that change the pooled row. */
    bool pools = strcmp(word, "Pooling") == 0, judges = strcmp(word, "LogitScore") == 0;
    if (!judges && pools == (recipe->mode_count > 0))
        return fr_fail(FR_UNBUILT, "modules.json: module \"%.80s\" is not built %s pooling", type,
                       pools ? "after another" : "without or before");
    FR_TRY(read_file(folder, place, "config.json", &c));
    char where[96];
    snprintf(where, sizeof where, "%.64s/config.json", place);
    fr_status status;
    if (pools) {
        status = read_pooling(c, where, hidden, recipe);
        recipe->width = hidden * recipe->mode_count;
    } else if (strcmp(word, "Dense") == 0) {
        status = add_step(recipe, folder, place, c, FR_STEP_DENSE);
    } else if (strcmp(word, "Normalize") == 0) {
        status = add_step(recipe, folder, place, c, FR_STEP_NORMALIZE);
    } else if (strcmp(word, "LayerNorm") == 0) {
        status = add_step(recipe, folder, place, c, FR_STEP_LAYER_NORM);
    } else if (judges) {
        int64_t yes, no, most = model->encoder ? 0 : (int64_t)model->trunk.spec.vocab - 1;
        status = fr_json_int(c, "true_token_id", 0, most, FR_JSON_REQUIRED, where, &yes);
        if (status == FR_OK) status = fr_json_int(c, "false_token_id", 0, most, -1, where, &no);
        if (status == FR_OK) recipe->yes = (int32_t)yes, recipe->no = (int32_t)no;
    } else {
        status = fr_fail(FR_UNBUILT, "modules.json: module \"%.80s\" is not built yet", type);
    }
    json_decref(c);
    return status;
}

static fr_status read_modules(const fr_model *model, const char *folder, size_t hidden, fr_recipe *recipe) {
    json_t *list;
    FR_TRY(read_file(folder, "", "modules.json", &list));
    fr_status status = FR_OK;
    if (list && !json_is_array(list)) status = fr_fail(FR_INPUT, "modules.json: not an array");
    for (size_t i = 0; status == FR_OK && i < json_array_size(list); i++)
        status = add_module(recipe, model, folder, json_array_get(list, i), hidden);
    bool found = list != NULL;
    json_decref(list);
    if (status != FR_OK || found) return status;
    /* If a folder has no list of modules, other files may still say how rows are pooled, and how long texts may be. */
    FR_TRY(read_transformer(model, folder, "", recipe));
    if (model->files.pooling) FR_TRY(read_pooling(model->files.pooling, FR_POOLING_FILE, hidden, recipe));
    recipe->width = hidden * (recipe->mode_count ? recipe->mode_count : 1);
    return FR_OK;
}

static fr_status read_settings(const char *folder, fr_recipe *recipe) {
    static const char where[] = "config_sentence_transformers.json";
    json_t *prompts;
    const char *name, *text;
    json_t *value;
    FR_TRY(read_file(folder, "", where, &recipe->settings));
    if (!recipe->settings) return FR_OK;
    FR_TRY(fr_json_object(recipe->settings, "prompts", where, &prompts));
    FR_TRY(fr_json_text(recipe->settings, "default_prompt_name", where, &recipe->default_prompt));
    json_object_foreach (prompts, name, value) {
        FR_TRY(fr_json_text(prompts, name, where, &text));
        if (strlen(text ? text : "") != json_string_length(value))
            return fr_fail(FR_INPUT, "%s: prompt \"%.60s\" has a zero byte in it", where, name);
    }
    recipe->prompts = prompts;
    if (recipe->default_prompt && !json_string_value(json_object_get(prompts, recipe->default_prompt)))
        return fr_fail(FR_INPUT, "%s: default_prompt_name \"%.60s\" is none of the prompts", where,
                       recipe->default_prompt);
    return FR_OK;
}

/* Reads the function that is applied to scores. Its key is looked for in three places, one after the other: in
 * config.json where newer files have it, in config.json where older files have it, and in the settings. If the key is
 * in none of them, the function is the sigmoid. */
static fr_status read_scoring(const fr_model *model, fr_recipe *recipe) {
    json_t *own;
    const json_t *config = model->files.config;
    recipe->scoring = FR_DENSE_SIGMOID;
    if (!config) return FR_OK;
    FR_TRY(fr_json_object(config, "sentence_transformers", "config.json", &own));
    if (json_object_get(own, "activation_fn"))
        return read_activation(own, "activation_fn", FR_DENSE_SIGMOID, "config.json", &recipe->scoring);
    const json_t *older = json_object_get(config, "sbert_ce_default_activation_function");
    if (older && !json_is_null(older))
        return read_activation(config, "sbert_ce_default_activation_function", FR_DENSE_SIGMOID, "config.json",
                               &recipe->scoring);
    return read_activation(recipe->settings, "activation_fn", FR_DENSE_SIGMOID, "config_sentence_transformers.json",
                           &recipe->scoring);
}

/* Reads from the tokenizer's settings how many tokens of a text are kept, which ones are kept, and whether tokens have
 * types. */
static fr_status read_tokenizer(const char *folder, fr_recipe *recipe) {
    static const char where[] = "tokenizer_config.json";
    json_t *c;
    double most = 0;
    FR_TRY(read_file(folder, "", where, &c));
    fr_status status = fr_json_real(c, "model_max_length", 0, 1e300, 0, where, &most);
    const char *side = json_string_value(json_object_get(c, "truncation_side"));
    recipe->cuts_begin = side && strcmp(side, "left") == 0;
    const json_t *inputs = json_object_get(c, "model_input_names");
    const char *class = json_string_value(json_object_get(c, "tokenizer_class"));
    /* Among the classes of these models' tokenizers, only BERT's gives token types. */
    if (class) recipe->typed = strncmp(class, "Bert", 4) == 0;
    if (json_is_array(inputs)) recipe->typed = false;
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        const char *name = json_string_value(json_array_get(inputs, i));
        recipe->typed |= name && strcmp(name, "token_type_ids") == 0;
    }
    json_decref(c);
    if (status == FR_OK && recipe->limit == 0 && most >= 1 && most < 1 << 24) recipe->limit = (size_t)most;
    return status;
}

static fr_status read_gguf(const fr_model *model, size_t hidden, fr_recipe *recipe) {
    static const fr_pool_mode by_number[] = {
        [FR_POOLING_MEAN] = FR_POOL_MEAN, [FR_POOLING_CLS] = FR_POOL_CLS, [FR_POOLING_LAST] = FR_POOL_LAST};
    recipe->width = hidden;
    if (model->pooling == FR_POOLING_NONE || model->pooling == FR_POOLING_RANK) return FR_OK;
    recipe->modes[recipe->mode_count++] = by_number[model->pooling];
    /* A file that was converted with EmbeddingGemma's dense layers contains them. */
    for (int i = 2; i <= 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "dense_%d.weight", i);
        const fr_tensor *t = fr_tensors_find(&model->files.tensors, name);
        if (!t) continue;
        if (t->dims != 2 || t->shape[0] > DENSE_MAX || t->shape[1] != recipe->width)
            return fr_fail(FR_INPUT, "%s: tensor %s does not read rows of %zu", model->files.path, name, recipe->width);
        fr_recipe_step *step = &recipe->steps[recipe->step_count++];
        *step = (fr_recipe_step){.kind = FR_STEP_DENSE, .in = recipe->width, .out = (size_t)t->shape[0]};
        const fr_map *map = &model->files.files[t->file];
        size_t at = (size_t)((const uint8_t *)t->data - map->bytes);
        FR_TRY(fr_map_fill(map, at, at + t->bytes));
        FR_TRY(take_tensor(&model->files.tensors, name, step->out, step->in, model->files.path, &step->weight));
        recipe->width = step->out;
    }
    /* llama.cpp scales rows to length 1 by default. */
    recipe->steps[recipe->step_count++] =
        (fr_recipe_step){.kind = FR_STEP_NORMALIZE, .in = recipe->width, .out = recipe->width};
    return FR_OK;
}

fr_status fr_recipe_read(const fr_model *model, fr_recipe *recipe) {
    const char *folder = model->files.path;
    size_t hidden = model->encoder ? fr_encoder_fact(model->encoder).hidden : model->trunk.spec.hidden;
    *recipe = (fr_recipe){.width = hidden, .typed = true, .yes = -1, .no = -1, .scoring = FR_DENSE_SIGMOID};
    if (model->files.gguf) return read_gguf(model, hidden, recipe);
    if (!model->encoder && json_is_false(json_object_get(model->files.config, "is_causal")))
        return fr_fail(FR_UNBUILT, "config.json: is_causal false is not built yet for this architecture");
    if (!model->encoder && json_is_true(json_object_get(model->files.config, "use_bidirectional_attention")))
        return fr_fail(FR_UNBUILT, "config.json: use_bidirectional_attention is not built yet for this architecture");
    FR_TRY(read_modules(model, folder, hidden, recipe));
    FR_TRY(read_settings(folder, recipe));
    FR_TRY(read_scoring(model, recipe));
    return read_tokenizer(folder, recipe);
}

void fr_recipe_close(fr_recipe *recipe) {
    for (size_t i = 0; i < recipe->step_count; i++) {
        free(recipe->steps[i].weight);
        free(recipe->steps[i].bias);
        free(recipe->steps[i].residual);
    }
    json_decref(recipe->settings);
    *recipe = (fr_recipe){0};
}
