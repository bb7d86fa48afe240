/* Reads the configuration of block drafters: see block.h.
 *
 * Folders of drafters put their keys in different places:
 *     z-lab           the layers' keys at the top of config.json, the drafter's other keys below "dflash_config"
 *     DSpark          all keys at the top, or the drafter's other keys below "dspark_config"
 *     speculators     the layers' keys in transformer_layer_config, all others at the top
 *     Muse-Glimmer's  all keys at the top; the vocabulary is the target's
 * The speculators library uses z-lab's names of architectures, but numbers the target's layers by their inputs. So its
 * folders are recognized by the key speculators_model_type. Keys of GGUF are llama.cpp's. */
#include "src/engine/draft/block.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/draft/drafter_target.h"
#include "src/engine/families/architecture.h"
#include "src/engine/families/config.h"

static const char where[] = "config.json";

enum { IDS_MAX = 1 << 24, WINDOW_MAX = 1 << 24, DEFAULT_BLOCK = 16, BLOCK_MAX = 1 << 12 };

const char *fr_block_word(fr_block_kind kind) {
    static const char *const words[] = {"dflash", "dflash2", "dspark"};
    return words[kind];
}

/* ----------------------------------------------------------------------------------------------------------- layers */

/* Default sizes of a block drafter's layers. These layers attend to positions before and after their own position. Most
 * families refuse such layers by the first row of fr_size_keys (is_causal). fr_family_block accepts these layers, so
 * its table of keys begins after that row. */
static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 151936, .hidden = 4096, .layers = 5, .context_limit = 32768, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 32, .head_dim = 128, .qk_norm = true},
              .ffn = {.width = 22016, .activation = FR_SILU}}};

static const fr_model_spec muse_defaults = {
    .trunk = {.vocab = 202048,
              .hidden = 6656,
              .layers = 5,
              .context_limit = 131072,
              .eps = 1e-5F,
              .rope = {{.neox = true, .theta = 500000}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 8, .head_dim = 128, .qk_norm = true},
              .ffn = {.width = 19968, .activation = FR_SILU}}};

static const fr_config_row own_rows[] = {FR_ONLY("hidden_act", "silu"),
                                         FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                         FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                         {0}};

const fr_family fr_family_block = {.architectures = (const char *const[]){"dflash", NULL},
                                   .gguf = "dflash",
                                   .tokenizer = "gpt2",
                                   .pre = "qwen2",
                                   .finds_biases = true,
                                   .defaults = &defaults,
                                   .rows = {own_rows, fr_size_keys + 1, fr_head_keys},
                                   .rope = fr_rope_whole_heads,
                                   .shape = fr_layers_alike,
                                   .names = &fr_block_names};

/* Reads the configuration of the layers. text: in a folder, the JSON object with the layers' keys. muse: the folder
 * contains Muse-Glimmer's own drafter. */
static fr_status read_layers(fr_block_config *c, const json_t *text, bool muse, fr_weights *weights) {
    const fr_gguf *gguf = weights->files->gguf;
    const fr_source source = {.root = text,
                              .text = text,
                              .gguf = gguf,
                              .where = gguf ? gguf->path : where,
                              .weights = weights,
                              .drafter = true};
    fr_family family = fr_family_block;
    if (muse) family.defaults = &muse_defaults;
    return fr_family_read(&family, &source, &c->spec);
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

/* The JSON objects of a drafter's config.json. The drafter's own keys are in config.json itself, or in an object within
 * config.json. The layers' keys may be in another object. */
typedef struct folder {
    const json_t *root, *text;
    json_t *below;
    const fr_weights *weights;
    bool speculators, muse; /* muse: Muse-Glimmer's own drafter */
} folder;

/* Returns the JSON object that has this key. If the object within config.json has the key, this object is returned,
 * otherwise config.json itself. */
static const json_t *holder(const folder *f, const char *key) {
    const json_t *value = json_object_get(f->below, key);
    return value && !json_is_null(value) ? f->below : f->root;
}

static fr_status read_size(const folder *f, const char *key, int64_t low, int64_t high, int64_t fallback,
                           size_t *value) {
    return fr_json_size(holder(f, key), key, low, high, fallback, where, value);
}

static fr_status read_flag(const folder *f, const char *key, bool fallback, bool *value) {
    return fr_json_bool(holder(f, key), key, fallback, where, value);
}

static fr_status read_real(const folder *f, const char *key, double low, double high, double fallback, float *value) {
    double real;
    FR_TRY(fr_json_real(holder(f, key), key, low, high, fallback, where, &real));
    *value = (float)real;
    return FR_OK;
}

static bool said(const folder *f, const char *key) {
    const json_t *value = json_object_get(holder(f, key), key);
    return value && !json_is_null(value);
}

static fr_status open_folder(fr_block_config *c, folder *f, const fr_weights *weights) {
    const char *type, *architecture = fr_checkpoint_architecture(weights->files);
    json_t *nested;
    *f = (folder){.root = weights->files->config, .weights = weights};
    FR_TRY(fr_json_text(f->root, "speculators_model_type", where, &type));
    FR_TRY(fr_json_object(f->root, "transformer_layer_config", where, &nested));
    FR_TRY(fr_json_object(f->root, "dflash_config", where, &f->below));
    if (!f->below) FR_TRY(fr_json_object(f->root, "dspark_config", where, &f->below));
    f->speculators = type != NULL;
    f->muse = strcmp(architecture, "MuseGlimmerAssistantModel") == 0;
    f->text = nested ? nested : f->root;
    c->kind = strstr(architecture, "DSpark")    ? FR_BLOCK_DSPARK
              : strstr(architecture, "DFlash2") ? FR_BLOCK_DFLASH2
                                                : FR_BLOCK_DFLASH;
    for (fr_block_kind kind = 0; type && kind < FR_BLOCK_KINDS; kind++) {
        if (strcmp(type, fr_block_word(kind)) != 0) continue;
        c->kind = kind;
        return FR_OK;
    }
    return type ? fr_fail(FR_UNBUILT, "%s: speculators_model_type \"%.40s\" is not built", where, type) : FR_OK;
}

/* Spreads the layers evenly between the second layer and the third layer from the end. Numbers are rounded to the
 * nearest integer, and halves to the even one. A single layer is the middle one. */
fr_aux_layers fr_block_spread_layers(size_t count, size_t targets) {
    fr_aux_layers layers = {.count = count, .layer = {targets / 2 + 1}};
    for (size_t i = 0; count > 1 && i < count; i++) {
        size_t far = i * (targets - 4), whole = 1 + far / (count - 1), twice = 2 * (far % (count - 1));
        bool up = twice > count - 1 || (twice == count - 1 && whole % 2);
        layers.layer[i] = whole + up + 1;
    }
    return layers;
}

/* Reads which layers of the target the drafter reads. aux_layers has the numbers of the layers whose inputs are read.
 * z-lab's list has the numbers of the layers whose outputs are read. */
static fr_status read_taps(fr_block_config *c, const folder *f, const fr_model *target) {
    const char *key = f->speculators ? "aux_hidden_state_layer_ids" : "target_layer_ids";
    const json_t *list = json_object_get(holder(f, key), key);
    size_t targets, step = f->speculators ? 0 : 1;
    FR_TRY(
        read_size(f, "num_target_layers", 1, FR_LAYERS_MAX, target ? (int64_t)target->trunk.spec.layers : 0, &targets));
    if (target) FR_TRY(fr_drafter_check_number(f->weights, "num_target_layers", targets, target->trunk.spec.layers));
    c->aux_layers.count = json_array_size(list);
    if (f->muse && (!list || json_is_null(list))) {
        c->aux_layers = (fr_aux_layers){5, {2, 14, 26, 38, 50}};
        return FR_OK;
    }
    if (!list || json_is_null(list)) {
        if (targets < 5)
            return fr_fail(FR_INPUT, "%s: \"%s\" is missing, and the target's %zu layers are too few to choose from",
                           where, key, targets);
        if (f->speculators) {
            c->aux_layers = (fr_aux_layers){3, {2, targets / 2, targets - 3}};
        } else if (c->spec.trunk.layers <= FR_AUX_LAYERS) {
            c->aux_layers = fr_block_spread_layers(c->spec.trunk.layers, targets);
        }
        return FR_OK;
    }
    if (c->aux_layers.count == 0 || c->aux_layers.count > FR_AUX_LAYERS)
        return fr_fail(FR_INPUT, "%s: \"%s\" is no array of 1 to %d layers", where, key, FR_AUX_LAYERS);
    for (size_t i = 0; i < c->aux_layers.count; i++) {
        json_int_t layer = json_integer_value(json_array_get(list, i));
        if (!json_is_integer(json_array_get(list, i)) || layer < 0 || layer >= FR_LAYERS_MAX)
            return fr_fail(FR_INPUT, "%s: \"%s\" has no layer at index %zu", where, key, i);
        c->aux_layers.layer[i] = (size_t)layer + step;
    }
    return FR_OK;
}

/* Reads which layers slide. A window has an effect if use_sliding_window is on, as in transformers' Qwen3
 * configuration, or if use_swa is on below dflash_config. If there are no layer_types, the layers from
 * max_window_layers on slide, also as in the Qwen3 configuration. Muse-Glimmer's own drafter differs: its window always
 * has an effect, all its layers slide if layer_types does not say which, and a row sees sliding_window positions before
 * and after its own position. */
static fr_status read_sliding(fr_block_config *c, const folder *f) {
    const fr_source source = {.text = f->text, .where = where};
    size_t layers = c->spec.trunk.layers, first;
    bool below, listed;
    FR_TRY(fr_source_words(&source, "layer_types", "sliding_attention", "full_attention", layers, c->slides, &listed));
    if (f->muse) {
        for (size_t i = 0; i < layers && !listed; i++) c->slides[i] = true;
        FR_TRY(fr_json_size(f->text, "sliding_window", 1, WINDOW_MAX, 2048, where, &c->sight.window));
        c->sight.window++;
        return FR_OK;
    }
    FR_TRY(fr_window_from_json(f->text, where, &first, &c->sight.window));
    FR_TRY(fr_json_bool(f->below, "use_swa", false, where, &below));
    if (below)
        return fr_json_size(f->below, "swa_window_size", 1, WINDOW_MAX, FR_JSON_REQUIRED, where, &c->sight.window);
    for (size_t i = first; i < layers && !listed; i++) c->slides[i] = true;
    return FR_OK;
}

/* Reads whether the rows of a block see later rows. In Muse-Glimmer's own drafter they always do. In z-lab's folders
 * one key may say this for all layers. The classes of the speculators library give all rows of a block the same window
 * (c->sight.shared). If these classes have no window, sliding layers are like full layers. These classes have trained
 * every DSpark drafter, and the drafters in folders of the library's own form. */
static fr_status read_sight(fr_block_config *c, const folder *f) {
    bool flag;
    FR_TRY(read_sliding(c, f));
    if (f->muse) return FR_OK;
    c->sight.shared = f->speculators || c->kind == FR_BLOCK_DSPARK;
    c->sight.sliding_causal = true;
    if (c->sight.shared && !c->sight.window) memset(c->slides, 0, sizeof c->slides);
    if (f->speculators) {
        FR_TRY(read_flag(f, "sliding_window_non_causal", c->kind == FR_BLOCK_DFLASH2, &flag));
        c->sight.sliding_causal = !flag;
        return FR_OK;
    }
    const char *key = said(f, "is_causal") ? "is_causal" : "causal";
    if (!said(f, key)) return FR_OK;
    FR_TRY(read_flag(f, key, false, &flag));
    c->sight.full_causal = c->sight.sliding_causal = flag;
    return FR_OK;
}

/* Reads the keys of DFlash2's convolutions and selector, and of DSpark's heads. */
static fr_status read_kind(fr_block_config *c, const folder *f) {
    size_t hidden = c->spec.trunk.hidden;
    const char *head;
    if (c->kind == FR_BLOCK_DFLASH2) {
        FR_TRY(read_size(f, "conv_kernel_size", 1, FR_STEP_MAX, 2, &c->conv_taps));
        FR_TRY(read_size(f, "conv_group_size", 1, (int64_t)hidden, 16, &c->conv_group));
        FR_TRY(read_size(f, "selector_rank", 1, 1 << 16, 256, &c->rank));
        FR_TRY(read_size(f, "selector_top_k", 1, 1 << 10, 16, &c->top_k));
    }
    if (c->kind != FR_BLOCK_DSPARK) return FR_OK;
    FR_TRY(read_size(f, "markov_rank", 0, 1 << 16, 256, &c->rank));
    FR_TRY(fr_json_text(holder(f, "markov_head_type"), "markov_head_type", where, &head));
    if (head && strcmp(head, "vanilla") != 0)
        return fr_fail(FR_UNBUILT, "%s: markov_head_type \"%.40s\" is not built, only \"vanilla\"", where, head);
    FR_TRY(read_flag(f, "enable_confidence_head", true, &c->confidence));
    return read_flag(f, "confidence_head_with_markov", true, &c->confidence_sees_draft);
}

/* Refuses keys that ask for a computation that is not supported. */
static fr_status check_rest(const folder *f) {
    bool sinks;
    float scale;
    FR_TRY(read_flag(f, "attention_sink_bias", false, &sinks));
    if (sinks) return fr_fail(FR_UNBUILT, "%s: attention_sink_bias is not built", where);
    FR_TRY(read_real(f, "attention_value_scale", -1e6, 1e6, 1, &scale));
    return scale == 1.0F ? FR_OK
                         : fr_fail(FR_UNBUILT, "%s: attention_value_scale %g is not built", where, (double)scale);
}

static fr_status from_json(fr_block_config *c, fr_weights *weights, const fr_model *target) {
    folder f;
    int64_t mask;
    size_t width;
    bool neox;
    FR_TRY(open_folder(c, &f, weights));
    FR_TRY(read_layers(c, f.text, f.muse, weights));
    if (f.muse && target) c->spec.trunk.vocab = target->trunk.spec.vocab;
    FR_TRY(fr_json_bool(f.text, "rope_is_neox_style", true, where, &neox));
    c->spec.trunk.rope[0].neox = neox;
    FR_TRY(read_size(&f, "block_size", 2, BLOCK_MAX,
                     f.speculators                ? 8
                     : c->kind == FR_BLOCK_DSPARK ? 7
                                                  : DEFAULT_BLOCK,
                     &c->block));
    c->mask_key = "mask_token_id";
    FR_TRY(fr_json_int(holder(&f, c->mask_key), c->mask_key, 0, INT32_MAX, FR_JSON_REQUIRED, where, &mask));
    c->mask = (int32_t)mask;
    FR_TRY(read_flag(&f, "sample_from_anchor", c->kind == FR_BLOCK_DSPARK, &c->from_anchor));
    FR_TRY(read_size(&f, "draft_vocab_size", 1, IDS_MAX, (int64_t)c->spec.trunk.vocab, &c->draft_vocab));
    FR_TRY(fr_json_size(f.root, "target_hidden_size", 1, 1 << 17, (int64_t)c->spec.trunk.hidden, where, &width));
    FR_TRY(fr_drafter_check_number(weights, "target_hidden_size", width, c->spec.trunk.hidden));
    FR_TRY(read_taps(c, &f, target));
    FR_TRY(read_sight(c, &f));
    FR_TRY(read_real(&f, "input_embedding_scale", -1e6, 1e6, 1, &c->embedding_scale));
    c->target_scale = !f.speculators && c->kind != FR_BLOCK_DSPARK;
    FR_TRY(read_real(&f, "output_multiplier", -1e6, 1e6, 1, &c->multiplier));
    FR_TRY(read_real(&f, "final_logit_softcapping", 0, 1e6, 0, &c->softcap));
    FR_TRY(read_kind(c, &f));
    FR_TRY(check_rest(&f));
    return fr_drafter_read_architecture(f.root, where, &c->target);
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* Reads the size of the target's vocabulary. It is the number of rows of a table that has a row for each id, if the
 * file has such a table. Otherwise it is the size that the target itself has. If there is no target either, it is the
 * number of tokens that the file lists. */
static fr_status gguf_vocab(fr_block_config *c, const fr_weights *weights, const fr_model *target) {
    static const char *const tables[] = {"token_embd.weight", "markov_w1.weight", "selector_predecessor.weight"};
    const fr_gguf_value *tokens = fr_gguf_find(weights->files->gguf, "tokenizer.ggml.tokens");
    size_t vocab = target ? target->trunk.spec.vocab : tokens ? tokens->count : 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const fr_tensor *table = fr_tensors_find(&weights->files->tensors, tables[i]);
        if (table && table->dims == 2 && table->shape[0] <= IDS_MAX) vocab = table->shape[0];
    }
    c->spec.trunk.vocab = vocab;
    if (vocab && vocab <= IDS_MAX) return FR_OK;
    return fr_fail_about(FR_OPT_SPEC_TYPE, FR_USAGE,
                         "%s does not say of how many ids its target is: open it with its target",
                         weights->files->path);
}

static fr_status gguf_taps(fr_block_config *c, const fr_gguf *gguf) {
    static const char key[] = ".target_layers";
    const fr_gguf_value *value = fr_gguf_find(gguf, key);
    int64_t layers[FR_AUX_LAYERS];
    if (!value || value->count == 0 || value->count > FR_AUX_LAYERS)
        return fr_fail(FR_INPUT, "%s: key dflash%s is no array of 1 to %d layers", gguf->path, key, FR_AUX_LAYERS);
    FR_TRY(fr_gguf_ints(gguf, key, 0, FR_LAYERS_MAX, FR_GGUF_REQUIRED, value->count, layers));
    c->aux_layers.count = value->count;
    for (size_t i = 0; i < value->count; i++) c->aux_layers.layer[i] = (size_t)layers[i];
    return FR_OK;
}

/* Reads what a block's rows see. For Muse-Glimmer's own drafter, llama.cpp's converter doesn't write `causal`. So if a
 * drafter for such a target lacks this key, its file means the same as the published folder. */
static fr_status gguf_sight(fr_block_config *c, const fr_gguf *gguf, const fr_model *target) {
    static const char pattern[] = ".attention.sliding_window_pattern";
    int64_t slides[FR_LAYERS_MAX] = {0};
    bool causal;
    FR_TRY(fr_gguf_size(gguf, ".attention.sliding_window", 0, WINDOW_MAX, 0, &c->sight.window));
    if (fr_gguf_find(gguf, pattern)) FR_TRY(fr_gguf_ints(gguf, pattern, 0, 1, 0, c->spec.trunk.layers, slides));
    for (size_t i = 0; i < c->spec.trunk.layers; i++) c->slides[i] = slides[i] != 0;
    if (!fr_gguf_find(gguf, ".attention.causal")) {
        bool muse = target && fr_model_is_of(target, "muse-glimmer");
        c->sight.sliding_causal = !muse;
        if (muse && c->sight.window) c->sight.window++;
        return FR_OK;
    }
    FR_TRY(fr_gguf_bool(gguf, ".attention.causal", false, &causal));
    c->sight.full_causal = c->sight.sliding_causal = causal;
    return FR_OK;
}

static fr_status gguf_real(const fr_gguf *gguf, const char *key, double fallback, float *value) {
    double real;
    FR_TRY(fr_gguf_real(gguf, key, -1e6, 1e6, fallback, &real));
    *value = (float)real;
    return FR_OK;
}

static fr_status gguf_kind(fr_block_config *c, const fr_weights *weights) {
    const fr_gguf *gguf = weights->files->gguf;
    const fr_tensor *w1 = fr_tensors_find(&weights->files->tensors, "markov_w1.weight");
    c->kind = w1                                                                    ? FR_BLOCK_DSPARK
              : fr_tensors_find(&weights->files->tensors, "selector_hidden.weight") ? FR_BLOCK_DFLASH2
                                                                                    : FR_BLOCK_DFLASH;
    if (c->kind == FR_BLOCK_DFLASH2) {
        FR_TRY(fr_gguf_size(gguf, ".conv_kernel_size", 1, FR_STEP_MAX, 2, &c->conv_taps));
        FR_TRY(fr_gguf_size(gguf, ".conv_group_size", 1, (int64_t)c->spec.trunk.hidden, 16, &c->conv_group));
        FR_TRY(fr_gguf_size(gguf, ".selector_rank", 1, 1 << 16, 256, &c->rank));
        FR_TRY(fr_gguf_size(gguf, ".selector_top_k", 1, 1 << 10, 16, &c->top_k));
    }
    if (c->kind != FR_BLOCK_DSPARK) return FR_OK;
    c->rank = w1->dims == 2 && w1->shape[1] <= 1 << 16 ? w1->shape[1] : 0;
    const fr_tensor *confidence = fr_tensors_find(&weights->files->tensors, "conf_proj.weight");
    const fr_tensor *bias = fr_tensors_find(&weights->files->tensors, "conf_proj.bias");
    size_t width = confidence ? confidence->shape[confidence->dims - 1] : 0;
    c->confidence = confidence || bias; /* if only one of the two tensors exists, binding fails with a line that names
                                         * the missing one */
    c->confidence_sees_draft = width != c->spec.trunk.hidden;
    return FR_OK;
}

static fr_status from_gguf(fr_block_config *c, fr_weights *weights, const fr_model *target) {
    const fr_gguf *gguf = weights->files->gguf;
    const fr_tensor *head = fr_tensors_find(&weights->files->tensors, "output.weight");
    int64_t mask;
    float value_scale, scale;
    FR_TRY(read_layers(c, NULL, false, weights));
    FR_TRY(gguf_vocab(c, weights, target));
    FR_TRY(fr_gguf_size(gguf, ".block_size", 2, BLOCK_MAX, DEFAULT_BLOCK, &c->block));
    c->mask_key = "tokenizer.ggml.mask_token_id";
    FR_TRY(fr_gguf_int(gguf, c->mask_key, 0, INT32_MAX, FR_GGUF_REQUIRED, &mask));
    c->mask = (int32_t)mask;
    FR_TRY(gguf_taps(c, gguf));
    FR_TRY(gguf_sight(c, gguf, target));
    FR_TRY(gguf_kind(c, weights));
    FR_TRY(fr_gguf_bool(gguf, ".sample_from_anchor", c->kind == FR_BLOCK_DSPARK, &c->from_anchor));
    FR_TRY(gguf_real(gguf, ".embedding_scale", 1, &c->embedding_scale));
    FR_TRY(gguf_real(gguf, ".logit_scale", 1, &c->multiplier));
    if (c->multiplier == 0.0F) c->multiplier = 1;
    FR_TRY(gguf_real(gguf, ".final_logit_softcapping", 0, &c->softcap));
    FR_TRY(gguf_real(gguf, ".attention.scale", 0, &scale));
    for (size_t i = 0; i < c->spec.trunk.layers && scale > 0; i++) c->spec.trunk.layer[i].attention.scale = scale;
    FR_TRY(gguf_real(gguf, ".attention.value_scale", 1, &value_scale));
    c->draft_vocab = head && head->dims == 2 ? head->shape[0] : c->spec.trunk.vocab;
    if (value_scale == 1.0F) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: key dflash.attention.value_scale: %g is not built", gguf->path,
                   (double)value_scale);
}

static fr_status check(const fr_block_config *c, const fr_weights *weights, const fr_model *target) {
    const char *path = weights->files->path;
    size_t hidden = c->spec.trunk.hidden, vocab = c->spec.trunk.vocab;
    bool gguf = weights->files->gguf;
    const fr_drafter_target wanted = {.architecture = c->target,
                                      .width_key = gguf ? "dflash.embedding_length" : "hidden_size",
                                      .vocab_key = gguf ? "its own vocabulary" : "vocab_size",
                                      .width = hidden,
                                      .vocab = vocab,
                                      .aux_layers = &c->aux_layers};
    if (target) FR_TRY(fr_drafter_check_target(&wanted, weights, target));
    if (c->aux_layers.count == 0)
        return fr_fail(FR_INPUT, "%s: it names none of the target's layers, and has too many of its own to choose by",
                       path);
    if ((size_t)c->mask >= vocab)
        return fr_fail(FR_INPUT, "%s: %s is %d, the target's ids end at %zu", path, c->mask_key, c->mask, vocab - 1);
    if (c->draft_vocab > vocab)
        return fr_fail(FR_INPUT, "%s: its draft vocabulary of %zu ids is larger than the target's of %zu", path,
                       c->draft_vocab, vocab);
    if (c->kind != FR_BLOCK_DFLASH2) return FR_OK;
    if (hidden % c->conv_group)
        return fr_fail(FR_INPUT, "%s: conv_group_size %zu does not divide the width of %zu", path, c->conv_group,
                       hidden);
    if (c->top_k > c->draft_vocab)
        return fr_fail(FR_INPUT, "%s: selector_top_k %zu is more than the %zu ids that are scored", path, c->top_k,
                       c->draft_vocab);
    return c->draft_vocab == vocab
               ? FR_OK
               : fr_fail(FR_UNBUILT, "%s: DFlash2 with a draft vocabulary of its own is not built", path);
}

fr_status fr_block_config_read(fr_block_config *c, fr_weights *weights, const fr_model *target) {
    *c = (fr_block_config){0};
    fr_status status = weights->files->gguf ? from_gguf(c, weights, target) : from_json(c, weights, target);
    if (status == FR_OK) status = check(c, weights, target);
    if (status == FR_OK) return FR_OK;
    free(c->spec.trunk.layer);
    c->spec.trunk.layer = NULL;
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

fr_status fr_block_put_keys(const fr_drafter *drafter, fr_gguf_writer *w) {
    const fr_block_net *net = drafter->net;
    const fr_block_config *c = &net->config;
    fr_gguf_put_u32(w, ".block_size", (uint32_t)c->block);
    fr_gguf_put_array(w, ".target_layers", FR_GGUF_I32, c->aux_layers.count);
    for (size_t i = 0; i < c->aux_layers.count; i++) fr_gguf_add_u32(w, (uint32_t)c->aux_layers.layer[i]);
    if (c->kind == FR_BLOCK_DFLASH2) {
        fr_gguf_put_u32(w, ".conv_kernel_size", (uint32_t)c->conv_taps);
        fr_gguf_put_u32(w, ".conv_group_size", (uint32_t)c->conv_group);
        fr_gguf_put_u32(w, ".selector_rank", (uint32_t)c->rank);
        fr_gguf_put_u32(w, ".selector_top_k", (uint32_t)c->top_k);
    }
    if (c->kind == FR_BLOCK_DSPARK) {
        fr_gguf_put_bool(w, ".sample_from_anchor", c->from_anchor);
        fr_gguf_put_bool(w, ".has_confidence_head", c->confidence);
    }
    bool slides = false;
    for (size_t i = 0; i < c->spec.trunk.layers; i++) slides |= c->slides[i];
    if (slides && c->sight.shared)
        return fr_fail(FR_UNBUILT,
                       "%s: windows that all rows of a block share have no form in GGUF: the drafter stays a "
                       "folder",
                       drafter->files.path);
    if (slides) {
        fr_gguf_put_u32(w, ".attention.sliding_window", (uint32_t)c->sight.window);
        fr_gguf_put_array(w, ".attention.sliding_window_pattern", FR_GGUF_BOOL, c->spec.trunk.layers);
        for (size_t i = 0; i < c->spec.trunk.layers; i++) fr_gguf_add_bool(w, c->slides[i]);
    }
    if (c->sight.full_causal == c->sight.sliding_causal) fr_gguf_put_bool(w, ".attention.causal", c->sight.full_causal);
    float scale = c->embedding_scale;
    if (c->target_scale && drafter->target) scale *= drafter->target->trunk.spec.embedding_scale;
    if (scale != 1.0F) fr_gguf_put_f32(w, ".embedding_scale", scale);
    if (c->multiplier != 1.0F) fr_gguf_put_f32(w, ".logit_scale", c->multiplier);
    if (c->softcap != 0.0F) fr_gguf_put_f32(w, ".final_logit_softcapping", c->softcap);
    fr_gguf_put_u32(w, "tokenizer.ggml.mask_token_id", (uint32_t)c->mask);
    return fr_family_put(&fr_family_block, &net->trunk.spec, 0, drafter->files.path, w);
}
