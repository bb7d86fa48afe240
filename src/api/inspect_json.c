/* Describes a model, drafter or vision tower as one JSON object, with the figures that inspect.c gives in words.
 *
 * In: an opened model, drafter or tower. Out: the object and a newline on a stream. Bytes and counts are whole numbers.
 * A fact that does not apply is null or left out. */
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/storage.h"
#include "src/api/inspect.h"
#include "src/language/tokenizer/tokenizer.h"
#include "src/engine/vision/vision_parts.h"

/* An object that is being filled. Once memory has run out, `failed` is true and nothing more is added. */
typedef struct object {
    json_t *json;
    bool failed;
} object;

static void put(object *o, const char *key, json_t *value) {
    o->failed |= json_object_set_new(o->json, key, value) != 0;
}

static void put_count(object *o, const char *key, uint64_t count) {
    put(o, key, json_integer((json_int_t)count));
}

/* Makes a string. Names of files and tensors may have bytes that are not UTF-8; these become question marks. */
static json_t *text_of(const char *text) {
    json_t *value = json_string(text);
    if (value) return value;
    char *copy = strdup(text);
    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c >= 0x80) *c = '?';
    value = copy ? json_string(copy) : NULL;
    free(copy);
    return value;
}

/* Gives a type as options write it: "q8_0". */
static json_t *option_word(fr_dtype type) {
    char word[16];
    snprintf(word, sizeof word, "%s", fr_dtype_name(type));
    for (char *c = word; *c; c++) *c = (char)tolower((unsigned char)*c);
    return json_string(word);
}

/* Counts the used tensors by type: {"BF16": 98, "Q4_0 packed": 3}. */
static json_t *types_of(const fr_weights *weights) {
    object types = {.json = json_object()};
    for (size_t i = 0; i < weights->count; i++) {
        const fr_tensor *tensor = weights->bound[i].tensor;
        char name[48];
        snprintf(name, sizeof name, "%s%s", fr_dtype_name(tensor->type), tensor->packed ? " packed" : "");
        json_int_t before = json_integer_value(json_object_get(types.json, name));
        put(&types, name, json_integer(before + 1));
    }
    if (!types.failed) return types.json;
    json_decref(types.json);
    return NULL;
}

static json_t *tensor_of(const fr_tensor *tensor) {
    object o = {.json = json_object()};
    json_t *shape = json_array();
    for (uint32_t d = 0; d < tensor->dims; d++)
        o.failed |= json_array_append_new(shape, json_integer((json_int_t)tensor->shape[d])) != 0;
    put(&o, "name", text_of(tensor->name));
    put(&o, "type", json_string(tensor->storage ? tensor->storage->method : fr_dtype_name(tensor->type)));
    put(&o, "packed", json_boolean(tensor->packed));
    put(&o, "shape", shape);
    put_count(&o, "bytes", tensor->bytes);
    if (!o.failed) return o.json;
    json_decref(o.json);
    return NULL;
}

static void put_tensors(object *o, const fr_tensors *tensors) {
    json_t *list = json_array();
    for (size_t i = 0; i < tensors->count; i++)
        o->failed |= json_array_append_new(list, tensor_of(&tensors->items[i])) != 0;
    put(o, "tensor_list", list);
}

/* Describes how the matrices of a folder that a quantizer wrote are stored: one object for each kind of storage. */
static void put_storages(object *o, const fr_inspected *what) {
    fr_inspected_storages all = fr_inspected_stored(what);
    json_t *list = json_array();
    for (size_t i = 0; i < all.count; i++) {
        const fr_storage *s = all.of[i].storage;
        object of = {.json = json_object()};
        put(&of, "method", json_string(s->method));
        put_count(&of, "matrices", all.of[i].matrices);
        put_count(&of, "bits", s->codes.bits);
        put_count(&of, "group", s->grouping.group);
        put(&of, "ordered", json_boolean(!s->group_of));
        put(&of, "bits_a_weight", json_real(8.0 * (double)all.of[i].bytes / (double)all.of[i].values));
        o->failed |= of.failed || json_array_append_new(list, of.json) != 0;
    }
    put(o, "storages", list);
    put_count(o, "not_quantized_bytes", all.count ? all.left_bytes : 0);
}

static void put_files(object *o, const fr_inspected *what) {
    fr_inspected_counts counts = fr_inspected_count(what);
    put(o, "kind", json_string(what->kind));
    put(o, "path", text_of(what->files->path));
    put(o, "architecture", text_of(fr_checkpoint_architecture(what->files)));
    put_count(o, "files", what->files->file_count);
    put_count(o, "tensors", what->files->tensors.count);
    put_count(o, "unused_tensors", counts.unused);
    put_count(o, "parameters", counts.parameters);
    put_count(o, "parameters_in_use", counts.used_parameters);
    put_count(o, "weight_bytes", what->weights->bytes);
    put(o, "type", json_string(fr_weights_main_type(what->weights)));
    put(o, "types", types_of(what->weights));
    if (what->files->storages) put_storages(o, what);
    json_t *notes = json_array();
    for (size_t i = 0; i < what->weights->notes.count; i++)
        o->failed |= json_array_append_new(notes, text_of(what->weights->notes.lines[i])) != 0;
    put(o, "notes", notes);
}

static void put_memory(object *o, const fr_session_bytes *memory) {
    object m = {.json = json_object()};
    put_count(&m, "context", memory->context);
    put_count(&m, "target_kv", memory->target_kv);
    put_count(&m, "session", memory->all);
    o->failed |= m.failed;
    put(o, "memory", m.json);
}

static void put_memory_use(object *o, const fr_memory_use *memory_use, const fr_session_bytes *memory) {
    object r = {.json = json_object()};
    put_count(&r, "weights", memory_use->stays);
    put_count(&r, "session", memory->all);
    put_count(&r, "copied", memory_use->own);
    put_count(&r, "mapped", memory_use->mapped);
    put_count(&r, "every_token", memory_use->every);
    if (memory_use->experts) {
        put_count(&r, "experts", memory_use->experts);
        put_count(&r, "experts_a_token", memory_use->token);
    }
    o->failed |= r.failed;
    put(o, "resident", r.json);
}

static void put_vision(object *o, const fr_vision *vision) {
    const fr_vision_config *c = &vision->config;
    object v = {.json = json_object()};
    put_count(&v, "layers", c->layers);
    put_count(&v, "hidden", c->hidden);
    put_count(&v, "heads", c->heads);
    put_count(&v, "patch", c->patch);
    put_count(&v, "merge", c->merge);
    put_count(&v, "out", c->out);
    put_count(&v, "min_pixels", (uint64_t)c->min_pixels / c->pixel_count);
    put_count(&v, "max_pixels", (uint64_t)c->max_pixels / c->pixel_count);
    o->failed |= v.failed;
    put(o, "vision", v.json);
}

static void put_picture(json_t *list, const char *path, const size_t size[2], size_t tokens) {
    json_t *picture = json_pack("{s:I, s:I, s:I}", "width", (json_int_t)size[0], "height", (json_int_t)size[1],
                                "tokens", (json_int_t)tokens);
    if (path) json_object_set_new(picture, "file", text_of(path));
    json_array_append_new(list, picture);
}

/* Lists how many tokens pictures of usual sizes become. After them, lists how many tokens each given picture file
 * becomes. */
static fr_status put_pictures(object *o, const fr_inspected *what) {
    json_t *list = json_array();
    fr_status status = FR_OK;
    for (size_t i = 0; what->vision && i < FR_INSPECTED_SIZES; i++) {
        const size_t *size = fr_inspected_sizes[i];
        fr_image_grid grid;
        if (fr_vision_grid(what->vision, size[0], size[1], &grid) == FR_OK)
            put_picture(list, NULL, size, grid.rows * grid.columns);
    }
    for (size_t i = 0; i < what->how->image_count && status == FR_OK; i++) {
        fr_inspected_picture p;
        status = fr_inspect_image(what, i, &p);
        if (status != FR_OK) continue;
        put_picture(list, what->how->images[i], (const size_t[]){p.width, p.height}, p.tokens);
        json_t *last = json_array_get(list, json_array_size(list) - 1);
        json_object_set_new(last, "tower_multiply_adds", json_real(p.multiply_adds));
        if (p.seconds > 0) json_object_set_new(last, "tower_seconds_estimated", json_real(p.seconds));
    }
    put(o, "pictures", list);
    return status;
}

static void put_ids(object *o, const char *name, const int32_t *ids, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) o->failed |= json_array_append_new(list, json_integer(ids[i])) != 0;
    put(o, name, list);
}

static void put_model(object *o, const fr_inspected *what) {
    const fr_model *model = what->model;
    const fr_trunk *trunk = &model->trunk;
    put(o, "family", model->family->gguf ? json_string(model->family->gguf) : json_null());
    put_count(o, "layers", trunk->spec.layers);
    put_count(o, "hidden", trunk->spec.hidden);
    put_count(o, "vocabulary", trunk->spec.vocab);
    put_count(o, "context_limit", trunk->spec.context_limit);
    put_count(o, "kv_position_bytes", fr_kv_position_bytes(trunk->kv_shapes, trunk->kv_count, what->kv_types));
    if (trunk->recurrent_count) {
        put_count(o, "state_bytes", fr_recurrent_page_bytes(trunk->recurrent_shapes, trunk->recurrent_count));
        put_count(o, "state_draft_bytes", fr_recurrent_position_bytes(trunk->recurrent_shapes, trunk->recurrent_count));
    }
    put(o, "type_k", option_word(what->kv_types.k));
    put(o, "type_v", option_word(what->kv_types.v));
    put_memory(o, &what->memory);
    put_memory_use(o, &what->memory_use, &what->memory);
    put_count(o, "mtp_layers", model->mtp_layers);
    if (what->own) put_count(o, "mtp_bytes", what->own->weights.bytes);
    if (model->vision) put(o, "image_token", json_integer(model->image_token));
    put_ids(o, "eos", model->eos, model->eos_count);
    put_ids(o, "suppressed", model->suppressed, model->suppressed_count);
    put(o, "tokenizer_ids",
        model->tokenizer ? json_integer((json_int_t)fr_tokenizer_count(model->tokenizer)) : json_null());
    put(o, "isa", json_string(model->kernels->isa));
    put_count(o, "threads", model->plan.threads);
    put_count(o, "numa_nodes", (uint64_t)model->plan.nodes);
}

/* For a drafter that was opened with its target, adds the target and the memory of a session with both. For a drafter
 * without its target, adds the target that it needs. */
static void put_fit(object *o, const fr_inspected *what) {
    put(o, "target", what->model ? text_of(what->how->target) : json_null());
    if (what->model) {
        put_memory(o, &what->memory);
        return;
    }
    fr_inspected_needs needs = fr_inspected_need(what);
    object n = {.json = json_object()};
    put(&n, "architecture", needs.architecture ? text_of(needs.architecture) : json_null());
    put_count(&n, "hidden", needs.hidden);
    put_count(&n, needs.deeper ? "layers_at_least" : "layers", needs.layers);
    put_count(&n, "vocabulary", needs.vocab);
    o->failed |= n.failed;
    put(o, "needs", n.json);
}

/* Lists the target's layers whose outputs the drafter reads. Gives null if the drafter reads the three default layers,
 * because these depend on the number of layers of the target. */
static json_t *aux_layers_of(const fr_inspected *what) {
    const fr_drafter *drafter = what->eagle ? what->eagle : what->block;
    const fr_aux_layers *aux_layers = &drafter->aux_layers;
    if (what->eagle && !what->model && ((const fr_eagle *)drafter->net)->needs.default_aux_layers) return json_null();
    json_t *layers = json_array();
    for (size_t i = 0; i < aux_layers->count; i++)
        json_array_append_new(layers, json_integer((json_int_t)aux_layers->layer[i]));
    return layers;
}

static void put_eagle(object *o, const fr_inspected *what) {
    const fr_eagle *e = what->eagle->net;
    put(o, "method", json_string(what->eagle->method->name));
    put_count(o, "layers", e->trunk.spec.layers);
    put_count(o, "hidden", e->trunk.spec.hidden);
    put_count(o, "vocabulary", e->trunk.spec.vocab);
    put_count(o, "rows_a_draft", e->own_head ? e->trunk.head.features : e->trunk.spec.vocab);
    put(o, "target_layers", aux_layers_of(what));
    put_fit(o, what);
}

static void put_block(object *o, const fr_inspected *what) {
    const fr_block_net *net = what->block->net;
    put(o, "method", json_string(what->block->method->name));
    put_count(o, "layers", net->trunk.spec.layers);
    put_count(o, "hidden", net->trunk.spec.hidden);
    put_count(o, "vocabulary", net->trunk.spec.vocab);
    put_count(o, "rows_a_draft", net->config.draft_vocab);
    put_count(o, "block", net->config.block);
    put_count(o, "drafts", net->config.block - !net->config.from_anchor);
    put(o, "target_layers", aux_layers_of(what));
    put_fit(o, what);
}

static void put_mtp(object *o, const fr_inspected *what) {
    const fr_trunk_spec *spec = &what->mtp->target->trunk.spec;
    put(o, "method", json_string(what->mtp->method->name));
    put_count(o, "layers", 1);
    put_count(o, "hidden", spec->hidden);
    put_count(o, "vocabulary", spec->vocab);
    put_count(o, "rows_a_draft", spec->vocab);
    put_fit(o, what);
}

static void put_draft_model(object *o, const fr_inspected *what) {
    const fr_trunk_spec *spec = &fr_drafter_model(what->draft_model)->trunk.spec;
    put(o, "method", json_string(fr_draft_model.name));
    put_count(o, "layers", spec->layers);
    put_count(o, "hidden", spec->hidden);
    put_count(o, "vocabulary", spec->vocab);
    put_count(o, "rows_a_draft", spec->vocab);
    put(o, "target", text_of(what->how->target));
    put_memory(o, &what->memory);
}

static void put_drafter(object *o, const fr_inspected *what) {
    const fr_assistant *a = what->assistant;
    put_count(o, "layers", a->trunk.spec.layers);
    put_count(o, "hidden", a->trunk.spec.hidden);
    put_count(o, "vocabulary", a->trunk.spec.vocab);
    put_count(o, "rows_a_draft", a->clusters ? a->top * a->cluster_size : a->trunk.spec.vocab);
    put(o, "target", what->how->target ? text_of(what->how->target) : json_null());
    if (what->model) put_memory(o, &what->memory);
}

fr_status fr_inspected_print_json(const fr_inspected *what, FILE *out) {
    object o = {.json = json_object()};
    put_files(&o, what);
    if (what->assistant)
        put_drafter(&o, what);
    else if (what->eagle)
        put_eagle(&o, what);
    else if (what->block)
        put_block(&o, what);
    else if (what->mtp)
        put_mtp(&o, what);
    else if (what->draft_model)
        put_draft_model(&o, what);
    else if (what->model)
        put_model(&o, what);
    if (what->vision) put_vision(&o, what->vision);
    if (what->how->tensors) put_tensors(&o, &what->files->tensors);
    char *text = NULL;
    size_t length;
    fr_status status = what->vision || what->how->image_count ? put_pictures(&o, what) : FR_OK;
    if (status == FR_OK) status = fr_json_dump(o.failed ? NULL : o.json, 0, "a description", &text, &length);
    if (status == FR_OK) fprintf(out, "%s\n", text);
    free(text);
    json_decref(o.json);
    return status;
}
