/* Configurations of decoders whose layers are all alike: see uniform.h. */
#include "src/families/uniform.h"

#include <math.h>

#include "base/error.h"
#include "src/families/config_keys.h"

/* ---------------------------------------------------------------------------------------------------------- reading */

fr_status fr_uniform_from_json(fr_uniform_config *c, const json_t *text, const fr_uniform_config *usual,
                               const char *where) {
    double eps;
    int64_t heads, layers = (int64_t)usual->layers;
    FR_TRY(fr_config_only(text, "hidden_act", "silu", where));
    FR_TRY(fr_json_size(text, "vocab_size", 1, 1 << 24, (int64_t)usual->vocab, where, &c->vocab));
    FR_TRY(fr_json_size(text, "hidden_size", 1, 1 << 17, (int64_t)usual->hidden, where, &c->hidden));
    FR_TRY(fr_json_size(text, "intermediate_size", 1, 1 << 22, (int64_t)usual->ffn, where, &c->ffn));
    FR_TRY(fr_json_size(text, "num_hidden_layers", 1, FR_MOST_LAYERS, layers, where, &c->layers));
    FR_TRY(fr_json_int(text, "num_attention_heads", 1, 4096, (int64_t)usual->heads, where, &heads));
    int64_t kv_heads = usual->kv_heads ? (int64_t)usual->kv_heads : heads, head_dim = (int64_t)c->hidden / heads;
    c->heads = (size_t)heads;
    FR_TRY(fr_json_size(text, "num_key_value_heads", 1, 4096, kv_heads, where, &c->kv_heads));
    FR_TRY(fr_json_size(text, "head_dim", 2, 4096, head_dim, where, &c->head_dim));
    FR_TRY(fr_json_size(text, "max_position_embeddings", 1, 1 << 24, (int64_t)usual->context_limit, where,
                        &c->context_limit));
    FR_TRY(fr_json_real(text, "rms_norm_eps", 0.0, 1.0, (double)usual->eps, where, &eps));
    c->eps = (float)eps;
    return FR_OK;
}

static fr_status read_heads(fr_uniform_config *c, const fr_gguf *gguf) {
    size_t values;
    FR_TRY(fr_gguf_size(gguf, ".attention.head_count", 1, 4096, FR_GGUF_REQUIRED, &c->heads));
    FR_TRY(fr_gguf_size(gguf, ".attention.head_count_kv", 1, 4096, (int64_t)c->heads, &c->kv_heads));
    FR_TRY(fr_gguf_size(gguf, ".attention.key_length", 2, 4096, (int64_t)(c->hidden / c->heads), &c->head_dim));
    FR_TRY(fr_gguf_size(gguf, ".attention.value_length", 2, 4096, (int64_t)c->head_dim, &values));
    if (values == c->head_dim) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: keys of %zu and values of %zu are not built: both must be the same", gguf->path,
                   c->head_dim, values);
}

bool fr_uniform_biased_in_gguf(const fr_weights *weights) {
    return fr_weights_has(weights, "", "blk.0.attn_q.bias") || fr_weights_has(weights, "", "blk.0.attn_qkv.bias");
}

fr_status fr_uniform_sizes_from_gguf(fr_uniform_config *c, const fr_gguf *gguf) {
    double eps;
    FR_TRY(fr_gguf_size(gguf, ".embedding_length", 1, 1 << 17, FR_GGUF_REQUIRED, &c->hidden));
    int64_t usual_ffn = fr_gguf_find(gguf, ".expert_count") ? 1 : FR_GGUF_REQUIRED; /* no layer may be dense */
    FR_TRY(fr_gguf_size(gguf, ".feed_forward_length", 1, 1 << 22, usual_ffn, &c->ffn));
    FR_TRY(fr_gguf_size(gguf, ".context_length", 1, 1 << 24, FR_GGUF_REQUIRED, &c->context_limit));
    FR_TRY(fr_gguf_size(gguf, ".block_count", 1, FR_MOST_LAYERS, FR_GGUF_REQUIRED, &c->layers));
    FR_TRY(fr_gguf_real(gguf, ".attention.layer_norm_rms_epsilon", 0.0, 1.0, NAN, &eps));
    c->eps = (float)eps;
    return FR_OK;
}

fr_status fr_uniform_layers_from_gguf(fr_uniform_config *c, const fr_gguf *gguf) {
    c->rope = (fr_rope_spec){.kind = FR_ROPE_DEFAULT, .partial = 1.0, .factor = 1.0};
    FR_TRY(fr_uniform_sizes_from_gguf(c, gguf));
    FR_TRY(read_heads(c, gguf));
    int64_t head_dim = (int64_t)c->head_dim;
    FR_TRY(fr_gguf_size(gguf, ".rope.dimension_count", 2, head_dim, head_dim, &c->rope.dims));
    return fr_gguf_real(gguf, ".rope.freq_base", 1.001, 1e12, 10000.0, &c->rope.theta);
}

fr_status fr_uniform_from_gguf(fr_uniform_config *c, const fr_checkpoint *files) {
    FR_TRY(fr_uniform_layers_from_gguf(c, files->gguf));
    return fr_config_vocabulary(files, c->hidden, &c->vocab);
}

fr_status fr_uniform_check(const fr_uniform_config *c, const char *where) {
    if (c->heads % c->kv_heads)
        return fr_fail(FR_INPUT, "%s: %zu attention heads are no multiple of %zu key/value heads", where, c->heads,
                       c->kv_heads);
    if (c->rope.dims < 2 || c->rope.dims % 2 || c->rope.dims > c->head_dim)
        return fr_fail(FR_INPUT, "%s: %zu rotary values in heads of %zu, expected an even number", where, c->rope.dims,
                       c->head_dim);
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------- spec */

fr_status fr_uniform_spec(const fr_uniform_config *c, fr_trunk_spec *spec) {
    const fr_layer_spec layer = {
        .attention = {.heads = c->heads,
                      .kv_heads = c->kv_heads,
                      .head_dim = c->head_dim,
                      .owns_kv = true,
                      .qk_norm = c->qk_norm,
                      .qkv_bias = c->attention_biased,
                      .scale = (float)(1.0 / sqrt((double)c->head_dim))},
        .ffn = {.width = c->ffn, .activation = FR_SILU, .biased = c->ffn_biased},
    };
    *spec = (fr_trunk_spec){.vocab = c->vocab,
                            .hidden = c->hidden,
                            .layers = c->layers,
                            .context_limit = c->context_limit,
                            .ffn_width = c->ffn,
                            .embedding_scale = 1.0f,
                            .eps = c->eps,
                            .rope = {c->rope},
                            .ropes = 1};
    return fr_spec_repeat(spec, &layer);
}

/* ---------------------------------------------------------------------------------------------------------- writing */

void fr_uniform_put_sizes(const fr_trunk_spec *s, size_t mtp_layers, fr_gguf_writer *w) {
    const fr_attention_spec *attention = fr_spec_attention(s);
    fr_gguf_put_u32(w, ".block_count", (uint32_t)(s->layers + mtp_layers));
    fr_gguf_put_u32(w, ".context_length", (uint32_t)s->context_limit);
    fr_gguf_put_u32(w, ".embedding_length", (uint32_t)s->hidden);
    fr_gguf_put_u32(w, ".feed_forward_length", (uint32_t)s->ffn_width);
    fr_gguf_put_u32(w, ".attention.head_count", (uint32_t)attention->heads);
    fr_gguf_put_u32(w, ".attention.head_count_kv", (uint32_t)attention->kv_heads);
}

void fr_uniform_put_heads(const fr_trunk_spec *s, fr_gguf_writer *w) {
    const fr_attention_spec *attention = fr_spec_attention(s);
    fr_gguf_put_f32(w, ".rope.freq_base", (float)s->rope[0].theta);
    fr_gguf_put_f32(w, ".attention.layer_norm_rms_epsilon", s->eps);
    fr_gguf_put_u32(w, ".attention.key_length", (uint32_t)attention->head_dim);
    fr_gguf_put_u32(w, ".attention.value_length", (uint32_t)attention->head_dim);
    fr_gguf_put_u32(w, ".rope.dimension_count", (uint32_t)s->rope[0].dims);
}
