/* Reads and writes a family's rows: see config.h. */
#include "src/engine/families/config.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/families/config_keys.h"
#include "src/engine/families/mtp_layer.h"
#include "src/engine/families/rope_config.h"

enum { VOCAB_MAX = 1 << 24, HIDDEN_MAX = 1 << 17, FFN_MAX = 1 << 22, HEADS_MAX = 4096, HEAD_DIM_MAX = 4096 };

/* Keys of sizes. GGUF has no key for the size of the vocabulary; it is the number of rows of the embedding table. A
 * file that sets causal attention to false is an encoder's, so it is refused. */
const fr_config_row fr_size_keys[] = {
    {.kind = FR_ROW_WITH, .json = "is_causal", .gguf = ".attention.causal"},
    FR_SIZE(trunk.vocab, "vocab_size", NULL, 1, VOCAB_MAX),
    FR_SIZE(trunk.layers, "num_hidden_layers", ".block_count", 1, FR_LAYERS_MAX, .required = true),
    FR_SIZE(trunk.context_limit, "max_position_embeddings", ".context_length", 1, 1 << 24, .required = true),
    FR_SIZE(trunk.hidden, "hidden_size", ".embedding_length", 1, HIDDEN_MAX, .required = true),
    FR_SIZE(layer.ffn.width, "intermediate_size", ".feed_forward_length", 1, FFN_MAX, .required = true,
            /* if GGUF lacks .feed_forward_length, .expert_count must be there, because a mixture may have no dense
             * layer */
            .unless = ".expert_count"),
    FR_SIZE(layer.attention.heads, "num_attention_heads", ".attention.head_count", 1, HEADS_MAX, .required = true),
    FR_SIZE(layer.attention.kv_heads, "num_key_value_heads", ".attention.head_count_kv", 1, HEADS_MAX,
            .like = offsetof(fr_model_spec, layer.attention.heads)),
    {0},
};

#define EPS FR_REAL(trunk.eps, "rms_norm_eps", ".attention.layer_norm_rms_epsilon", 0, 1, .required = true)
#define HEAD_DIM \
    FR_SIZE(layer.attention.head_dim, "head_dim", ".attention.key_length", 2, HEAD_DIM_MAX, .per_head = true)

/* The keys of rotary positions in GGUF. The keys in config.json are read by rope_config.c. */
#define BASE FR_REAL(trunk.rope[0].theta, NULL, ".rope.freq_base", 1.001, 1e12)
#define HEADS                                                                       \
    HEAD_DIM, FR_SAME(layer.attention.head_dim, ".attention.value_length"),         \
        FR_SIZE(trunk.rope[0].dims, NULL, ".rope.dimension_count", 2, HEAD_DIM_MAX, \
                .like = offsetof(fr_model_spec, layer.attention.head_dim))

const fr_config_row fr_head_keys[] = {BASE, EPS, HEADS, {0}};

const fr_config_row fr_layer_norm_head_keys[] = {
    BASE, FR_REAL(trunk.eps, "layer_norm_eps", ".attention.layer_norm_epsilon", 0, 1, .required = true), HEADS, {0}};

const fr_config_row fr_normless_head_keys[] = {BASE, HEADS, {0}};

const fr_config_row fr_kind_keys[] = {
    FR_REAL(trunk.rope[FR_FULL].theta, "rope_theta", ".rope.freq_base", 1.001, 1e12),
    FR_REAL(trunk.rope[FR_SLIDING].theta, "rope_local_base_freq", ".rope.freq_base_swa", 1.001, 1e12),
    EPS,
    HEAD_DIM,
    FR_SAME(layer.attention.head_dim, ".attention.value_length"),
    FR_SIZE(layer.attention.window, "sliding_window", ".attention.sliding_window", 0, 1 << 24, .sparse = true),
    FR_KINDS("sliding_window_pattern"),
    {0},
};

/* ---------------------------------------------------------------------------------------------------------- reading */

static void *at(fr_model_spec *spec, size_t field) {
    return (char *)spec + field;
}

static double real_at(const void *field, size_t bytes) {
    return bytes == sizeof(float) ? (double)*(const float *)field : *(const double *)field;
}

/* Gives the number for a file without the key. It is the field's default; if the default is 0, it is derived from other
 * fields (`like`, `per_head`). In two cases it is derived even if there is a default. The first is a `per_head` row in
 * GGUF. The second is a key whose value is null in config.json, because transformers 5.17 derives the number then. */
static int64_t size_without(const fr_source *s, const fr_config_row *row, fr_model_spec *spec) {
    bool follows = s->gguf ? row->per_head : json_is_null(json_object_get(s->text, row->json));
    bool complete = follows && (row->per_head || row->like);
    size_t fallback = complete ? 0 : *(size_t *)at(spec, row->field);
    if (row->null_is_none && !s->gguf && json_is_null(json_object_get(s->text, row->json))) return 0;
    if (!fallback && row->like) fallback = *(size_t *)at(spec, row->like);
    if (!fallback && row->per_head) fallback = spec->trunk.hidden / spec->layer.attention.heads;
    return (int64_t)fallback;
}

static fr_status lacks_both(const fr_gguf *gguf, const fr_config_row *row) {
    const char *of = gguf->architecture;
    return fr_fail(FR_INPUT, "%s: key %s%s is missing, and so is %s%s", gguf->path, of, row->gguf, of, row->unless);
}

/* Reads a number for which the file may have an array with one entry for each layer. All entries must be equal. */
static fr_status read_alike(const fr_gguf *gguf, const fr_config_row *row, const fr_model_spec *spec, size_t *field) {
    int64_t numbers[FR_LAYERS_MAX];
    size_t count = spec->trunk.layers;
    FR_TRY(fr_gguf_ints(gguf, row->gguf, (int64_t)row->low, (int64_t)row->high, FR_GGUF_REQUIRED, count, numbers));
    *field = (size_t)numbers[0];
    for (size_t i = 1; i < count; i++)
        if (numbers[i] != numbers[0])
            return fr_fail(FR_UNBUILT, "%s: key %s%s: layers that differ are not built", gguf->path, gguf->architecture,
                           row->gguf);
    return FR_OK;
}

static bool is_array(const fr_gguf *gguf, const char *key) {
    const fr_gguf_value *value = fr_gguf_find(gguf, key);
    return value && value->type == FR_GGUF_ARRAY;
}

static fr_status read_size(const fr_source *s, const fr_config_row *row, fr_model_spec *spec) {
    size_t *field = at(spec, row->field);
    int64_t low = (int64_t)row->low, high = (int64_t)row->high, fallback = size_without(s, row, spec);
    if (!s->gguf) return fr_json_size(s->text, row->json, low, high, fallback, s->where, field);
    if (field != &spec->trunk.layers && spec->trunk.layers && is_array(s->gguf, row->gguf))
        return read_alike(s->gguf, row, spec, field);
    bool instead = row->unless && fr_gguf_find(s->gguf, row->unless);
    if (row->sparse) fallback = 0;
    if (row->required) fallback = instead ? 1 : FR_GGUF_REQUIRED;
    if (row->unless && !instead && !fr_gguf_find(s->gguf, row->gguf)) return lacks_both(s->gguf, row);
    return fr_gguf_size(s->gguf, row->gguf, low, high, fallback, field);
}

static size_t *of_layer(fr_layer_spec *layer, const fr_config_row *row) {
    return (size_t *)(void *)((char *)layer + (row->field - offsetof(fr_model_spec, layer)));
}

/* Reads the first layer's value into spec->layer. If the layers have already been made and the file has an array, also
 * reads the value of each layer. */
static fr_status read_each(const fr_source *s, const fr_config_row *row, fr_model_spec *spec) {
    int64_t numbers[FR_LAYERS_MAX];
    if (!s->gguf) return read_size(s, row, spec);
    int64_t fallback = row->required ? FR_GGUF_REQUIRED : size_without(s, row, spec);
    FR_TRY(
        fr_gguf_ints(s->gguf, row->gguf, (int64_t)row->low, (int64_t)row->high, fallback, spec->trunk.layers, numbers));
    *of_layer(&spec->layer, row) = (size_t)numbers[0];
    const fr_gguf_value *value = fr_gguf_find(s->gguf, row->gguf);
    for (size_t i = 0; spec->trunk.layer && value && value->type == FR_GGUF_ARRAY && i < spec->trunk.layers; i++)
        *of_layer(&spec->trunk.layer[i], row) = (size_t)numbers[i];
    return FR_OK;
}

static fr_status read_real(const fr_source *s, const fr_config_row *row, fr_model_spec *spec) {
    void *field = at(spec, row->field);
    double value, fallback = s->gguf && row->required ? (double)NAN : real_at(field, row->bytes);
    if (row->null_is_none && !s->gguf && json_is_null(json_object_get(s->text, row->json))) fallback = 0;
    FR_TRY(s->gguf ? fr_gguf_real(s->gguf, row->gguf, row->low, row->high, fallback, &value)
                   : fr_json_real(s->text, row->json, row->low, row->high, fallback, s->where, &value));
    if (row->bytes == sizeof(float))
        *(float *)field = (float)value;
    else
        *(double *)field = value;
    return FR_OK;
}

static fr_status read_divisor(const fr_source *s, const fr_config_row *row, fr_model_spec *spec) {
    float *field = at(spec, row->field);
    double value;
    FR_TRY(s->gguf ? fr_gguf_real(s->gguf, row->gguf, row->low, row->high, 0, &value)
                   : fr_json_real(s->text, row->json, row->low, row->high, 0, s->where, &value));
    if (value > 0) *field = (float)(1.0 / value);
    return FR_OK;
}

static fr_status read_rsqrt(const fr_source *s, const fr_config_row *row, fr_model_spec *spec) {
    double value;
    FR_TRY(fr_json_real(s->text, row->json, row->low, row->high, 0, s->where, &value));
    if (value > 0) *(float *)at(spec, row->field) = (float)(1.0 / sqrt(value));
    return FR_OK;
}

static fr_status read_flag(const fr_source *s, const fr_config_row *row, fr_model_spec *spec) {
    bool *field = at(spec, row->field);
    if (s->gguf) return fr_gguf_bool(s->gguf, row->gguf, *field, field);
    return fr_json_bool(s->text, row->json, *field, s->where, field);
}

static fr_status read_same(const fr_source *s, const fr_config_row *row, fr_model_spec *spec) {
    size_t wanted = *(size_t *)at(spec, row->field), value;
    FR_TRY(fr_gguf_size(s->gguf, row->gguf, 0, INT64_MAX, (int64_t)wanted, &value));
    if (value == wanted) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: key %s%s: %zu is not built where keys have %zu: both must be the same",
                   s->gguf->path, s->gguf->architecture, row->gguf, value, wanted);
}

static fr_status check_absent(const fr_source *s, const fr_config_row *row) {
    const json_t *value = json_object_get(s->text, row->json);
    double number = 0;
    if (s->gguf) FR_TRY(fr_gguf_real(s->gguf, row->gguf, 0, INFINITY, 0, &number));
    if (number > 0)
        return fr_fail(FR_UNBUILT, "%s: key %s%s: %g is not built", s->where, s->gguf->architecture, row->gguf, number);
    return !value || json_is_null(value) ? FR_OK : fr_fail(FR_UNBUILT, "%s: %s is not built", s->where, row->json);
}

static fr_status check_with(const fr_source *s, const fr_config_row *row) {
    bool has;
    FR_TRY(s->gguf ? fr_gguf_bool(s->gguf, row->gguf, true, &has)
                   : fr_json_bool(s->text, row->json, true, s->where, &has));
    if (has) return FR_OK;
    return s->gguf ? fr_fail(FR_UNBUILT, "%s: key %s%s: false is not built", s->where, s->gguf->architecture, row->gguf)
                   : fr_fail(FR_UNBUILT, "%s: %s false is not built", s->where, row->json);
}

static fr_status read_mtp(const fr_source *s, const fr_config_row *row, fr_model_spec *spec) {
    if (s->gguf) return fr_config_gguf_mtp(s->gguf, &spec->trunk.layers, &spec->mtp_layers);
    return fr_config_mtp(s->text, row->json, (int64_t)spec->mtp_layers, s->where, &spec->mtp_layers);
}

static bool is_row(const fr_config_row *row) {
    return row->json || row->gguf || row->part;
}

static fr_status read_row(const fr_source *s, const fr_config_row *row, fr_model_spec *spec) {
    if (row->part) return row->part->read ? row->part->read(s, spec) : FR_OK;
    if (!(s->gguf ? row->gguf : row->json)) return FR_OK;
    switch (row->kind) {
    case FR_ROW_SIZE: return read_size(s, row, spec);
    case FR_ROW_EACH: return read_each(s, row, spec);
    case FR_ROW_REAL: return read_real(s, row, spec);
    case FR_ROW_FLAG: return read_flag(s, row, spec);
    case FR_ROW_DIVISOR: return read_divisor(s, row, spec);
    case FR_ROW_RSQRT: return read_rsqrt(s, row, spec);
    case FR_ROW_SAME: return read_same(s, row, spec);
    case FR_ROW_ONLY: return fr_config_only(s->text, row->json, row->word, s->where);
    case FR_ROW_ACTIVATION: return fr_config_activation(s->text, row->json, s->where, at(spec, row->field));
    case FR_ROW_WITHOUT: return fr_config_without(s->text, row->json, s->where);
    case FR_ROW_WITH: return check_with(s, row);
    case FR_ROW_ABSENT: return check_absent(s, row);
    case FR_ROW_KINDS: return s->gguf ? FR_OK : read_size(s, row, spec);
    case FR_ROW_MTP: return read_mtp(s, row, spec);
    case FR_ROW_PART: break;
    }
    return FR_OK;
}

static fr_status read_rows(const fr_family *family, const fr_source *s, fr_model_spec *spec) {
    for (size_t t = 0; t < sizeof family->rows / sizeof *family->rows && family->rows[t]; t++)
        for (const fr_config_row *row = family->rows[t]; is_row(row); row++) FR_TRY(read_row(s, row, spec));
    return FR_OK;
}

/* Reads GGUF's arrays into the layers, after these have been made. */
static fr_status read_arrays(const fr_family *family, const fr_source *s, fr_model_spec *spec) {
    for (size_t t = 0; s->gguf && t < sizeof family->rows / sizeof *family->rows && family->rows[t]; t++)
        for (const fr_config_row *row = family->rows[t]; is_row(row); row++)
            if (row->kind == FR_ROW_EACH) FR_TRY(read_each(s, row, spec));
    return FR_OK;
}

/* Fills in the defaults that all families share. */
static void complete_defaults(fr_model_spec *spec) {
    fr_trunk_spec *trunk = &spec->trunk;
    if (trunk->ropes == 0) trunk->ropes = 1;
    if (trunk->embedding_scale == 0.0F) trunk->embedding_scale = 1.0F;
    for (size_t i = 0; i < trunk->ropes; i++) {
        fr_rope_spec *rope = &trunk->rope[i];
        if (rope->theta == 0.0) rope->theta = 10000.0;
        if (rope->partial == 0.0) rope->partial = 1.0;
        if (rope->factor == 0.0) rope->factor = 1.0;
    }
    spec->layer.attention.owns_kv = true;
    spec->image_token = -1;
}

/* Checks that the numbers of heads fit together, and that the number of rotated values fits the heads. */
static fr_status check_layer(const fr_attention_spec *a, const fr_rope_spec *rope, const char *where) {
    size_t angles = 0;
    for (size_t axis = 0; axis < FR_AXES; axis++) angles += rope->sections[axis];
    if (a->heads % a->kv_heads)
        return fr_fail(FR_INPUT, "%s: %zu attention heads are no multiple of %zu key/value heads", where, a->heads,
                       a->kv_heads);
    if (a->no_rope) return FR_OK;
    if (rope->dims < 2 || rope->dims % 2 || rope->dims > a->head_dim)
        return fr_fail(FR_INPUT, "%s: %zu rotary values in heads of %zu, expected an even number", where, rope->dims,
                       a->head_dim);
    FR_TRY(fr_rope_check_longrope(rope, where));
    if (angles == rope->dims / 2) return FR_OK;
    return fr_fail(FR_INPUT, "%s: the sections of the rotary positions have %zu angles, the heads %zu", where, angles,
                   rope->dims / 2);
}

static fr_status check(const fr_model_spec *spec, const char *where) {
    for (size_t i = 0; i < spec->trunk.layers + spec->mtp_layers; i++) {
        const fr_attention_spec *a = &fr_spec_layer(&spec->trunk, i)->attention;
        if (a->kv_heads) FR_TRY(check_layer(a, &spec->trunk.rope[a->rope], where));
    }
    return FR_OK;
}

/* Sets for a GGUF file which values of a head are rotated together (`neox`). This follows from `order`, the order in
 * which the family's GGUF files have the rows of queries and keys. */
static void pair_as_rows_stand(fr_row_order order, fr_trunk_spec *trunk) {
    for (size_t i = 0; i < trunk->ropes && order != FR_ROWS_ALIKE; i++) trunk->rope[i].neox = order == FR_ROWS_TO_NEOX;
}

fr_status fr_source_of(fr_weights *weights, fr_source *source) {
    const fr_checkpoint *files = weights->files;
    *source =
        (fr_source){.gguf = files->gguf, .where = files->gguf ? files->gguf->path : "config.json", .weights = weights};
    if (files->gguf) return FR_OK;
    json_t *text;
    source->root = files->config;
    FR_TRY(fr_json_object(source->root, "text_config", source->where, &text));
    source->text = text ? text : source->root;
    return FR_OK;
}

/* Reads from the tensors what no key says. For a folder, this is whether there is a separate head. For GGUF, it is the
 * size of the vocabulary, which is the number of rows of the embedding table. */
static fr_status read_tensors(const fr_source *source, fr_model_spec *spec) {
    if (!source->weights || source->drafter) return FR_OK;
    if (!source->gguf) return fr_config_head(source->text, source->where, source->weights);
    return fr_config_vocabulary(source->weights->files, spec->trunk.hidden, &spec->trunk.vocab);
}

/* Finds out which projections have biases, from the tensors of the first layer in a GGUF file. */
static void find_biases(const fr_source *source, fr_layer_spec *layer) {
    layer->attention.qkv_bias =
        fr_source_has(source, "blk.0.attn_q.bias") || fr_source_has(source, "blk.0.attn_qkv.bias");
    layer->attention.o_bias = fr_source_has(source, "blk.0.attn_output.bias");
    layer->ffn.biased = fr_source_has(source, "blk.0.ffn_up.bias");
}

/* Gives the scale of scores. GGUF has no key for it, so this is the scale that readers of GGUF files assume. */
static float scale_in_gguf(const fr_family *family, const fr_trunk_spec *trunk, const fr_attention_spec *a) {
    return fr_rsqrt(trunk->layers == family->scaled_by_hidden ? trunk->hidden / a->heads : a->head_dim);
}

/* Computes fields from the fields that were read. */
static void complete(const fr_family *family, const fr_source *source, fr_model_spec *spec) {
    float *scale = &spec->layer.attention.scale;
    if (source->gguf && family->scaled_by_hidden)
        *scale = scale_in_gguf(family, &spec->trunk, &spec->layer.attention);
    else if (*scale == 0.0F)
        *scale = fr_rsqrt(spec->layer.attention.head_dim);
    if (source->gguf && family->finds_biases) find_biases(source, &spec->layer);
    if (family->scales_embedding) spec->trunk.embedding_scale = (float)sqrt((double)spec->trunk.hidden);
    spec->trunk.ffn_width = spec->layer.ffn.width;
}

fr_status fr_family_read(const fr_family *family, const fr_source *source, fr_model_spec *spec) {
    const fr_model_spec *of_gguf = family->gguf_defaults ? family->gguf_defaults : family->defaults;
    *spec = source->gguf ? *of_gguf : *family->defaults;
    complete_defaults(spec);
    FR_TRY(read_rows(family, source, spec));
    FR_TRY(read_tensors(source, spec));
    if (source->gguf) pair_as_rows_stand(family->names->rotary_rows, &spec->trunk);
    FR_TRY(family->rope(source, spec));
    complete(family, source, spec);
    FR_TRY(family->shape ? family->shape(source, spec) : fr_layers_alike(source, spec));
    if (family->names->mtp) fr_mtp_keep(source, family->names, spec);
    FR_TRY(read_arrays(family, source, spec));
    return check(spec, source->where);
}

/* ----------------------------------------------------------------------------------------------------------- shapes */

float fr_rsqrt(size_t n) {
    return (float)(1.0 / sqrt((double)n));
}

fr_status fr_read_image_token(const fr_source *source, fr_model_spec *spec) {
    int64_t id, last = (int64_t)spec->trunk.vocab - 1;
    FR_TRY(fr_json_int(source->root, "image_token_id", 0, last, -1, source->where, &id));
    spec->image_token = (int32_t)id;
    return FR_OK;
}

fr_status fr_source_words(const fr_source *source, const char *key, const char *yes, const char *no, size_t layers,
                          bool *is_yes, bool *found) {
    const json_t *list = json_object_get(source->text, key);
    *found = list && !json_is_null(list);
    if (*found && json_array_size(list) != layers)
        return fr_fail(FR_INPUT, "%s: %s is no array of %zu words", source->where, key, layers);
    for (size_t i = 0; i < layers && *found; i++) {
        const char *word = json_string_value(json_array_get(list, i));
        if (!word)
            return fr_fail(FR_INPUT, "%s: %s has no word for layer %zu, expected %s or %s", source->where, key, i, yes,
                           no);
        is_yes[i] = strcmp(word, yes) == 0;
        if (!is_yes[i] && strcmp(word, no) != 0)
            return fr_fail(FR_INPUT, "%s: %s has \"%.40s\" for layer %zu, expected %s or %s", source->where, key, word,
                           i, yes, no);
    }
    return FR_OK;
}

bool fr_source_has(const fr_source *source, const char *tensor) {
    return source->weights && fr_weights_has(source->weights, "", tensor);
}

bool fr_source_layer_has(const fr_source *source, const fr_model_spec *spec, const char *tensor) {
    char name[64];
    bool has = false;
    for (size_t i = 0; i < spec->trunk.layers + spec->mtp_layers && !has; i++) {
        snprintf(name, sizeof name, "blk.%zu.%s", i, tensor);
        has = fr_source_has(source, name);
    }
    return has;
}

fr_status fr_layers_alike(const fr_source *source, fr_model_spec *spec) {
    (void)source;
    return fr_spec_repeat(&spec->trunk, &spec->layer);
}

/* ---------------------------------------------------------------------------------------------------------- writing */

/* Writes one number if all layers have the same number, and an array otherwise. */
static void put_each(const fr_config_row *row, fr_model_spec *spec, fr_gguf_writer *w) {
    const fr_trunk_spec *trunk = &spec->trunk;
    bool same = true;
    for (size_t i = 0; i < trunk->layers; i++)
        same &= *of_layer(&trunk->layer[i], row) == *of_layer(&trunk->layer[0], row);
    if (same) {
        fr_gguf_put_u32(w, row->gguf, (uint32_t)*of_layer(&trunk->layer[0], row));
        return;
    }
    fr_gguf_put_array(w, row->gguf, FR_GGUF_I32, trunk->layers);
    for (size_t i = 0; i < trunk->layers; i++) fr_gguf_add_u32(w, (uint32_t)*of_layer(&trunk->layer[i], row));
}

/* Writes a number, or the row's lower limit if that is larger. For example, readers require a window even if no layer
 * slides. */
static void put_size(const fr_config_row *row, size_t value, fr_gguf_writer *w) {
    if (value || !row->sparse) fr_gguf_put_u32(w, row->gguf, (uint32_t)fr_larger(value, (size_t)row->low));
}

static void put_real(const fr_config_row *row, double value, fr_gguf_writer *w) {
    if (value != 0.0 || row->required) fr_gguf_put_f32(w, row->gguf, (float)value);
}

static void put_row(const fr_config_row *row, fr_model_spec *spec, fr_gguf_writer *w) {
    void *field = at(spec, row->field);
    switch (row->kind) {
    case FR_ROW_SIZE:
    case FR_ROW_SAME:
    case FR_ROW_MTP: put_size(row, *(size_t *)field, w); break;
    case FR_ROW_EACH: put_each(row, spec, w); break;
    case FR_ROW_REAL: put_real(row, real_at(field, row->bytes), w); break;
    case FR_ROW_DIVISOR: put_real(row, *(float *)field == 0.0F ? 1.0 : 1.0 / (double)*(float *)field, w); break;
    case FR_ROW_FLAG: fr_gguf_put_bool(w, row->gguf, *(bool *)field); break;
    case FR_ROW_RSQRT:
    case FR_ROW_ONLY:
    case FR_ROW_ACTIVATION:
    case FR_ROW_WITHOUT:
    case FR_ROW_WITH:
    case FR_ROW_ABSENT:
    case FR_ROW_KINDS:
    case FR_ROW_PART: break;
    }
}

static fr_status check_scale(const fr_family *family, const fr_config_row *row, const fr_model_spec *spec,
                             const char *where) {
    if (spec->layer.attention.scale == scale_in_gguf(family, &spec->trunk, &spec->layer.attention)) return FR_OK;
    return fr_fail(FR_INPUT, "%s: GGUF has no key for its %s", where, row->json);
}

/* Makes a spec from a trunk, so that the family's rows (fr_config_row) can be written from it. Rows are written from
 * the spec of a single layer. This is the MTP layer's spec, because the MTP layer always has attention. */
static fr_model_spec spec_of(const fr_trunk_spec *trunk, size_t mtp_layers) {
    fr_model_spec spec = {.trunk = *trunk, .mtp_layers = mtp_layers, .layer = *fr_spec_layer(trunk, trunk->layers)};
    for (size_t i = 0; i < trunk->layers; i++) spec.borrowers += !trunk->layer[i].attention.owns_kv;
    spec.layer.attention.window = fr_spec_window(trunk);
    spec.layer.ffn.width = trunk->ffn_width;
    spec.trunk.layers += mtp_layers;
    return spec;
}

fr_status fr_family_put(const fr_family *family, const fr_trunk_spec *trunk, size_t mtp_layers, const char *where,
                        fr_gguf_writer *w) {
    fr_model_spec spec = spec_of(trunk, mtp_layers);
    for (size_t t = 0; t < sizeof family->rows / sizeof *family->rows && family->rows[t]; t++)
        for (const fr_config_row *row = family->rows[t]; is_row(row); row++) {
            if (row->part && row->part->put) FR_TRY(row->part->put(trunk, mtp_layers, where, w));
            if (row->kind == FR_ROW_ACTIVATION && spec.layer.ffn.activation != family->defaults->layer.ffn.activation)
                return fr_fail(FR_INPUT, "%s: GGUF has no key for its %s", where, row->json);
            if (row->kind == FR_ROW_RSQRT) FR_TRY(check_scale(family, row, &spec, where));
            if (row->kind == FR_ROW_KINDS)
                fr_layers_put_kinds(trunk, family->defaults->kinds.every, w);
            else if (row->gguf)
                put_row(row, &spec, w);
        }
    return family->scaling_in_rows ? FR_OK : fr_rope_put(family, trunk, where, w);
}
