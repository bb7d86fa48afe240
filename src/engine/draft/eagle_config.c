/* Reads the configuration of EAGLE drafters: see eagle.h.
 *
 * A folder's config.json has one of two forms. It is flat, like Llama's with more keys (SpecForge, AngelSlim), or it
 * has the layer's keys in transformer_layer_config (speculators). Keys of GGUF are llama.cpp's.
 *
 * A list of the target's layers has two meanings. At the top of config.json (vLLM, speculators) and in GGUF, the list
 * names layers whose inputs the drafter reads. Within eagle_config, the list names layers whose outputs the drafter
 * reads. SpecForge and Model Optimizer train in this second way, and SGLang adds one to each number (SpecForge
 * algorithms/model_providers.py; SGLang models/llama.py, set_eagle3_layers_to_capture). */
#include "src/engine/draft/eagle.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/draft/drafter_target.h"
#include "src/engine/families/config.h"
#include "src/engine/families/config_keys.h"

static const char where[] = "config.json";

enum { IDS_MAX = 1 << 24 };

/* Checks the configuration. several: the drafter may have more than one layer. */
static fr_status check(const fr_eagle_config *c, const fr_weights *weights, const fr_model *target, bool several) {
    if (c->spec.trunk.layers != 1 && !several)
        return fr_fail(FR_INPUT, "%s: %s is %zu, a drafter of %s has 1 layer", weights->files->path,
                       weights->files->gguf ? "eagle3.block_count" : "num_hidden_layers", c->spec.trunk.layers,
                       weights->files->gguf ? "EAGLE-3 in GGUF" : "EAGLE-1");
    const fr_drafter_target wanted = {.architecture = c->target,
                                      .width_key = c->width_key,
                                      .vocab_key = c->vocab_key,
                                      .width = c->target_hidden,
                                      .vocab = c->spec.trunk.vocab,
                                      .aux_layers = &c->aux_layers};
    if (target) FR_TRY(fr_drafter_check_target(&wanted, weights, target));
    if (c->draft_vocab <= c->spec.trunk.vocab) return FR_OK;
    return fr_fail(FR_INPUT, "%s: its draft vocabulary of %zu ids is larger than the target's of %zu",
                   weights->files->path, c->draft_vocab, c->spec.trunk.vocab);
}

/* If the files list no target layers to read, three are read: an early, a middle and a late one. */
enum { DEFAULT_AUX_LAYERS = 3 };

static fr_status default_aux_layers(fr_eagle_config *c, const fr_weights *weights, const fr_model *target) {
    c->default_aux_layers = true;
    c->aux_layers = (fr_aux_layers){.count = DEFAULT_AUX_LAYERS};
    if (!target) return FR_OK;
    size_t layers = target->trunk.spec.layers;
    if (layers < DEFAULT_AUX_LAYERS)
        return fr_fail(FR_INPUT, "%s: it reads three of the target's layers, which has %zu", weights->files->path,
                       layers);
    c->aux_layers = (fr_aux_layers){DEFAULT_AUX_LAYERS, {2, layers / 2, layers - 3}};
    return FR_OK;
}

/* Gives the target's width for files that don't name it. If there is a target, this is the target's own width.
 * Otherwise it is the number of columns of fc that belong to each aux layer. The list of aux layers must have been read
 * before. */
static int64_t fallback_width(const fr_eagle_config *c, const fr_weights *weights, const fr_model *target) {
    if (target) return (int64_t)target->trunk.spec.hidden;
    const fr_tensor *fc = fr_tensors_find(&weights->files->tensors, "fc.weight");
    size_t aux_layers = c->aux_layers.count ? c->aux_layers.count : DEFAULT_AUX_LAYERS;
    return fc && fc->dims == 2 ? (int64_t)(fc->shape[1] / aux_layers) : (int64_t)c->spec.trunk.hidden;
}

/* Reads the layers' configuration, which is Llama's or another family's. text: in a folder, the object with the
 * layers' keys. */
static fr_status read_layers(fr_eagle_config *c, const fr_family *family, const json_t *text, fr_weights *weights) {
    const fr_gguf *gguf = weights->files->gguf;
    const fr_source source = {.root = text,
                              .text = text,
                              .gguf = gguf,
                              .where = gguf ? gguf->path : where,
                              .weights = weights,
                              .drafter = true};
    return fr_family_read(family, &source, &c->spec);
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

/* Gives the object that has a key. This is config.json itself, or the object within it in which some files put the keys
 * that do not belong to the layer. */
static const json_t *holder(const json_t *root, const json_t *below, const char *key) {
    const json_t *value = json_object_get(root, key);
    return value && !json_is_null(value) ? root : below;
}

static fr_status read_aux_layers(fr_eagle_config *c, const json_t *root, const json_t *below) {
    static const char key[] = "eagle_aux_hidden_state_layer_ids";
    const json_t *from = holder(root, below, key), *list = json_object_get(from, key);
    c->aux_layers.count = json_array_size(list);
    if (!list || json_is_null(list)) return FR_OK;
    if (c->aux_layers.count == 0 || c->aux_layers.count > FR_AUX_LAYERS)
        return fr_fail(FR_INPUT, "%s: \"%s\" is no array of 1 to %d layers", where, key, FR_AUX_LAYERS);
    for (size_t i = 0; i < c->aux_layers.count; i++) {
        json_int_t layer = json_integer_value(json_array_get(list, i));
        if (!json_is_integer(json_array_get(list, i)) || layer < 0)
            return fr_fail(FR_INPUT, "%s: \"%s\" has no layer at index %zu", where, key, i);
        c->aux_layers.layer[i] = (size_t)layer + (from == root ? 0 : 1);
    }
    return FR_OK;
}

static fr_status read_flags(fr_eagle_config *c, const json_t *root, const json_t *below) {
    const struct {
        const char *key;
        bool *flag;
    } flags[] = {{"norm_before_residual", &c->norm_before_residual},
                 {"norm_before_fc", &c->norm_before_fc},
                 {"fc_norm", &c->fc_norm},
                 {"norm_output", &c->norm_output}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        FR_TRY(fr_json_bool(holder(root, below, flags[i].key), flags[i].key, false, where, flags[i].flag));
    if (c->norm_before_fc && c->fc_norm)
        return fr_fail(FR_INPUT, "%s: \"norm_before_fc\" and \"fc_norm\" exclude each other", where);
    return FR_OK;
}

/* Reads the kinds of layers of Llama's form. Llama's own configuration has no window. But the classes of drafters read
 * a window for those layers that layer_types calls sliding. */
static fr_status shape_llama(const fr_source *source, fr_model_spec *spec) {
    spec->kinds.first = FR_LAYERS_MAX;
    FR_TRY(fr_window_of_all(source, spec));
    return fr_layers_by_kind(source, spec);
}

/* Reads the kind of layers, which has a name in folders of the speculators library. Qwen3's layers apply a norm to the
 * heads of queries and keys. The class of EAGLE's authors has a single layer, which it calls midlayer, and doesn't read
 * num_hidden_layers (SafeAILab/EAGLE, model/cnets.py). So in some files this key has the target's number of layers. */
static fr_status read_folder_layers(fr_eagle_config *c, const json_t *text, fr_weights *weights) {
    const char *type;
    fr_family llama = fr_family_llama;
    FR_TRY(fr_json_text(text, "model_type", where, &type));
    llama.shape = shape_llama;
    FR_TRY(read_layers(c, type && strcmp(type, "qwen3") == 0 ? &fr_family_qwen3 : &llama, text, weights));
    if (fr_weights_has_any(weights, "midlayer.") && !fr_weights_has_any(weights, "layers.1.")) c->spec.trunk.layers = 1;
    return FR_OK;
}

static fr_status eagle3_from_json(fr_eagle_config *c, fr_weights *weights, const fr_model *target) {
    const json_t *root = weights->files->config;
    json_t *nested, *below;
    FR_TRY(fr_json_object(root, "transformer_layer_config", where, &nested));
    FR_TRY(fr_json_object(root, "eagle_config", where, &below));
    FR_TRY(read_folder_layers(c, nested ? nested : root, weights));
    c->vocab_key = "vocab_size";
    FR_TRY(fr_json_size(root, "draft_vocab_size", 1, IDS_MAX, (int64_t)c->spec.trunk.vocab, where, &c->draft_vocab));
    FR_TRY(read_aux_layers(c, root, below));
    FR_TRY(fr_json_size(root, "target_hidden_size", 1, 1 << 17, fallback_width(c, weights, target), where,
                        &c->target_hidden));
    FR_TRY(fr_drafter_read_architecture(root, where, &c->target));
    return read_flags(c, root, below);
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* Reads the list of the target's layers, which older files store under another key. */
static fr_status gguf_aux_layers(fr_eagle_config *c, const fr_gguf *gguf) {
    const char *key = fr_gguf_find(gguf, ".target_layers") ? ".target_layers" : ".extract_layers";
    const fr_gguf_value *value = fr_gguf_find(gguf, key);
    int64_t layers[FR_AUX_LAYERS];
    if (!value) return FR_OK;
    if (value->count == 0 || value->count > FR_AUX_LAYERS)
        return fr_fail(FR_INPUT, "%s: key eagle3%s is no array of 1 to %d layers", gguf->path, key, FR_AUX_LAYERS);
    FR_TRY(fr_gguf_ints(gguf, key, 0, 1 << 20, 0, value->count, layers));
    c->aux_layers.count = value->count;
    for (size_t i = 0; i < value->count; i++) c->aux_layers.layer[i] = (size_t)layers[i];
    return FR_OK;
}

/* Reads the size of the target's vocabulary from its key. If the key is missing, the size is the number of rows of the
 * embedding table, or else of a head without ids of its own. If both tensors are missing, the size is that of the
 * target's vocabulary. */
static fr_status gguf_vocab(fr_eagle_config *c, const fr_weights *weights, const fr_model *target) {
    const fr_gguf *gguf = weights->files->gguf;
    const fr_tensors *own = &weights->files->tensors;
    const fr_tensor *rows = fr_tensors_find(own, "token_embd.weight");
    if (!rows && !fr_tensors_find(own, "d2t")) rows = fr_tensors_find(own, "output.weight");
    int64_t fallback = target ? (int64_t)target->trunk.spec.vocab : 0;
    if (rows && rows->dims == 2 && rows->shape[0] <= IDS_MAX) fallback = (int64_t)rows->shape[0];
    bool said = fr_gguf_find(gguf, ".vocab_size");
    c->vocab_key = said ? "eagle3.vocab_size" : "its own vocabulary";
    if (said || fallback) return fr_gguf_size(gguf, ".vocab_size", 1, IDS_MAX, fallback, &c->spec.trunk.vocab);
    return fr_fail_about(FR_OPT_SPEC_TYPE, FR_USAGE,
                         "%s does not say how many ids its target's vocabulary has: "
                         "it can only be opened with its target",
                         gguf->path);
}

static fr_status eagle3_from_gguf(fr_eagle_config *c, fr_weights *weights, const fr_model *target) {
    const fr_gguf *gguf = weights->files->gguf;
    FR_TRY(read_layers(c, &fr_family_llama, NULL, weights));
    FR_TRY(gguf_vocab(c, weights, target));
    FR_TRY(fr_gguf_bool(gguf, ".norm_before_residual", false, &c->norm_before_residual));
    FR_TRY(fr_gguf_bool(gguf, ".norm_before_fc", false, &c->norm_before_fc));
    FR_TRY(gguf_aux_layers(c, gguf));
    FR_TRY(
        fr_gguf_size(gguf, ".target_hidden_size", 1, 1 << 17, fallback_width(c, weights, target), &c->target_hidden));
    const fr_tensor *head = fr_tensors_find(&weights->files->tensors, "output.weight");
    c->draft_vocab = head && head->dims == 2 ? head->shape[0] : c->spec.trunk.vocab;
    return FR_OK;
}

/* Ends the reading of a configuration. After a failure it frees what has been read. */
static fr_status end(fr_eagle_config *c, fr_status status) {
    if (status == FR_OK) return FR_OK;
    free(c->spec.trunk.layer);
    c->spec.trunk.layer = NULL;
    return status;
}

static fr_status read_eagle3(fr_eagle_config *c, fr_weights *weights, const fr_model *target) {
    bool gguf = weights->files->gguf;
    FR_TRY(gguf ? eagle3_from_gguf(c, weights, target) : eagle3_from_json(c, weights, target));
    if (c->aux_layers.count == 0) FR_TRY(default_aux_layers(c, weights, target));
    return check(c, weights, target, !gguf);
}

fr_status fr_eagle3_config_read(fr_eagle_config *c, fr_weights *weights, const fr_model *target) {
    *c = (fr_eagle_config){.width_key = weights->files->gguf ? "eagle3.target_hidden_size" : "target_hidden_size"};
    return end(c, read_eagle3(c, weights, target));
}

static fr_status read_eagle1(fr_eagle_config *c, fr_weights *weights, const fr_model *target) {
    if (weights->files->gguf)
        return fr_fail(FR_UNBUILT, "%s: EAGLE-1 in GGUF is not built: give its published folder", weights->files->path);
    FR_TRY(fr_drafter_read_architecture(weights->files->config, where, &c->target));
    FR_TRY(read_layers(c, &fr_family_llama, weights->files->config, weights));
    c->draft_vocab = c->spec.trunk.vocab;
    c->target_hidden = c->spec.trunk.hidden;
    return check(c, weights, target, false);
}

fr_status fr_eagle1_config_read(fr_eagle_config *c, fr_weights *weights, const fr_model *target) {
    *c = (fr_eagle_config){.width_key = "hidden_size", .vocab_key = "vocab_size"};
    return end(c, read_eagle1(c, weights, target));
}

/* ---------------------------------------------------------------------------------------------------------- writing */

fr_status fr_eagle3_put_keys(const fr_drafter *drafter, fr_gguf_writer *w) {
    const fr_eagle *e = drafter->net;
    const char *what = e->pairs.carries_norm             ? "norm_output"
                       : e->pairs.spec->attention.window ? "sliding_window"
                                                         : NULL;
    if (what)
        return fr_fail(FR_UNBUILT, "%s: %s has no key in GGUF: the drafter stays a folder", drafter->files.path, what);
    fr_gguf_put_array(w, ".target_layers", FR_GGUF_I32, drafter->aux_layers.count);
    for (size_t i = 0; i < drafter->aux_layers.count; i++) fr_gguf_add_u32(w, (uint32_t)drafter->aux_layers.layer[i]);
    fr_gguf_put_u32(w, ".target_hidden_size", (uint32_t)drafter->target->trunk.spec.hidden);
    fr_gguf_put_bool(w, ".norm_before_residual", e->norm_before_residual);
    fr_gguf_put_bool(w, ".norm_before_fc", e->fc_norm_count == 1);
    return fr_family_put(&fr_family_llama, &e->trunk.spec, 0, drafter->files.path, w);
}
