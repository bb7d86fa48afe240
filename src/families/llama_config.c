/* Llama's configuration: the hub's JSON, or GGUF metadata, to checked numbers; a spec to GGUF metadata.
 *
 * In: config.json or a GGUF file as llama.cpp's converter writes it. Out: fr_llama_config; the converter's keys. Keys
 * left out of the JSON take the defaults of transformers' Llama configuration. What would change the answer and is not
 * built (another activation, other scalings of rotary positions, experts) is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "src/families/llama.h"

/* ------------------------------------------------------------------------------------------------------------- both */

/* Whether the numbers go together. */
static fr_status check(const fr_llama_config *c, const char *where) {
    if (c->heads % c->kv_heads)
        return fr_fail(FR_INPUT, "%s: %zu attention heads are no multiple of %zu key/value heads", where, c->heads,
                       c->kv_heads);
    if (c->rope.dims < 2 || c->rope.dims % 2 || c->rope.dims > c->head_dim)
        return fr_fail(FR_INPUT, "%s: %zu rotary values in heads of %zu, expected an even number", where, c->rope.dims,
                       c->head_dim);
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

static fr_status read_llama3(const json_t *scaling, fr_rope_spec *rope, const char *where) {
    FR_TRY(fr_json_real(scaling, "low_freq_factor", 1e-3, 1e6, NAN, where, &rope->low_factor));
    FR_TRY(fr_json_real(scaling, "high_freq_factor", 1e-3, 1e6, NAN, where, &rope->high_factor));
    FR_TRY(fr_json_real(scaling, "original_max_position_embeddings", 1, 1 << 24, NAN, where, &rope->trained));
    if (rope->low_factor < rope->high_factor) return FR_OK;
    return fr_fail(FR_INPUT, "%s: low_freq_factor %g is not below high_freq_factor %g", where, rope->low_factor,
                   rope->high_factor);
}

/* scaling: rope_scaling as older files have it, or rope_parameters. */
static fr_status read_scaling(const json_t *scaling, fr_rope_spec *rope, const char *where) {
    const char *type;
    FR_TRY(fr_json_text(scaling, json_object_get(scaling, "rope_type") ? "rope_type" : "type", where, &type));
    if (!type || strcmp(type, "default") == 0) return FR_OK;
    bool linear = strcmp(type, "linear") == 0;
    if (!linear && strcmp(type, "llama3") != 0)
        return fr_fail(FR_UNBUILT, "%s: rope_type %s is not built (default, linear and llama3 are)", where, type);
    rope->kind = linear ? FR_ROPE_LINEAR : FR_ROPE_LLAMA3;
    FR_TRY(fr_json_real(scaling, "factor", 1e-6, 1e6, NAN, where, &rope->factor));
    return linear ? FR_OK : read_llama3(scaling, rope, where);
}

static fr_status read_rope(const json_t *root, fr_llama_config *c, const char *where) {
    json_t *scaling, *parameters;
    double theta, partial;
    FR_TRY(fr_json_object(root, "rope_scaling", where, &scaling));
    FR_TRY(fr_json_object(root, "rope_parameters", where, &parameters));
    if (!parameters) parameters = scaling;
    FR_TRY(fr_json_real(root, "rope_theta", 1.0, 1e12, 10000.0, where, &theta));
    FR_TRY(fr_json_real(root, "partial_rotary_factor", 0.0, 1.0, 1.0, where, &partial));
    if (parameters) FR_TRY(fr_json_real(parameters, "rope_theta", 1.0, 1e12, theta, where, &theta));
    c->rope = (fr_rope_spec){.kind = FR_ROPE_DEFAULT,
                             .dims = (size_t)((double)c->head_dim * partial),
                             .halves = true,
                             .theta = theta,
                             .partial = 1.0,
                             .factor = 1.0};
    return parameters ? read_scaling(parameters, &c->rope, where) : FR_OK;
}

static fr_status from_json(fr_llama_config *c, const json_t *root) {
    static const char where[] = "config.json";
    const char *activation;
    double eps;
    FR_TRY(fr_json_text(root, "hidden_act", where, &activation));
    if (activation && strcmp(activation, "silu") != 0)
        return fr_fail(FR_UNBUILT, "%s: hidden_act %s is not built (silu is)", where, activation);
    FR_TRY(fr_json_size(root, "vocab_size", 1, 1 << 24, 32000, where, &c->vocab));
    FR_TRY(fr_json_size(root, "hidden_size", 1, 1 << 17, 4096, where, &c->hidden));
    FR_TRY(fr_json_size(root, "intermediate_size", 1, 1 << 22, 11008, where, &c->ffn));
    FR_TRY(fr_json_size(root, "num_hidden_layers", 1, 1024, 32, where, &c->layers));
    FR_TRY(fr_json_size(root, "num_attention_heads", 1, 4096, 32, where, &c->heads));
    FR_TRY(fr_json_size(root, "num_key_value_heads", 1, 4096, (int64_t)c->heads, where, &c->kv_heads));
    FR_TRY(fr_json_size(root, "head_dim", 2, 4096, (int64_t)(c->hidden / c->heads), where, &c->head_dim));
    FR_TRY(fr_json_size(root, "max_position_embeddings", 1, 1 << 24, 2048, where, &c->context_limit));
    FR_TRY(fr_json_real(root, "rms_norm_eps", 0.0, 1.0, 1e-6, where, &eps));
    FR_TRY(fr_json_bool(root, "attention_bias", false, where, &c->attention_biased));
    FR_TRY(fr_json_bool(root, "mlp_bias", false, where, &c->ffn_biased));
    c->eps = (float)eps;
    return read_rope(root, c, where);
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* rope_freqs.weight divides the frequencies: the converter writes llama3's scaling so. */
static fr_status read_gguf_rope(fr_llama_config *c, fr_weights *weights) {
    const fr_gguf *gguf = weights->files->gguf;
    fr_text scaling;
    size_t dims;
    double theta;
    FR_TRY(fr_gguf_size(gguf, ".rope.dimension_count", 2, (int64_t)c->head_dim, (int64_t)c->head_dim, &dims));
    FR_TRY(fr_gguf_real(gguf, ".rope.freq_base", 1.0, 1e12, 10000.0, &theta));
    FR_TRY(fr_gguf_text(gguf, "llama.rope.scaling.type", &scaling));
    c->rope = (fr_rope_spec){.kind = FR_ROPE_DEFAULT, .dims = dims, .theta = theta, .partial = 1.0, .factor = 1.0};
    if (fr_weights_has(weights, "", "rope_freqs.weight"))
        FR_TRY(fr_bind_vector(weights, "", "rope_freqs.weight", dims / 2, &c->rope.divisors));
    if (!scaling.bytes || (scaling.length == 4 && memcmp(scaling.bytes, "none", 4) == 0)) return FR_OK;
    if (scaling.length != 6 || memcmp(scaling.bytes, "linear", 6) != 0)
        return fr_fail(FR_UNBUILT, "%s: rotary positions scaled by \"%.*s\" are not built (none and linear are)",
                       gguf->path, (int)(scaling.length < 40 ? scaling.length : 40), scaling.bytes);
    c->rope.kind = FR_ROPE_LINEAR;
    return fr_gguf_real(gguf, ".rope.scaling.factor", 1e-6, 1e6, 1.0, &c->rope.factor);
}

static fr_status from_gguf(fr_llama_config *c, fr_weights *weights) {
    const fr_gguf *gguf = weights->files->gguf;
    const fr_tensor *table;
    size_t values;
    int64_t experts;
    double eps;
    FR_TRY(fr_gguf_int(gguf, ".expert_count", 0, 4096, 0, &experts));
    if (experts) return fr_fail(FR_UNBUILT, "%s: a Llama of experts is not built", gguf->path);
    FR_TRY(fr_checkpoint_tensor(weights->files, "token_embd.weight", &table));
    c->vocab = table->dims == 2 && table->shape[0] <= 1 << 24 ? table->shape[0] : 0;
    if (c->vocab == 0) return fr_fail(FR_INPUT, "%s: tensor token_embd.weight is no table of ids", gguf->path);
    FR_TRY(fr_gguf_size(gguf, ".embedding_length", 1, 1 << 17, FR_GGUF_REQUIRED, &c->hidden));
    FR_TRY(fr_gguf_size(gguf, ".feed_forward_length", 1, 1 << 22, FR_GGUF_REQUIRED, &c->ffn));
    FR_TRY(fr_gguf_size(gguf, ".context_length", 1, 1 << 24, FR_GGUF_REQUIRED, &c->context_limit));
    FR_TRY(fr_gguf_size(gguf, ".block_count", 1, 1024, FR_GGUF_REQUIRED, &c->layers));
    FR_TRY(fr_gguf_size(gguf, ".attention.head_count", 1, 4096, FR_GGUF_REQUIRED, &c->heads));
    FR_TRY(fr_gguf_size(gguf, ".attention.head_count_kv", 1, 4096, (int64_t)c->heads, &c->kv_heads));
    FR_TRY(fr_gguf_size(gguf, ".attention.key_length", 2, 4096, (int64_t)(c->hidden / c->heads), &c->head_dim));
    FR_TRY(fr_gguf_size(gguf, ".attention.value_length", 2, 4096, (int64_t)c->head_dim, &values));
    if (values != c->head_dim)
        return fr_fail(FR_UNBUILT, "%s: keys of %zu and values of %zu are not built: both must be the same",
                       gguf->path, c->head_dim, values);
    FR_TRY(fr_gguf_real(gguf, ".attention.layer_norm_rms_epsilon", 0.0, 1.0, NAN, &eps));
    c->eps = (float)eps;
    c->attention_biased = fr_weights_has(weights, "", "blk.0.attn_q.bias");
    c->ffn_biased = fr_weights_has(weights, "", "blk.0.ffn_gate.bias");
    return read_gguf_rope(c, weights);
}

fr_status fr_llama_config_read(fr_llama_config *config, fr_weights *weights) {
    const fr_checkpoint *files = weights->files;
    *config = (fr_llama_config){0};
    FR_TRY(files->gguf ? from_gguf(config, weights) : from_json(config, files->config));
    config->rope.sections[0] = config->rope.dims / 2;
    return check(config, files->gguf ? files->gguf->path : "config.json");
}

/* ---------------------------------------------------------------------------------------------------------- writing */

fr_status fr_llama_put_keys(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_attention_spec *attention = &s->layer[0].attention;
    const fr_rope_spec *rope = &s->rope[0];
    (void)where;      /* there is a key for everything */
    (void)mtp_layers; /* none */
    fr_gguf_put_u32(w, ".block_count", (uint32_t)s->layers);
    fr_gguf_put_u32(w, ".context_length", (uint32_t)s->context_limit);
    fr_gguf_put_u32(w, ".embedding_length", (uint32_t)s->hidden);
    fr_gguf_put_u32(w, ".feed_forward_length", (uint32_t)s->layer[0].ffn.width);
    fr_gguf_put_u32(w, ".attention.head_count", (uint32_t)attention->heads);
    fr_gguf_put_u32(w, ".attention.head_count_kv", (uint32_t)attention->kv_heads);
    fr_gguf_put_f32(w, ".rope.freq_base", (float)rope->theta);
    fr_gguf_put_f32(w, ".attention.layer_norm_rms_epsilon", s->eps);
    fr_gguf_put_u32(w, ".attention.key_length", (uint32_t)attention->head_dim);
    fr_gguf_put_u32(w, ".attention.value_length", (uint32_t)attention->head_dim);
    fr_gguf_put_u32(w, ".rope.dimension_count", (uint32_t)rope->dims);
    if (rope->kind != FR_ROPE_LINEAR) return FR_OK;
    fr_gguf_put_string(w, ".rope.scaling.type", "linear");
    fr_gguf_put_f32(w, ".rope.scaling.factor", (float)rope->factor);
    return FR_OK;
}

/* By how much llama3's scaling makes each frequency smaller. */
size_t fr_llama_put_rope_factors(const fr_trunk_spec *s, float *factors) {
    const fr_rope_spec *rope = &s->rope[0];
    size_t angles = rope->dims / 2;
    if (rope->kind != FR_ROPE_LLAMA3) return 0;
    fr_rope_frequencies(rope->kind, rope->theta, rope->dims, rope->partial, rope->factor, factors);
    for (size_t i = 0; i < angles; i++) {
        float scaled = factors[i];
        fr_rope_scale(&scaled, 1, rope->factor, rope->low_factor, rope->high_factor, rope->trained);
        factors[i] /= scaled;
    }
    return angles;
}
