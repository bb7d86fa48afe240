/* Qwen3.5's configuration: the hub's JSON, or GGUF metadata, to checked numbers and a spec; a spec to GGUF metadata.
 *
 * In: config.json or a GGUF file as llama.cpp's converter writes it. Out: fr_qwen35_config; the converter's keys. Keys
 * left out of the JSON take the defaults of transformers' Qwen3_5TextConfig or Qwen3_5MoeTextConfig. What would change
 * the answer and is not built (biases, attention without its gate, several MTP layers, in folders one with a table of
 * its own) is refused. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "src/families/config_keys.h"
#include "src/families/qwen35.h"
#include "src/families/rope_config.h"

static const size_t usual_sections[FR_AXES] = {11, 11, 10};

static const fr_uniform_config usual = {.vocab = 248320,
                                        .hidden = 4096,
                                        .layers = 32,
                                        .heads = 16,
                                        .kv_heads = 4,
                                        .ffn = 12288,
                                        .context_limit = 32768,
                                        .eps = 1e-6F};

/* Of layers that are mixtures, all of them. */
static const fr_uniform_config usual_of_mixtures = {.vocab = 248320,
                                                    .hidden = 2048,
                                                    .layers = 40,
                                                    .heads = 16,
                                                    .kv_heads = 2,
                                                    .ffn = 512,
                                                    .context_limit = 32768,
                                                    .eps = 1e-6F};

static const fr_mixture_config usual_mixture = {.experts = {.count = 256,
                                                            .top_k = 8,
                                                            .width = 512,
                                                            .activation = FR_SILU,
                                                            .scoring = FR_SCORING_SOFTMAX,
                                                            .norm_top_k = true,
                                                            .routed_scaling = 1.0F,
                                                            .shared_gated = true},
                                                .shared = 1,
                                                .normalizes = true};

void fr_qwen35_set_interval(fr_qwen35_config *c, size_t interval) {
    for (size_t i = 0; i < c->uniform.layers; i++) c->recurrent[i] = (i + 1) % interval != 0;
}

/* Whether the numbers go together. */
static fr_status check(const fr_qwen35_config *c, const char *where) {
    const fr_rope_spec *rope = &c->uniform.rope;
    size_t angles = 0;
    FR_TRY(fr_uniform_check(&c->uniform, where));
    for (int axis = 0; axis < FR_AXES; axis++) angles += rope->sections[axis];
    if (angles != rope->dims / 2)
        return fr_fail(FR_INPUT, "%s: the sections of the rotary positions have %zu angles, the heads %zu", where,
                       angles, rope->dims / 2);
    return c->mixture.experts.count ? fr_mixture_check(&c->mixture, c->uniform.layers, where) : FR_OK;
}

/* The same of heads, for which each kind of file has a key of its own. */
static fr_status check_heads(const fr_deltanet_spec *d, const char *where, const char *key) {
    if (d->value_heads % d->key_heads == 0) return FR_OK;
    return fr_fail(FR_INPUT, "%s%s: %zu value heads of DeltaNet are no multiple of %zu key heads", where, key,
                   d->value_heads, d->key_heads);
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

static fr_status read_kinds(const json_t *text, fr_qwen35_config *c, const char *where) {
    const json_t *kinds = json_object_get(text, "layer_types");
    int64_t interval;
    FR_TRY(fr_json_int(text, "full_attention_interval", 1, FR_MOST_LAYERS, 4, where, &interval));
    fr_qwen35_set_interval(c, (size_t)interval);
    if (!kinds || json_is_null(kinds)) return FR_OK;
    if (json_array_size(kinds) != c->uniform.layers)
        return fr_fail(FR_INPUT, "%s: layer_types is not an array of %zu kinds", where, c->uniform.layers);
    for (size_t i = 0; i < c->uniform.layers; i++) {
        const char *kind = json_string_value(json_array_get(kinds, i));
        bool full = kind && strcmp(kind, "full_attention") == 0;
        c->recurrent[i] = !full;
        if (!full && (!kind || strcmp(kind, "linear_attention") != 0))
            return fr_fail(FR_INPUT, "%s: layer_types has \"%.40s\" for layer %zu", where, kind ? kind : "", i);
    }
    return FR_OK;
}

static fr_status read_deltanet(const json_t *text, fr_deltanet_spec *d, const char *where) {
    FR_TRY(fr_json_size(text, "linear_num_key_heads", 1, 4096, 16, where, &d->key_heads));
    FR_TRY(fr_json_size(text, "linear_num_value_heads", 1, 4096, 32, where, &d->value_heads));
    FR_TRY(fr_json_size(text, "linear_key_head_dim", 1, 4096, 128, where, &d->key_dim));
    FR_TRY(fr_json_size(text, "linear_value_head_dim", 1, 4096, 128, where, &d->value_dim));
    return fr_json_size(text, "linear_conv_kernel_dim", 1, FR_MOST_CONV_KERNEL, 4, where, &d->conv_kernel);
}

static fr_status read_rope(const json_t *text, fr_uniform_config *c, const char *where) {
    double partial = 0.25;
    FR_TRY(fr_rope_from_json(&c->rope, text, c->context_limit, where, &partial));
    c->rope.dims = (size_t)((double)c->head_dim * partial);
    c->rope.neox = c->rope.mrope_interleaved = true;
    return fr_config_sections(text, usual_sections, where, c->rope.sections);
}

/* Its shared expert's width has a default of its own, not the others' width. */
static fr_status read_mixture(const json_t *text, fr_mixture_config *c, const char *where) {
    FR_TRY(fr_mixture_from_json(c, text, &usual_mixture, where));
    return fr_json_size(text, "shared_expert_intermediate_size", 0, 1 << 22, 512, where, &c->shared);
}

static fr_status from_json(fr_qwen35_config *c, const fr_weights *weights, bool mixture) {
    static const char where[] = "config.json";
    bool gated;
    json_t *text;
    FR_TRY(fr_json_object(weights->files->config, "text_config", where, &text));
    if (!text) text = weights->files->config; /* a text model alone */
    FR_TRY(fr_config_head(text, where, weights));
    FR_TRY(fr_config_without(text, "attention_bias", where));
    FR_TRY(fr_config_without(text, "mtp_use_dedicated_embeddings", where));
    FR_TRY(fr_json_bool(text, "attn_output_gate", true, where, &gated));
    if (!gated) return fr_fail(FR_UNBUILT, "%s: attention without attn_output_gate is not built", where);
    FR_TRY(fr_uniform_from_json(&c->uniform, text, mixture ? &usual_of_mixtures : &usual, where));
    FR_TRY(fr_json_size(text, "head_dim", 2, 4096, 256, where, &c->uniform.head_dim));
    FR_TRY(fr_config_mtp(text, "mtp_num_hidden_layers", 0, where, &c->mtp_layers));
    FR_TRY(read_kinds(text, c, where));
    FR_TRY(read_deltanet(text, &c->deltanet, where));
    if (mixture) FR_TRY(read_mixture(text, &c->mixture, where));
    FR_TRY(check_heads(&c->deltanet, where, ": linear_num_value_heads"));
    return read_rope(text, &c->uniform, where);
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

static fr_status read_gguf_deltanet(const fr_gguf *gguf, fr_deltanet_spec *d) {
    size_t inner;
    FR_TRY(fr_gguf_size(gguf, ".ssm.group_count", 1, 4096, FR_GGUF_REQUIRED, &d->key_heads));
    FR_TRY(fr_gguf_size(gguf, ".ssm.time_step_rank", 1, 4096, FR_GGUF_REQUIRED, &d->value_heads));
    FR_TRY(fr_gguf_size(gguf, ".ssm.state_size", 1, 4096, FR_GGUF_REQUIRED, &d->key_dim));
    FR_TRY(fr_gguf_size(gguf, ".ssm.inner_size", 1, 1 << 24, FR_GGUF_REQUIRED, &inner));
    FR_TRY(fr_gguf_size(gguf, ".ssm.conv_kernel", 1, FR_MOST_CONV_KERNEL, FR_GGUF_REQUIRED, &d->conv_kernel));
    d->tiled = true;
    d->value_dim = inner / d->value_heads;
    if (d->value_dim * d->value_heads == inner && d->value_dim <= 4096) return FR_OK;
    return fr_fail(FR_INPUT, "%s: key %s.ssm.inner_size: %zu values are not those of %zu heads of at most 4096",
                   gguf->path, gguf->architecture, inner, d->value_heads);
}

/* Newer files tell it of each block, the MTP layer's too; older ones have every how manieth has attention. */
static fr_status read_gguf_kinds(const fr_gguf *gguf, fr_qwen35_config *c) {
    int64_t recurrent[FR_MOST_LAYERS];
    size_t interval, layers = c->uniform.layers, blocks = layers + c->mtp_layers;
    FR_TRY(fr_gguf_size(gguf, ".full_attention_interval", 1, FR_MOST_LAYERS, 4, &interval));
    fr_qwen35_set_interval(c, interval);
    if (!fr_gguf_find(gguf, ".attention.recurrent_layers")) return FR_OK;
    FR_TRY(fr_gguf_ints(gguf, ".attention.recurrent_layers", 0, 1, FR_GGUF_REQUIRED, blocks, recurrent));
    for (size_t i = 0; i < layers; i++) c->recurrent[i] = recurrent[i] != 0;
    return FR_OK;
}

static fr_status from_gguf(fr_qwen35_config *c, const fr_checkpoint *files, bool mixture) {
    const fr_gguf *gguf = files->gguf;
    if (mixture) FR_TRY(fr_mixture_from_gguf(&c->mixture, gguf, &usual_mixture));
    FR_TRY(fr_uniform_from_gguf(&c->uniform, files));
    FR_TRY(fr_config_gguf_mtp(gguf, &c->uniform.layers, &c->mtp_layers));
    c->uniform.rope.neox = c->uniform.rope.mrope_interleaved = true;
    FR_TRY(fr_rope_scaling_from_gguf(&c->uniform.rope, gguf));
    FR_TRY(fr_config_gguf_sections(gguf, c->uniform.rope.sections));
    FR_TRY(read_gguf_kinds(gguf, c));
    FR_TRY(read_gguf_deltanet(gguf, &c->deltanet));
    char where[1024];
    snprintf(where, sizeof where, "%s: key %s", gguf->path, gguf->architecture);
    return check_heads(&c->deltanet, where, ".ssm.time_step_rank");
}

fr_status fr_qwen35_config_read(fr_qwen35_config *config, const fr_weights *weights, bool mixture) {
    const fr_checkpoint *files = weights->files;
    *config = (fr_qwen35_config){0};
    FR_TRY(files->gguf ? from_gguf(config, files, mixture) : from_json(config, weights, mixture));
    return check(config, files->gguf ? files->gguf->path : "config.json");
}

/* ------------------------------------------------------------------------------------------------------------- spec */

fr_status fr_qwen35_spec(const fr_qwen35_config *c, fr_trunk_spec *spec) {
    size_t states = 0;
    FR_TRY(fr_uniform_spec(&c->uniform, spec));
    spec->mtp.attention.output_gate = true;
    if (c->mixture.experts.count) fr_mixture_add(&c->mixture, spec);
    for (size_t i = 0; i < spec->layers; i++) {
        fr_layer_spec *layer = &spec->layer[i];
        *layer = spec->mtp;
        if (!c->recurrent[i]) continue;
        layer->mixer = FR_MIXER_DELTANET;
        layer->attention = (fr_attention_spec){0};
        layer->deltanet = c->deltanet;
        layer->deltanet.state = states++;
    }
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

/* The first layer with attention says how many there are to one, which older readers ask. */
static void put_kinds(const fr_trunk_spec *s, size_t mtp_layers, fr_gguf_writer *w) {
    size_t first = 0;
    while (first < s->layers && s->layer[first].mixer == FR_MIXER_DELTANET) first++;
    fr_gguf_put_array(w, ".attention.recurrent_layers", FR_GGUF_BOOL, s->layers + mtp_layers);
    for (size_t i = 0; i < s->layers + mtp_layers; i++)
        fr_gguf_add_bool(w, fr_spec_layer(s, i)->mixer == FR_MIXER_DELTANET);
    fr_gguf_put_u32(w, ".full_attention_interval", (uint32_t)first + 1);
}

static void put_deltanet(const fr_deltanet_spec *d, fr_gguf_writer *w) {
    fr_gguf_put_u32(w, ".ssm.conv_kernel", (uint32_t)d->conv_kernel);
    fr_gguf_put_u32(w, ".ssm.state_size", (uint32_t)d->key_dim);
    fr_gguf_put_u32(w, ".ssm.group_count", (uint32_t)d->key_heads);
    fr_gguf_put_u32(w, ".ssm.time_step_rank", (uint32_t)d->value_heads);
    fr_gguf_put_u32(w, ".ssm.inner_size", (uint32_t)(d->value_heads * d->value_dim));
}

fr_status fr_qwen35_put_keys(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_deltanet_spec *d = NULL;
    for (size_t i = 0; i < s->layers; i++)
        if (s->layer[i].mixer == FR_MIXER_DELTANET) d = &s->layer[i].deltanet;
    if (!d) return fr_fail(FR_UNBUILT, "%s: no layer is gated DeltaNet, which GGUF has numbers of", where);
    fr_uniform_put_sizes(s, mtp_layers, w);
    fr_config_put_sections(&s->rope[0], w);
    fr_uniform_put_heads(s, w);
    if (mtp_layers) fr_gguf_put_u32(w, ".nextn_predict_layers", (uint32_t)mtp_layers);
    put_deltanet(d, w);
    put_kinds(s, mtp_layers, w);
    if (s->mtp.experts.count) FR_TRY(fr_mixture_put_keys(s, where, w));
    return fr_rope_put_scaling(&s->rope[0], where, w);
}
