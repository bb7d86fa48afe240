/* Reads and writes gated DeltaNet in configurations: see deltanet_config.h. */
#include "src/engine/families/deltanet_config.h"

#include <string.h>

#include "base/error.h"

const fr_tensor_name fr_deltanet_names[] = {
    FR_MATRIX(fr_layer, deltanet.out, HIDDEN, DELTA_VALUES, "linear_attn.out_proj.weight", "ssm_out.weight",
              .needs = FR_IF_DELTANET, .order = FR_COLS_TILED),
    FR_NAMED(fr_layer, deltanet.conv, FR_SLOT_CONV, DELTA_CHANNELS, CONV_KERNEL, "linear_attn.conv1d.weight",
             "ssm_conv1d.weight", .needs = FR_IF_DELTANET, .order = FR_ROWS_TILED),
    FR_VECTOR(fr_layer, deltanet.dt_bias, DELTA_HEADS, "linear_attn.dt_bias", "ssm_dt.bias", .needs = FR_IF_DELTANET,
              .order = FR_ROWS_TILED),
    FR_VECTOR(fr_layer, deltanet.decay, DELTA_HEADS, "linear_attn.A_log", "ssm_a", .needs = FR_IF_DELTANET,
              .order = FR_ROWS_TILED, .values = FR_LOG_OF_MINUS),
    FR_VECTOR(fr_layer, deltanet.value_norm, DELTA_HEAD, "linear_attn.norm.weight", "ssm_norm.weight",
              .needs = FR_IF_DELTANET),
    {0},
};

/* ------------------------------------------------------------------------------------------------------------ sizes */

static fr_status from_json(const json_t *text, fr_deltanet_spec *d, const char *where) {
    const struct {
        const char *key;
        int64_t high;
        size_t *size;
    } keys[] = {{"linear_num_key_heads", 4096, &d->key_heads},
                {"linear_num_value_heads", 4096, &d->value_heads},
                {"linear_key_head_dim", 4096, &d->key_dim},
                {"linear_value_head_dim", 4096, &d->value_dim},
                {"linear_conv_kernel_dim", FR_CONV_KERNEL_MAX, &d->conv_kernel}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        FR_TRY(fr_json_size(text, keys[i].key, 1, keys[i].high, (int64_t)*keys[i].size, where, keys[i].size));
    if (d->value_heads % d->key_heads == 0) return FR_OK;
    return fr_fail(FR_INPUT, "%s: linear_num_value_heads: %zu value heads of DeltaNet are no multiple of %zu key heads",
                   where, d->value_heads, d->key_heads);
}

static fr_status from_gguf(const fr_gguf *gguf, fr_deltanet_spec *d) {
    size_t inner;
    FR_TRY(fr_gguf_size(gguf, ".ssm.group_count", 1, 4096, FR_GGUF_REQUIRED, &d->key_heads));
    FR_TRY(fr_gguf_size(gguf, ".ssm.time_step_rank", 1, 4096, FR_GGUF_REQUIRED, &d->value_heads));
    FR_TRY(fr_gguf_size(gguf, ".ssm.state_size", 1, 4096, FR_GGUF_REQUIRED, &d->key_dim));
    FR_TRY(fr_gguf_size(gguf, ".ssm.inner_size", 1, 1 << 24, FR_GGUF_REQUIRED, &inner));
    FR_TRY(fr_gguf_size(gguf, ".ssm.conv_kernel", 1, FR_CONV_KERNEL_MAX, FR_GGUF_REQUIRED, &d->conv_kernel));
    d->tiled = true;
    d->value_dim = inner / d->value_heads;
    if (d->value_dim * d->value_heads != inner || d->value_dim > 4096)
        return fr_fail(FR_INPUT, "%s: key %s.ssm.inner_size: %zu values are not those of %zu heads of at most 4096",
                       gguf->path, gguf->architecture, inner, d->value_heads);
    if (d->value_heads % d->key_heads == 0) return FR_OK;
    return fr_fail(FR_INPUT,
                   "%s: key %s.ssm.time_step_rank: %zu value heads of DeltaNet are no multiple of %zu key "
                   "heads",
                   gguf->path, gguf->architecture, d->value_heads, d->key_heads);
}

static fr_status read_sizes(const fr_source *source, fr_model_spec *spec) {
    if (source->gguf) return from_gguf(source->gguf, &spec->layer.deltanet);
    return from_json(source->text, &spec->layer.deltanet, source->where);
}

/* ------------------------------------------------------------------------------------------------------------ kinds */

static void set_interval(const fr_model_spec *spec, size_t interval, bool *recurrent) {
    for (size_t i = 0; i < spec->trunk.layers; i++) recurrent[i] = (i + 1) % interval != 0;
}

static fr_status kinds_from_json(const fr_source *source, const fr_model_spec *spec, bool *recurrent) {
    const json_t *kinds = json_object_get(source->text, "layer_types");
    const char *where = source->where;
    size_t interval;
    FR_TRY(fr_json_size(source->text, "full_attention_interval", 1, FR_LAYERS_MAX, 4, where, &interval));
    set_interval(spec, interval, recurrent);
    if (!kinds || json_is_null(kinds)) return FR_OK;
    if (json_array_size(kinds) != spec->trunk.layers)
        return fr_fail(FR_INPUT, "%s: layer_types is not an array of %zu kinds", where, spec->trunk.layers);
    for (size_t i = 0; i < spec->trunk.layers; i++) {
        const char *kind = json_string_value(json_array_get(kinds, i));
        bool full = kind && strcmp(kind, "full_attention") == 0;
        recurrent[i] = !full;
        if (!full && (!kind || strcmp(kind, "linear_attention") != 0))
            return fr_fail(FR_INPUT, "%s: layer_types has \"%.40s\" for layer %zu", where, kind ? kind : "", i);
    }
    return FR_OK;
}

/* Finds out which layers are gated DeltaNet. Newer files have a flag for each layer, including the MTP layer. Older
 * files have the interval between layers with attention. */
static fr_status read_kinds(const fr_source *source, const fr_model_spec *spec, bool *recurrent) {
    const fr_gguf *gguf = source->gguf;
    int64_t flags[FR_LAYERS_MAX];
    size_t interval, blocks = spec->trunk.layers + spec->mtp_layers;
    if (!gguf) return kinds_from_json(source, spec, recurrent);
    FR_TRY(fr_gguf_size(gguf, ".full_attention_interval", 1, FR_LAYERS_MAX, 4, &interval));
    set_interval(spec, interval, recurrent);
    if (!fr_gguf_find(gguf, ".attention.recurrent_layers")) return FR_OK;
    FR_TRY(fr_gguf_ints(gguf, ".attention.recurrent_layers", 0, 1, FR_GGUF_REQUIRED, blocks, flags));
    for (size_t i = 0; i < spec->trunk.layers; i++) recurrent[i] = flags[i] != 0;
    return FR_OK;
}

static void become_deltanet(const fr_deltanet_spec *deltanet, fr_layer_spec *layer) {
    layer->mixer = FR_MIXER_DELTANET;
    layer->attention = (fr_attention_spec){0};
    layer->deltanet = *deltanet;
}

fr_status fr_deltanet_layers(const fr_source *source, fr_model_spec *spec,
                             fr_status (*layers)(const fr_source *source, fr_model_spec *spec)) {
    const fr_deltanet_spec deltanet = spec->layer.deltanet;
    bool recurrent[FR_LAYERS_MAX];
    FR_TRY(read_kinds(source, spec, recurrent));
    spec->layer.deltanet = (fr_deltanet_spec){0};
    FR_TRY(layers(source, spec));
    for (size_t i = 0; i < spec->trunk.layers; i++)
        if (recurrent[i]) become_deltanet(&deltanet, &spec->trunk.layer[i]);
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

/* Writes a flag for each layer. For older readers, also writes the interval, which is computed from the first layer
 * with attention. */
static void put_kinds(const fr_trunk_spec *s, size_t mtp_layers, fr_gguf_writer *w) {
    size_t first = 0;
    while (first < s->layers && s->layer[first].mixer == FR_MIXER_DELTANET) first++;
    fr_gguf_put_array(w, ".attention.recurrent_layers", FR_GGUF_BOOL, s->layers + mtp_layers);
    for (size_t i = 0; i < s->layers + mtp_layers; i++)
        fr_gguf_add_bool(w, fr_spec_layer(s, i)->mixer == FR_MIXER_DELTANET);
    fr_gguf_put_u32(w, ".full_attention_interval", (uint32_t)first + 1);
}

static fr_status put(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_deltanet_spec *d = NULL;
    for (size_t i = 0; i < s->layers; i++)
        if (s->layer[i].mixer == FR_MIXER_DELTANET) d = &s->layer[i].deltanet;
    if (!d)
        return fr_fail(FR_UNBUILT, "%s: no layer is gated DeltaNet, which GGUF has numbers of: that is not built",
                       where);
    fr_gguf_put_u32(w, ".ssm.conv_kernel", (uint32_t)d->conv_kernel);
    fr_gguf_put_u32(w, ".ssm.state_size", (uint32_t)d->key_dim);
    fr_gguf_put_u32(w, ".ssm.group_count", (uint32_t)d->key_heads);
    fr_gguf_put_u32(w, ".ssm.time_step_rank", (uint32_t)d->value_heads);
    fr_gguf_put_u32(w, ".ssm.inner_size", (uint32_t)(d->value_heads * d->value_dim));
    put_kinds(s, mtp_layers, w);
    return FR_OK;
}

const fr_config_part fr_deltanet_part = {.read = read_sizes, .put = put};
