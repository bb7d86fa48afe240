/* Reads and writes Mamba-2 in configurations: see mamba_config.h. Names in GGUF: github.com/ggml-org/llama.cpp,
 * conversion/mamba.py. */
#include "src/engine/families/mamba_config.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "formats/json_wide.h"

#define MAMBA(below)                                                                                                  \
    FR_NAMED(fr_layer, mamba.in_z, FR_SLOT_MAMBA_IN, MAMBA_INPUTS, HIDDEN, below "in_proj.weight", "ssm_in.weight",   \
             .also = FR_ALSO_MAMBA),                                                                                  \
        FR_VECTOR(fr_layer, mamba.in_bias, MAMBA_INPUTS, below "in_proj.bias", NULL,                                  \
                  .also = FR_ALSO_MAMBA | FR_ALSO_MAMBA_BIAS),                                                        \
        FR_MATRIX(fr_layer, mamba.out, HIDDEN, MAMBA_VALUES, below "out_proj.weight", "ssm_out.weight",               \
                  .also = FR_ALSO_MAMBA, .factor = offsetof(fr_layer_spec, factors.mamba_out)),                       \
        FR_VECTOR(fr_layer, mamba.out_bias, HIDDEN, below "out_proj.bias", NULL,                                      \
                  .also = FR_ALSO_MAMBA | FR_ALSO_MAMBA_BIAS),                                                        \
        FR_NAMED(fr_layer, mamba.conv, FR_SLOT_CONV, MAMBA_CHANNELS, CONV_KERNEL, below "conv1d.weight",              \
                 "ssm_conv1d.weight", .also = FR_ALSO_MAMBA),                                                         \
        FR_VECTOR(fr_layer, mamba.conv_bias, MAMBA_CHANNELS, below "conv1d.bias", "ssm_conv1d.bias",                  \
                  .also = FR_ALSO_MAMBA | FR_ALSO_CONV_BIAS),                                                         \
        FR_VECTOR(fr_layer, mamba.dt_bias, MAMBA_HEADS, below "dt_bias", "ssm_dt.bias", .also = FR_ALSO_MAMBA),       \
        FR_NAMED(fr_layer, mamba.decay, FR_SLOT_IN_ROWS, MAMBA_HEADS, ONE, below "A_log", "ssm_a",                    \
                 .also = FR_ALSO_MAMBA, .values = FR_LOG_OF_MINUS),                                                   \
        FR_NAMED(fr_layer, mamba.skip, FR_SLOT_IN_ROWS, MAMBA_HEADS, ONE, below "D", "ssm_d", .also = FR_ALSO_MAMBA), \
        FR_NAMED(fr_layer, mamba.norm, FR_SLOT_IN_ROWS, MAMBA_VALUES, ONE, below "norm.weight", "ssm_norm.weight",    \
                 .also = FR_ALSO_MAMBA | FR_ALSO_MAMBA_NORM)

const fr_tensor_name fr_mamba_names[] = {MAMBA("mamba."), {0}}, fr_mamba_mixer_names[] = {MAMBA("mixer."), {0}};

/* ------------------------------------------------------------------------------------------------------------ sizes */

enum { HEAD_DIM_MAX = 4096 };

static fr_status read_gguf(const fr_source *source, fr_model_spec *spec) {
    fr_mamba_spec *m = &spec->layer.mamba;
    const fr_gguf *gguf = source->gguf;
    size_t inner;
    if (!gguf) return FR_OK;
    FR_TRY(fr_gguf_size(gguf, ".ssm.inner_size", 1, 1 << 24, FR_GGUF_REQUIRED, &inner));
    m->head_dim = inner / m->heads;
    m->conv_bias = fr_source_layer_has(source, spec, "ssm_conv1d.bias");
    if (m->head_dim * m->heads == inner && m->head_dim <= HEAD_DIM_MAX) return FR_OK;
    return fr_fail(FR_INPUT, "%s: key %s.ssm.inner_size: %zu values are not those of %zu heads of at most %d",
                   gguf->path, gguf->architecture, inner, m->heads, HEAD_DIM_MAX);
}

/* Writes the width of all heads together. GGUF has no keys for biases of the projections and for norms before the
 * gates, so models with these are refused. */
static fr_status put(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_mamba_spec *m = &fr_spec_layer(s, s->layers)->mamba;
    (void)mtp_layers;
    fr_gguf_put_u32(w, ".ssm.inner_size", (uint32_t)(m->heads * m->head_dim));
    if (m->bias) return fr_fail(FR_INPUT, "%s: GGUF has no tensors for biases of Mamba-2's projections", where);
    if (m->norm_groups && m->norm_first)
        return fr_fail(FR_INPUT, "%s: GGUF has no key for norms before the gates of Mamba-2", where);
    return FR_OK;
}

const fr_config_part fr_mamba_part = {.read = read_gguf, .put = put};

fr_status fr_mamba_head_dim(const fr_source *source, const char *key, size_t inner, fr_model_spec *spec) {
    const json_t *value = json_object_get(source->text, key);
    const char *word = json_string_value(value);
    fr_mamba_spec *m = &spec->layer.mamba;
    bool computed = (word && strcmp(word, "auto") == 0) || (!m->head_dim && (!value || json_is_null(value)));
    if (source->gguf) return FR_OK;
    if (computed)
        m->head_dim = inner / m->heads;
    else
        FR_TRY(fr_json_size(source->text, key, 1, HEAD_DIM_MAX, (int64_t)m->head_dim, source->where, &m->head_dim));
    if (m->head_dim >= 1 && m->head_dim <= HEAD_DIM_MAX && (!inner || m->head_dim * m->heads == inner)) return FR_OK;
    return fr_fail(FR_INPUT, "%s: %s: %zu heads of Mamba-2 of %zu values have not %zu values together", source->where,
                   key, m->heads, m->head_dim, inner);
}

/* Reads a number that may be infinite. An infinite number is written as Python writes it, or in the form that
 * transformers uses since version 5. */
static bool read_limit(const json_t *value, float *limit) {
    const char *word = fr_json_not_finite(value);
    if (json_is_object(value)) word = json_string_value(json_object_get(value, "__float__"));
    if (word && strcmp(word, "Infinity") == 0)
        *limit = INFINITY;
    else if (json_is_number(value))
        *limit = (float)json_number_value(value);
    else
        return false;
    return *limit >= 0;
}

fr_status fr_mamba_limits(const fr_source *source, const char *key, fr_model_spec *spec) {
    const json_t *list = json_object_get(source->text, key);
    fr_mamba_spec *m = &spec->layer.mamba;
    if (!list || json_is_null(list)) return FR_OK;
    if (json_array_size(list) == 2 && read_limit(json_array_get(list, 0), &m->step_min) &&
        read_limit(json_array_get(list, 1), &m->step_max) && m->step_min <= m->step_max)
        return FR_OK;
    return fr_fail(FR_INPUT, "%s: %s is no list of two ascending numbers, which are 0 or larger", source->where, key);
}

fr_status fr_mamba_put_no_limits(const fr_mamba_spec *mamba, const char *where) {
    if (mamba->step_min <= 0.0F && isinf(mamba->step_max)) return FR_OK;
    return fr_fail(FR_INPUT, "%s: GGUF has no key for its time_step_limit", where);
}

fr_status fr_mamba_check(const fr_source *source, fr_model_spec *spec, bool normed) {
    fr_mamba_spec *m = &spec->layer.mamba;
    m->norm_groups = normed ? m->groups : 0;
    if (m->heads % m->groups == 0) return FR_OK;
    return fr_fail(FR_INPUT, "%s: %zu heads of Mamba-2 are no multiple of %zu groups", source->where, m->heads,
                   m->groups);
}

/* ----------------------------------------------------------------------------------------------------------- layers */

static const char kv_key[] = ".attention.head_count_kv";

fr_status fr_mamba_gguf_kv_heads(const fr_source *source, size_t layers, int64_t *heads) {
    return fr_gguf_ints(source->gguf, kv_key, 0, 4096, FR_GGUF_REQUIRED, layers, heads);
}

static fr_status read_kv_heads(const fr_source *source, fr_model_spec *s) {
    int64_t numbers[FR_LAYERS_MAX];
    const json_t *value = json_object_get(source->text, "num_key_value_heads");
    size_t *most = &s->layer.attention.kv_heads;
    int64_t fallback = (int64_t)(*most && !json_is_null(value) ? *most : s->layer.attention.heads);
    if (!source->gguf) return fr_json_size(source->text, "num_key_value_heads", 1, 4096, fallback, source->where, most);
    FR_TRY(fr_mamba_gguf_kv_heads(source, s->trunk.layers + s->mtp_layers, numbers));
    for (size_t i = *most = 0; i < s->trunk.layers; i++)
        if (numbers[i]) *most = (size_t)numbers[i];
    if (!*most) *most = s->layer.attention.heads;
    return FR_OK;
}

/* Writes the numbers of key/value heads. This is one number if all layers have attention, and an array otherwise. */
static fr_status put_kv_heads(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    size_t without = 0;
    (void)where;
    for (size_t i = 0; i < s->layers; i++) without += s->layer[i].attention.kv_heads == 0;
    if (!without) {
        fr_gguf_put_u32(w, kv_key, (uint32_t)fr_spec_attention(s)->kv_heads);
        return FR_OK;
    }
    fr_gguf_put_array(w, kv_key, FR_GGUF_I32, s->layers + mtp_layers);
    for (size_t i = 0; i < s->layers + mtp_layers; i++)
        fr_gguf_add_u32(w, (uint32_t)fr_spec_layer(s, i)->attention.kv_heads);
    return FR_OK;
}

const fr_config_part fr_mamba_kv_heads_part = {.read = read_kv_heads, .put = put_kv_heads};

void fr_mamba_set_mixer(fr_layer_spec *layer, fr_mixer mixer) {
    layer->mixer = mixer;
    if (!fr_mixer_attends(mixer)) layer->attention = (fr_attention_spec){0};
    if (mixer != FR_MIXER_MAMBA && mixer != FR_MIXER_BOTH) layer->mamba = (fr_mamba_spec){0};
}
