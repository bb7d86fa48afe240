/* Reads and writes multi-head latent attention in configurations: see latent_config.h. */
#include "src/engine/families/latent_config.h"

#include <math.h>

#include "base/error.h"
#include "src/engine/families/rope_config.h"

enum { WIDTH_MAX = 4096, LATENT_MAX = 1 << 16 };

/* Rows for the matrices that make keys and values from the latent. Folders have both matrices in one tensor, except
 * those saved by mlx-lm, which have two. With KV_B, GGUF has one tensor too. With DIVIDED, GGUF has two tensors, or one
 * in older files. */
#define KV_B(below)                                                                                         \
    FR_NAMED(fr_layer, mla.heads, FR_SLOT_KV_B, KV_B, LATENT, below "kv_b_proj.weight", "attn_kv_b.weight", \
             .also = FR_ALSO_MLA)
#define DIVIDED(below)                                                                                                 \
    FR_NAMED(fr_layer, mla.heads.k_b, FR_SLOT_HEADS, LATENT, NOPE, below "embed_q.weight", "attn_k_b.weight",          \
             .also = FR_ALSO_MLA),                                                                                     \
        KV_B(below),                                                                                                   \
        FR_NAMED(fr_layer, mla.heads.v_b, FR_SLOT_HEADS, VALUE, LATENT, below "unembed_out.weight", "attn_v_b.weight", \
                 .also = FR_ALSO_MLA)

/* The norms before the two parts of a layer are in layers with any mixer, so their rows have no condition. */
#define LATENT(below, heads, output)                                                                               \
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight"),                         \
        FR_MATRIX(fr_layer, mla.q_a, Q_LORA, HIDDEN, below "q_a_proj.weight", "attn_q_a.weight",                   \
                  .needs = FR_IF_Q_LORA, .also = FR_ALSO_MLA),                                                     \
        FR_VECTOR(fr_layer, mla.q_a_norm, Q_LORA, below "q_a_layernorm.weight", "attn_q_a_norm.weight",            \
                  .needs = FR_IF_Q_LORA, .also = FR_ALSO_MLA),                                                     \
        FR_MATRIX(fr_layer, attention.q, HEAD_QUERIES, Q_INPUT, below "q_b_proj.weight", "attn_q_b.weight",        \
                  .needs = FR_IF_Q_LORA, .also = FR_ALSO_MLA),                                                     \
        FR_MATRIX(fr_layer, attention.q, HEAD_QUERIES, Q_INPUT, below "q_proj.weight", "attn_q.weight",            \
                  .also = FR_ALSO_MLA),                                                                            \
        FR_MATRIX(fr_layer, mla.kv_a, HEAD, HIDDEN, below "kv_a_proj_with_mqa.weight", "attn_kv_a_mqa.weight",     \
                  .also = FR_ALSO_MLA),                                                                            \
        FR_VECTOR(fr_layer, mla.kv_a_norm, LATENT, below "kv_a_layernorm.weight", "attn_kv_a_norm.weight",         \
                  .also = FR_ALSO_MLA),                                                                            \
        heads,                                                                                                     \
        FR_MATRIX(fr_layer, attention.o, HIDDEN, VALUES, below output, "attn_output.weight", .also = FR_ALSO_MLA), \
        FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "post_attention_layernorm.weight", "ffn_norm.weight")

const fr_tensor_name fr_latent_names[] = {LATENT("self_attn.", DIVIDED("self_attn."), "o_proj.weight"), {0}};
const fr_tensor_name fr_whole_latent_names[] = {LATENT("self_attn.", KV_B("self_attn."), "o_proj.weight"), {0}};

const fr_tensor_name fr_gated_latent_names[] = {
    LATENT("attention.", DIVIDED("attention."), "dense.weight"),
    FR_MATRIX(fr_layer, attention.o, HIDDEN, VALUES, "attention.o_proj.weight", "attn_output.weight",
              .also = FR_ALSO_MLA),
    FR_MATRIX(fr_layer, mla.gate, HEADS, HIDDEN, "attention.g_proj.weight", "attn_gate.weight",
              .also = FR_ALSO_MLA | FR_ALSO_GATED),
    {0},
};

/* ------------------------------------------------------------------------------------------------------------ sizes */

/* Reads q_lora_rank. Null means that queries are projected directly from the row. */
static fr_status read_q_lora(const fr_source *source, size_t *q_lora) {
    const json_t *value = json_object_get(source->text, "q_lora_rank");
    int64_t fallback = value && json_is_null(value) ? 0 : (int64_t)*q_lora;
    return fr_json_size(source->text, "q_lora_rank", 0, LATENT_MAX, fallback, source->where, q_lora);
}

static fr_status from_json(const fr_source *source, fr_model_spec *s) {
    fr_mla_spec *mla = &s->layer.mla;
    const struct {
        const char *key;
        int64_t low, high;
        size_t *size;
    } keys[] = {{"kv_lora_rank", 1, LATENT_MAX, &s->layer.attention.latent},
                {"qk_nope_head_dim", 1, WIDTH_MAX, &mla->nope},
                {"v_head_dim", 1, WIDTH_MAX, &mla->value_dim},
                {"qk_rope_head_dim", 2, WIDTH_MAX, &s->trunk.rope[0].dims}};
    FR_TRY(read_q_lora(source, &mla->q_lora));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        FR_TRY(fr_json_size(source->text, keys[i].key, keys[i].low, keys[i].high, (int64_t)*keys[i].size, source->where,
                            keys[i].size));
    return FR_OK;
}

/* Reads the sizes. If a file has kv_b as one tensor, key_length and value_length are the lengths of heads. In other
 * files, these keys are the lengths in the cache, and the lengths of heads are key_length_mla and value_length_mla. If
 * value_length is missing, as in MiniCPM3's files, a value has hidden / heads numbers. */
static fr_status from_gguf(const fr_gguf *gguf, fr_model_spec *s) {
    fr_mla_spec *mla = &s->layer.mla;
    size_t query, *dims = &s->trunk.rope[0].dims;
    int64_t keys, values, share = (int64_t)(s->trunk.hidden / s->layer.attention.heads);
    FR_TRY(fr_gguf_size(gguf, ".rope.dimension_count", 2, WIDTH_MAX, FR_GGUF_REQUIRED, dims));
    FR_TRY(fr_gguf_size(gguf, ".attention.q_lora_rank", 0, LATENT_MAX, 0, &mla->q_lora));
    FR_TRY(fr_gguf_size(gguf, ".attention.kv_lora_rank", 1, LATENT_MAX, FR_GGUF_REQUIRED, &s->layer.attention.latent));
    FR_TRY(fr_gguf_int(gguf, ".attention.key_length", 1, 2 * LATENT_MAX, FR_GGUF_REQUIRED, &keys));
    FR_TRY(fr_gguf_int(gguf, ".attention.value_length", 1, 2 * LATENT_MAX, share ? share : FR_GGUF_REQUIRED, &values));
    FR_TRY(fr_gguf_size(gguf, ".attention.key_length_mla", (int64_t)*dims + 1, 2 * WIDTH_MAX, keys, &query));
    FR_TRY(fr_gguf_size(gguf, ".attention.value_length_mla", 1, WIDTH_MAX, values, &mla->value_dim));
    if (query <= *dims)
        return fr_fail(FR_INPUT, "%s: heads of %zu values have no room for %zu rotary ones and others", gguf->path,
                       query, *dims);
    mla->nope = query - *dims;
    return FR_OK;
}

/* Reads the sizes of heads. The cache has a single head, which consists of a latent and a rotary part. */
static fr_status read_latents(const fr_source *source, fr_model_spec *s) {
    FR_TRY(source->gguf ? from_gguf(source->gguf, s) : from_json(source, s));
    s->layer.attention.kv_heads = 1;
    s->layer.attention.head_dim = s->layer.attention.latent + s->trunk.rope[0].dims;
    return FR_OK;
}

static fr_status put_lengths(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_layer_spec *layer = s->layer;
    size_t rotary = s->rope[0].dims;
    (void)mtp_layers;
    (void)where;
    while (layer->mixer != FR_MIXER_MLA && layer < s->layer + s->layers - 1) layer++;
    if (layer->mixer != FR_MIXER_MLA) layer = &s->mtp;
    fr_gguf_put_u32(w, ".attention.key_length", (uint32_t)layer->attention.head_dim);
    fr_gguf_put_u32(w, ".attention.value_length", (uint32_t)layer->attention.latent);
    if (layer->mla.q_lora) fr_gguf_put_u32(w, ".attention.q_lora_rank", (uint32_t)layer->mla.q_lora);
    fr_gguf_put_u32(w, ".attention.kv_lora_rank", (uint32_t)layer->attention.latent);
    fr_gguf_put_u32(w, ".attention.key_length_mla", (uint32_t)(layer->mla.nope + rotary));
    fr_gguf_put_u32(w, ".attention.value_length_mla", (uint32_t)layer->mla.value_dim);
    fr_gguf_put_u32(w, ".rope.dimension_count", (uint32_t)rotary);
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------- rotary positions */

static fr_status rope_from_json(const fr_source *source, fr_model_spec *s) {
    fr_rope_spec *rope = &s->trunk.rope[0];
    size_t dims = rope->dims;
    double partial = 1;
    bool pairs;
    FR_TRY(fr_json_bool(source->text, "rope_interleave", true, source->where, &pairs));
    /* transformers takes null as false, except in models that always rotate pairs. These are Ling 3, whose heads have
     * gates, and models with indexers. Their families refuse false. */
    if (!s->layer.mla.gated && !s->trunk.selected)
        pairs &= !json_is_null(json_object_get(source->text, "rope_interleave"));
    FR_TRY(fr_rope_from_json(rope, source->text, s->trunk.context_limit, source->where, &partial));
    /* In Ling 3, partial_rotary_factor has no effect if positions are not scaled. */
    if (partial != 1 && !(s->layer.mla.gated && fr_rope_is_plain(rope)))
        return fr_fail(FR_UNBUILT, "%s: partial_rotary_factor %g is not built (1 is)", source->where, partial);
    rope->dims = dims;
    rope->neox = !pairs;
    return FR_OK;
}

/* Reads the scaling. GGUF's yarn_log_multiplier is a tenth of mscale_all_dim. A file has this key only if mscale and
 * mscale_all_dim are equal. */
static fr_status rope_from_gguf(const fr_gguf *gguf, fr_rope_spec *rope) {
    double weight;
    FR_TRY(fr_rope_scaling_from_gguf(rope, gguf));
    FR_TRY(fr_gguf_real(gguf, ".rope.scaling.yarn_log_multiplier", 0, 100, 0, &weight));
    if (rope->kind == FR_ROPE_LINEAR)
        return fr_fail(FR_UNBUILT, "%s: key %s.rope.scaling.type: \"linear\" is not built for DeepSeek", gguf->path,
                       gguf->architecture);
    if (rope->kind != FR_ROPE_YARN || weight == 0) return FR_OK;
    rope->attention_factor = 1.0F;
    rope->mscale_all_dim = 10 * weight;
    return FR_OK;
}

fr_status fr_rope_of_latents(const fr_source *source, fr_model_spec *s) {
    fr_rope_spec *rope = &s->trunk.rope[0];
    FR_TRY(source->gguf ? rope_from_gguf(source->gguf, rope) : rope_from_json(source, s));
    rope->sections[0] = rope->dims / 2;
    double query = (double)(s->layer.mla.nope + rope->dims);
    double sharper = fr_rope_yarn_magnitude(rope->factor, rope->mscale_all_dim);
    s->layer.attention.scale = (float)(sharper * sharper / sqrt(query));
    return FR_OK;
}

/* Writes the scaling. GGUF has a key for mscale_all_dim but none for mscale, so the two must be equal. */
static fr_status put_scaling(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    fr_rope_spec rope = s->rope[0];
    (void)mtp_layers;
    if (rope.neox) return fr_fail(FR_INPUT, "%s: GGUF has no key for rope_interleave false", where);
    if (rope.kind == FR_ROPE_DEFAULT) return FR_OK;
    if (rope.kind != FR_ROPE_YARN)
        return fr_fail(FR_INPUT, "%s: GGUF of DeepSeek has no key for rotary positions scaled other than by YaRN",
                       where);
    if (rope.attention_factor != 1.0F || rope.mscale_all_dim == 0)
        return fr_fail(FR_INPUT, "%s: GGUF has no key for YaRN whose mscale is not mscale_all_dim", where);
    rope.attention_factor = (float)fr_rope_yarn_magnitude(rope.factor, 1);
    FR_TRY(fr_rope_put_scaling(&rope, where, w));
    fr_gguf_put_f32(w, ".rope.scaling.yarn_log_multiplier", (float)(0.1 * rope.mscale_all_dim));
    return FR_OK;
}

/* Writes the lengths of heads, for files that have kv_b as one tensor. Their rotary positions must be LongRoPE or not
 * scaled. */
static fr_status put_whole(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_layer_spec *layer = s->layer;
    const fr_rope_spec *rope = &s->rope[0];
    (void)mtp_layers;
    if (!layer->mla.q_lora) return fr_fail(FR_INPUT, "%s: GGUF has no tensors for queries without a latent", where);
    if (layer->ffn.biased) return fr_fail(FR_INPUT, "%s: GGUF has no tensors for biases of the feed-forward", where);
    fr_gguf_put_u32(w, ".attention.head_count_kv", (uint32_t)layer->attention.heads);
    fr_gguf_put_u32(w, ".attention.key_length", (uint32_t)(layer->mla.nope + rope->dims));
    fr_gguf_put_u32(w, ".attention.value_length", (uint32_t)layer->mla.value_dim);
    fr_gguf_put_u32(w, ".attention.q_lora_rank", (uint32_t)layer->mla.q_lora);
    fr_gguf_put_u32(w, ".attention.kv_lora_rank", (uint32_t)layer->attention.latent);
    fr_gguf_put_u32(w, ".rope.dimension_count", (uint32_t)rope->dims);
    if (rope->kind == FR_ROPE_DEFAULT || rope->kind == FR_ROPE_LONGROPE) return fr_rope_put_scaling(rope, where, w);
    return fr_fail(FR_INPUT, "%s: GGUF of MiniCPM3 has no keys for rotary positions scaled other than by LongRoPE",
                   where);
}

static const fr_config_part whole_lengths = {.read = read_latents, .put = put_whole};
static const fr_config_part scaling = {.put = put_scaling};
static const fr_config_part lengths = {.read = read_latents, .put = put_lengths};

const fr_config_row fr_latent_keys[] = {
    FR_PART(scaling),
    FR_REAL(trunk.rope[0].theta, NULL, ".rope.freq_base", 1.001, 1e12),
    FR_REAL(trunk.eps, "rms_norm_eps", ".attention.layer_norm_rms_epsilon", 0, 1, .required = true),
    FR_PART(lengths),
    {0},
};

const fr_config_row fr_whole_latent_keys[] = {
    FR_REAL(trunk.rope[0].theta, NULL, ".rope.freq_base", 1.001, 1e12),
    FR_REAL(trunk.eps, "rms_norm_eps", ".attention.layer_norm_rms_epsilon", 0, 1, .required = true),
    FR_PART(whole_lengths),
    {0},
};
