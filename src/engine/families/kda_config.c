/* Reads and writes Kimi Delta Attention in configurations: see kda_config.h. Names in GGUF:
 * github.com/ggml-org/llama.cpp, conversion/kimi_linear.py and conversion/bailingmoe3.py. */
#include "src/engine/families/kda_config.h"

#include "base/error.h"
#include "src/engine/families/mamba_config.h"
#include "src/engine/families/mixture.h"

fr_status fr_kda_layers(const fr_source *source, fr_model_spec *s, bool *attends,
                        fr_status (*layers)(const fr_source *source, fr_model_spec *spec)) {
    const fr_deltanet_spec deltanet = s->layer.deltanet;
    int64_t heads[FR_LAYERS_MAX];
    if (source->gguf) {
        FR_TRY(fr_mamba_gguf_kv_heads(source, s->trunk.layers + s->mtp_layers, heads));
        for (size_t i = 0; i < s->trunk.layers; i++) attends[i] = heads[i] != 0;
    }
    s->layer.attention.kv_heads = 1;
    s->layer.deltanet = (fr_deltanet_spec){0};
    FR_TRY(layers(source, s));
    for (size_t i = 0; i < s->trunk.layers; i++) {
        fr_layer_spec *layer = &s->trunk.layer[i];
        if (attends[i]) continue;
        layer->mixer = FR_MIXER_DELTANET;
        layer->attention = (fr_attention_spec){0};
        layer->mla = (fr_mla_spec){0};
        layer->deltanet = deltanet;
    }
    return FR_OK;
}

fr_status fr_kda_put(const fr_trunk_spec *s, const char *where, fr_gguf_writer *w, const fr_deltanet_spec **delta) {
    const fr_deltanet_spec *d = NULL;
    for (size_t i = 0; i < s->layers; i++)
        if (s->layer[i].mixer == FR_MIXER_DELTANET) d = &s->layer[i].deltanet;
    if (!d)
        return fr_fail(FR_UNBUILT, "%s: no layer is Kimi Delta Attention, which GGUF has numbers of: that is not built",
                       where);
    if (d->value_heads != fr_spec_attention(s)->heads)
        return fr_fail(FR_INPUT, "%s: GGUF has no key for %zu heads of Kimi Delta Attention beside %zu of attention",
                       where, d->value_heads, fr_spec_attention(s)->heads);
    fr_gguf_put_u32(w, ".ssm.conv_kernel", (uint32_t)d->conv_kernel);
    fr_gguf_put_u32(w, ".kda.head_dim", (uint32_t)d->key_dim);
    *delta = d;
    return FR_OK;
}

fr_status fr_kda_mixture(const fr_source *source, fr_model_spec *s) {
    fr_experts_spec *e = &s->layer.experts;
    const json_t *text = source->text;
    const char *where = source->where;
    if (source->gguf) return fr_mixture_read(source, s);
    const fr_mixture_words words = {.top_k = fr_json_spelling(text, "num_experts_per_token", "num_experts_per_tok"),
                                    .shared = fr_json_spelling(text, "num_shared_experts", "n_shared_experts")};
    s->mixture.words = &words;
    fr_status status = fr_mixture_read(source, s);
    s->mixture.words = NULL;
    FR_TRY(status);
    FR_TRY(fr_json_bool(text, "moe_renormalize", e->norm_top_k, where, &e->norm_top_k));
    return fr_json_size(text, "num_expert_group", 1, 4096, (int64_t)e->groups, where, &e->groups);
}
