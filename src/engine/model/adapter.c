/* Opens an adapter: see adapter.h.
 *
 * Sources: peft 0.18, tuners/lora; llama.cpp, convert_lora_to_gguf.py and src/llama-adapter.cpp. */
#include "src/engine/model/adapter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_place.h"
#include "formats/map.h"
#include "formats/safetensors.h"
#include "src/engine/weights/bound.h"

enum { NAME_MAX_BYTES = 512 };

/* An adapter's file while it is read. */
typedef struct source {
    fr_adapter *adapter;
    const char *path;      /* the file with the tensors, for error lines */
    const fr_tensors *all; /* the tensors of the adapter's file */
    bool gguf;
    const fr_adapter_config *config; /* NULL: the file is GGUF */
    double alpha;                    /* the adapter's alpha, if the file is GGUF */
} source;

/* The two tensors, a and b, that change one module of the model. */
typedef struct pair {
    const fr_tensor *a, *b;
    char name[NAME_MAX_BYTES]; /* the name of the model's tensor that a and b change */
    size_t rank, cols, features, stack;
    double scale;
} pair;

static bool ends_in(const char *name, const char *end) {
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

/* Decodes a tensor into an array that the adapter owns. */
static fr_status decode(const source *s, const fr_tensor *tensor, const float **values) {
    fr_adapter *adapter = s->adapter;
    size_t cols = tensor->shape[tensor->dims - 1], rows = 1;
    for (uint32_t d = 0; d + 1 < tensor->dims; d++) rows *= tensor->shape[d];
    if (tensor->type >= FR_KERNEL_TYPES || (tensor->type >= FR_FLOAT_TYPES && !s->gguf) || tensor->packed)
        return fr_fail(FR_UNBUILT, "%s: tensor %s has the type %s, which is not built for adapters", s->path,
                       tensor->name, tensor->type_name);
    if (adapter->value_count == adapter->value_room) {
        size_t room = 2 * adapter->value_room + 64;
        float **more = realloc(adapter->values, room * sizeof *more);
        if (!more) return fr_fail_memory("adapter", room * sizeof *more);
        adapter->values = more;
        adapter->value_room = room;
    }
    float *to = calloc(rows * cols, sizeof *to);
    if (!to) return fr_fail_memory("adapter", rows * cols * sizeof *to);
    adapter->values[adapter->value_count++] = to;
    size_t row_bytes = fr_dtype_row_bytes(tensor->type, cols);
    for (size_t r = 0; r < rows; r++)
        fr_dtype_decode(tensor->type, (const uint8_t *)tensor->data + r * row_bytes, to + r * cols, cols);
    for (size_t i = 0; i < rows * cols; i++)
        if (!isfinite(to[i]))
            return fr_fail(FR_INPUT, "%s: tensor %s has a value that is not finite", s->path, tensor->name);
    *values = to;
    return FR_OK;
}

/* Checks the two shapes against each other: a [rank, cols] and b [features, rank], or stacks of them. */
static fr_status check_shapes(const source *s, pair *p) {
    const fr_tensor *a = p->a, *b = p->b;
    bool stacks = a->dims == 3 && b->dims == 3 && a->shape[0] == b->shape[0];
    if (!stacks && (a->dims != 2 || b->dims != 2))
        return fr_fail(FR_INPUT, "%s: tensors %s and %s have %u and %u dimensions, not 2", s->path, a->name, b->name,
                       a->dims, b->dims);
    p->stack = stacks ? a->shape[0] : 1;
    p->rank = a->shape[a->dims - 2];
    p->cols = a->shape[a->dims - 1];
    p->features = b->shape[b->dims - 2];
    if (p->rank == 0 || p->cols == 0 || p->features == 0 || p->stack == 0 || p->rank > FR_LOW_RANK_MAX)
        return fr_fail(FR_INPUT, "%s: tensor %s has the rank %zu, not 1 to %d", s->path, a->name, p->rank,
                       FR_LOW_RANK_MAX);
    if (b->shape[b->dims - 1] == p->rank) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s has the rank %zu, tensor %s %llu", s->path, a->name, p->rank, b->name,
                   (unsigned long long)b->shape[b->dims - 1]);
}

/* --------------------------------------------------------------------------------------------------------- matrices */

/* Tells how the order of b's rows, or of a's columns, differs from the model's order. */
typedef struct movement {
    bool by_heads;    /* the file keeps the query, key and value of each head together; the model keeps all queries, all
                       * keys and all values apart */
    fr_reorder order; /* how GGUF's order differs from the published one, if only one of adapter and model is GGUF */
} movement;

static movement find_movement(const source *s, const fr_adapted_matrices *m) {
    const fr_model *model = s->adapter->model;
    const fr_gguf *gguf = model->files.gguf;
    movement move = {0};
    if (!m->layer) return move;
    move.by_heads = !s->gguf && m->name->layout == FR_LAYOUT_HEADS;
    bool stays = m->name->rotary && gguf && model->family->gguf_neox && !model->family->gguf_neox(gguf);
    if (s->gguf != (gguf != NULL) && !stays)
        move.order = fr_tensor_name_reorder(model->family->names, m->name, &model->trunk.spec, m->layer);
    return move;
}

/* Takes the index of a row (or column) in the model's matrix, and gives its index in the adapter's tensor. */
static size_t index_in(const source *s, const movement *move, const fr_adapted_matrices *m, const pair *p, size_t index,
                       const size_t *inverse) {
    const fr_attention_spec *attention = &m->layer->attention;
    if (move->by_heads) return fr_row_by_heads(index, p->features, attention->head_dim, attention->kv_heads);
    return s->gguf ? inverse[index] : fr_row_published(&move->order, index);
}

/* Moves the rows of b, or the columns of a, from the order of the adapter's file to the model's order. */
static fr_status reorder(const source *s, const fr_adapted_matrices *m, const pair *p, float *a, float *b) {
    const movement move = find_movement(s, m);
    if (!move.by_heads && move.order.order == FR_ROWS_ALIKE) return FR_OK;
    bool of_cols = move.order.order == FR_COLS_TILED;
    size_t count = of_cols ? p->cols : p->features, rows = of_cols ? p->rank : p->features;
    size_t width = of_cols ? p->cols : p->rank;
    if ((m->parts != 1 && !move.by_heads) || p->stack != 1)
        return fr_fail(FR_UNBUILT, "%s: tensor %s is not built for a model in the other kind of file", s->path,
                       p->b->name);
    float *values = of_cols ? a : b, *copy = malloc(rows * width * sizeof *copy);
    size_t *inverse = calloc(count, sizeof *inverse);
    if (!copy || !inverse) {
        free(copy);
        free(inverse);
        return fr_fail_memory("adapter", rows * width * sizeof *copy);
    }
    for (size_t i = 0; i < count && !move.by_heads; i++) inverse[fr_row_published(&move.order, i)] = i;
    memcpy(copy, values, rows * width * sizeof *copy);
    for (size_t r = 0; r < rows; r++) {
        size_t from = of_cols ? r : index_in(s, &move, m, p, r, inverse);
        for (size_t c = 0; c < width; c++)
            values[r * width + c] = copy[from * width + (of_cols ? index_in(s, &move, m, p, c, inverse) : c)];
    }
    free(copy);
    free(inverse);
    return FR_OK;
}

static fr_status fail_shape(const source *s, const pair *p, const fr_adapted_matrices *m, size_t features) {
    return fr_fail(FR_INPUT, "%s: tensors %s and %s make [%zu, %zu] of %zu, the model's matrix is [%zu, %zu] of %zu",
                   s->path, p->a->name, p->b->name, p->features, p->cols, p->stack, features, m->part[0]->cols,
                   m->of_expert ? (size_t)1 : m->experts);
}

/* Adds a product to the digest, which identifies everything that the adapter changes. */
static void add_to_digest(fr_adapter *adapter, const fr_matrix *matrix, const fr_low_rank *p) {
    const uint64_t head[] = {matrix->adapted, p->rank};
    fr_sha256_add(&adapter->hash, head, sizeof head);
    fr_sha256_add(&adapter->hash, &p->scale, sizeof p->scale);
    fr_sha256_add(&adapter->hash, p->a, p->rank * matrix->cols * sizeof *p->a);
    fr_sha256_add(&adapter->hash, p->b, matrix->features * p->rank * sizeof *p->b);
}

/* Stores the product of a pair for each of the matrices that it changes. */
static fr_status place(const source *s, const fr_adapted_matrices *m, const pair *p) {
    size_t features = 0, matrices = m->of_expert ? 1 : m->experts;
    for (size_t i = 0; i < m->parts; i++) features += m->part[i]->features;
    if (p->stack != matrices || p->cols != m->part[0]->cols || p->features != features)
        return fail_shape(s, p, m, features);
    if (!s->gguf && p->stack > 1 && m->name->layout != FR_LAYOUT_ROWS)
        return fr_fail(FR_UNBUILT, "%s: tensor %s is not built: the model's experts are not stored as rows", s->path,
                       p->a->name);
    const float *a, *b;
    FR_TRY(decode(s, p->a, &a));
    FR_TRY(decode(s, p->b, &b));
    FR_TRY(reorder(s, m, p, (float *)a, (float *)b));
    for (size_t e = 0; e < matrices; e++) {
        const float *rows = b + e * features * p->rank;
        for (size_t i = 0; i < m->parts; i++) {
            const fr_matrix *matrix = &m->part[i][m->of_expert ? m->expert : e];
            fr_low_rank *product = &s->adapter->products[matrix->adapted];
            if (product->a)
                return fr_fail(FR_INPUT, "%s: tensor %s changes a matrix that another tensor changes too", s->path,
                               p->a->name);
            *product = (fr_low_rank){a + e * p->rank * p->cols, rows, p->rank, p->scale};
            add_to_digest(s->adapter, matrix, product);
            rows += matrix->features * p->rank;
            s->adapter->matrices++;
        }
    }
    if (p->rank > s->adapter->rank) s->adapter->rank = p->rank;
    return FR_OK;
}

static fr_status find_and_place(const source *s, const pair *p) {
    const fr_model *model = s->adapter->model;
    fr_adapted_matrices found;
    switch (fr_adapted_find(&model->trunk, model->family->names, s->gguf, p->name, &found)) {
    case FR_ADAPTED_FOUND: break;
    case FR_ADAPTED_UNUSED: return FR_OK;
    case FR_ADAPTED_OTHER:
        return fr_fail(FR_UNBUILT, "%s: tensor %s is not built: adapters can't change %s of this model", s->path,
                       p->a->name, p->name);
    default:
        return fr_fail(FR_INPUT, "%s: tensor %s is for %s, which %s does not have", s->path, p->a->name, p->name,
                       model->files.path);
    }
    bool embeds = found.name->rows == FR_DIM_VOCAB && strstr(p->name, s->gguf ? "token_embd" : "embed_tokens");
    if (embeds)
        return fr_fail(FR_UNBUILT, "%s: tensor %s is not built: adapters can't change the embedding table", s->path,
                       p->a->name);
    return place(s, &found, p);
}

/* ------------------------------------------------------------------------------------------------------------ files */

/* Gives the end of a tensor's name: of b if `b` is true, otherwise of a. GGUF files and safetensors files write it
 * differently. */
static const char *end_of(bool gguf, bool b) {
    return gguf ? (b ? ".lora_b" : ".lora_a") : (b ? ".lora_B.weight" : ".lora_A.weight");
}

/* Finds the tensor b that belongs to a, and writes the name of the matrix that the two change. */
static fr_status find_pair(const source *s, const fr_tensor *a, pair *p) {
    static const char outer[] = "base_model.model.";
    const char *end = end_of(s->gguf, false), *begin = a->name;
    char b[NAME_MAX_BYTES], module[NAME_MAX_BYTES];
    size_t stem = strlen(a->name) - strlen(end), config_rank;
    if (strlen(a->name) + sizeof ".weight" > sizeof b)
        return fr_fail(FR_INPUT, "%s: the name of tensor %.60s... is too long", s->path, a->name);
    *p = (pair){.a = a};
    snprintf(b, sizeof b, "%.*s%s", (int)stem, a->name, end_of(s->gguf, true));
    p->b = fr_tensors_find(s->all, b);
    if (!p->b) return fr_fail(FR_INPUT, "%s: tensor %s has no %s beside it", s->path, a->name, b);
    FR_TRY(check_shapes(s, p));
    if (s->gguf) {
        snprintf(p->name, sizeof p->name, "%.*s", (int)stem, a->name);
        p->scale = s->alpha != 0 ? s->alpha / (double)p->rank : 1;
        return FR_OK;
    }
    if (strncmp(begin, outer, sizeof outer - 1) == 0) begin += sizeof outer - 1;
    snprintf(module, sizeof module, "%.*s", (int)(a->name + stem - begin), begin);
    snprintf(p->name, sizeof p->name, "%.*s.weight", (int)(a->name + stem - begin), begin);
    FR_TRY(fr_adapter_config_module(s->config, module, &config_rank, &p->scale));
    if (config_rank == p->rank) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s has the rank %zu, the configuration %zu", s->path, a->name, p->rank,
                   config_rank);
}

/* Returns true if the tensor is a copy of the model's own head. peft saves such a copy with the head's a and b. LoRA
 * does not train the copy, so it is not read. */
static bool is_copy(const source *s, const fr_tensor *t) {
    static const char end[] = "lm_head.base_layer.weight";
    const fr_matrix *head = &s->adapter->model->trunk.head;
    return !s->gguf && ends_in(t->name, end) && t->dims == 2 && t->shape[0] == head->features &&
           t->shape[1] == head->cols;
}

/* Reads all tensors, each of which must be a or b of a pair. */
static fr_status read_tensors(const source *s) {
    for (size_t i = 0; i < s->all->count; i++) {
        const fr_tensor *t = &s->all->items[i];
        pair p;
        if (is_copy(s, t)) continue;
        if (ends_in(t->name, end_of(s->gguf, false))) {
            FR_TRY(find_pair(s, t, &p));
            FR_TRY(find_and_place(s, &p));
            continue;
        }
        const char *end = end_of(s->gguf, true);
        char a[NAME_MAX_BYTES];
        size_t stem = strlen(t->name) - (ends_in(t->name, end) ? strlen(end) : 0);
        snprintf(a, sizeof a, "%.*s%s", (int)stem, t->name, end_of(s->gguf, false));
        if (!ends_in(t->name, end))
            return fr_fail(FR_UNBUILT, "%s: tensor %s is not built: it is neither %s nor %s", s->path, t->name,
                           end_of(s->gguf, false) + 1, end + 1);
        if (!fr_tensors_find(s->all, a))
            return fr_fail(FR_INPUT, "%s: tensor %s has no %s beside it", s->path, t->name, a);
    }
    if (s->adapter->matrices) return FR_OK;
    return fr_fail(FR_INPUT, "%s changes no matrix of %s", s->path, s->adapter->model->files.path);
}

static fr_status read_folder(fr_adapter *adapter, const char *config_path, const char *path) {
    fr_adapter_config config;
    fr_tensors tensors = {0}, unread = {0};
    fr_map map = {0};
    fr_status status = fr_adapter_config_read(&config, config_path);
    if (status == FR_OK) status = fr_map_open(&map, path, true);
    bool open = status == FR_OK;
    if (open) status = fr_safetensors_read(&map, 0, &tensors, &unread);
    if (status == FR_OK && unread.count)
        status = fr_fail(FR_UNBUILT, "%s: tensor %s has the type %s, which is not built for adapters", path,
                         unread.items->name, unread.items->type_name);
    const source s = {.adapter = adapter, .path = path, .all = &tensors, .config = &config};
    if (status == FR_OK) status = read_tensors(&s);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    if (open) fr_map_close(&map);
    json_decref(config.root);
    return status;
}

static fr_status check_text(const fr_gguf *gguf, const char *key, const char *expected) {
    fr_text text;
    FR_TRY(fr_gguf_text(gguf, key, &text));
    if (text.bytes && text.length == strlen(expected) && memcmp(text.bytes, expected, text.length) == 0) return FR_OK;
    return fr_fail(FR_INPUT, "%s: %s is \"%.*s\", not \"%s\"", gguf->path, key,
                   (int)(text.length < 60 ? text.length : 60), text.bytes ? text.bytes : "", expected);
}

static fr_status read_gguf(fr_adapter *adapter, const fr_checkpoint *files) {
    const fr_gguf *gguf = files->gguf;
    source s = {.adapter = adapter, .path = files->path, .all = &files->tensors, .gguf = true};
    FR_TRY(check_text(gguf, "general.type", "adapter"));
    FR_TRY(check_text(gguf, "adapter.type", "lora"));
    if (!fr_model_is_of(adapter->model, gguf->architecture))
        return fr_fail(FR_INPUT, "%s is an adapter for %s, the model is of %s", files->path, gguf->architecture,
                       fr_checkpoint_architecture(&adapter->model->files));
    if (fr_gguf_find(gguf, "adapter.alora.invocation_tokens"))
        return fr_fail(FR_UNBUILT, "%s: adapter.alora.invocation_tokens is not built", files->path);
    FR_TRY(fr_gguf_real(gguf, "adapter.lora.alpha", -1e9, 1e9, NAN, &s.alpha));
    if (files->unread.count)
        return fr_fail(FR_UNBUILT, "%s: tensor %s has the type %s, which is not built for adapters", files->path,
                       files->unread.items->name, files->unread.items->type_name);
    return read_tensors(&s);
}

static fr_status read(fr_adapter *adapter) {
    char *config = fr_path_join(adapter->path, "adapter_config.json");
    char *weights = fr_path_join(adapter->path, "adapter_model.safetensors");
    fr_checkpoint files;
    fr_status status = FR_OK;
    if (!config || !weights)
        status = fr_fail_memory("path", strlen(adapter->path));
    else if (fr_file_exists(config))
        status = read_folder(adapter, config, weights);
    else if ((status = fr_checkpoint_open(&files, adapter->path, true)) == FR_OK) {
        status = files.gguf ? read_gguf(adapter, &files)
                            : fr_fail(FR_INPUT, "%s is no adapter: it has no adapter_config.json", adapter->path);
        fr_checkpoint_close(&files);
    }
    free(config);
    free(weights);
    return status;
}

fr_status fr_adapter_new(const char *path, const fr_model *model, fr_adapter **adapter) {
    *adapter = NULL;
    if (model->ranks) return fr_fail(FR_UNBUILT, "%s: adapters of a model that several ranks run are not built", path);
    if (model->encoder) return fr_fail(FR_UNBUILT, "%s: adapters of a text encoder are not built", path);
    fr_adapter *a = calloc(1, sizeof *a);
    if (!a) return fr_fail_memory("adapter", sizeof *a);
    a->model = model;
    a->hash = fr_sha256_begin();
    a->path = strdup(path);
    a->products = calloc(model->trunk.adaptable + 1, sizeof *a->products);
    if (a->path && a->products) {
        *adapter = a;
        return FR_OK;
    }
    fr_adapter_unload(a);
    return fr_fail_memory("adapter", (model->trunk.adaptable + 1) * sizeof *a->products);
}

fr_status fr_adapter_load(const char *path, const fr_model *model, fr_adapter **adapter) {
    FR_TRY(fr_adapter_new(path, model, adapter));
    fr_status status = read(*adapter);
    if (status == FR_OK) {
        fr_sha256_end(&(*adapter)->hash, (*adapter)->digest);
        return FR_OK;
    }
    fr_adapter_unload(*adapter);
    *adapter = NULL;
    return status;
}

void fr_adapter_unload(fr_adapter *adapter) {
    if (!adapter) return;
    for (size_t i = 0; i < adapter->value_count; i++) free(adapter->values[i]);
    free(adapter->values);
    free(adapter->products);
    free(adapter->directions);
    free(adapter->path);
    free(adapter);
}

fr_status fr_adapter_join(const fr_model *model, const fr_adapter *const *adapters, const double *scales, size_t count,
                          fr_adapter_set *set, uint8_t digest[FR_SHA256_BYTES]) {
    fr_sha256 hash = fr_sha256_begin();
    memset(digest, 0, FR_SHA256_BYTES);
    *set = (fr_adapter_set){0};
    for (size_t i = 0; i < count; i++) {
        if (!adapters[i] || adapters[i]->model != model)
            return fr_fail(FR_USAGE, "adapter %zu was opened on another model", i);
        if (!isfinite(scales[i]) || fabs(scales[i]) > 1e9)
            return fr_fail(FR_USAGE, "%s: the scale %g is not between -1e9 and 1e9", adapters[i]->path, scales[i]);
        for (size_t j = 0; j < i; j++)
            if (adapters[j] == adapters[i])
                return fr_fail(FR_USAGE, "%s: the adapter is given twice", adapters[i]->path);
        if (scales[i] == 0) continue;
        if (set->count == FR_ADAPTERS_MAX) return fr_fail(FR_USAGE, "more than %d adapters", FR_ADAPTERS_MAX);
        set->uses[set->count].products = adapters[i]->products;
        set->uses[set->count].directions = adapters[i]->directions;
        set->uses[set->count++].scale = scales[i];
        fr_sha256_add(&hash, adapters[i]->digest, sizeof adapters[i]->digest);
        fr_sha256_add(&hash, &scales[i], sizeof scales[i]);
    }
    if (set->count) fr_sha256_end(&hash, digest);
    return FR_OK;
}
