/* StableLM 2 (1.6B, 3B, 12B): config.json of StableLmForCausalLM, GGUF "stablelm". Source: transformers 5.24, model
 * stablelm; for GGUF github.com/ggml-org/llama.cpp, conversion/stablelm.py, which writes no rotary base. Norms are
 * LayerNorms with biases. A quarter of a head is rotated. In the 12B each head has a LayerNorm of its own, without a
 * bias. In folders, the weights of each of these norms are a tensor; in GGUF, one tensor has a row for each of them. */
#include "base/error.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 50304,
              .hidden = 2560,
              .layers = 32,
              .context_limit = 4096,
              .eps = 1e-5F,
              .layer_norm = true,
              .norm_bias = true,
              .rope = {{.neox = true, .partial = 0.25}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 32}, .ffn = {.width = 6912, .activation = FR_SILU}}};

/* Finds out whether attention and feed-forward read the same norm, and whether heads have norms. A folder has a key for
 * each of these facts. In a GGUF file, the norm is the same if there is no second norm, and heads have norms if queries
 * have one. */
static fr_status read_norms(const fr_source *source, fr_model_spec *s) {
    bool shared = !fr_source_has(source, "blk.0.ffn_norm.weight");
    if (!source->gguf) FR_TRY(fr_json_bool(source->text, "use_parallel_residual", false, source->where, &shared));
    s->layer.norms = shared ? FR_NORM_SHARED : FR_NORMS_BEFORE;
    s->layer.attention.qk_norm = fr_source_has(source, "blk.0.attn_q_norm.weight");
    if (source->gguf) return FR_OK;
    return fr_json_bool(source->text, "qk_layernorm", false, source->where, &s->layer.attention.qk_norm);
}

static fr_status put_norms(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    if (s->rope[0].theta != 1e4) return fr_fail(FR_INPUT, "%s: GGUF has no key for its rope_theta", where);
    fr_gguf_put_bool(w, ".use_parallel_residual", s->layer[0].norms == FR_NORM_SHARED);
    return FR_OK;
}

static const fr_config_part norms = {.read = read_norms, .put = put_norms};
static const fr_config_row own[] = {
    FR_ONLY("hidden_act", "silu"), FR_PART(norms), FR_FLAG(layer.attention.qkv_bias, "use_qkv_bias", NULL), {0}};

#define HEAD_NORM(at, dim, p, g) FR_VECTOR(fr_layer, attention.at, dim, p, g, .needs = FR_IF_NORMED_HEADS)
static const fr_tensor_name head_norms[] = {
    HEAD_NORM(q_norm, QUERY_NORM, "self_attn.q_layernorm.norms.*.weight", "attn_q_norm.weight"),
    HEAD_NORM(k_norm, KEY_NORM, "self_attn.k_layernorm.norms.*.weight", "attn_k_norm.weight"),
    {0}};

const fr_family fr_family_stablelm = {
    .architectures = (const char *const[]){"StableLmForCausalLM", "StableLMEpochForCausalLM", "stablelm", NULL},
    .gguf = "stablelm",
    .tokenizer = "gpt2",
    .pre = "stablelm2",
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_layer_norm_head_keys},
    .rope = fr_rope_one_form,
    .names = &(const fr_tensor_naming){.layer = {head_norms, fr_attention_names, fr_pre_norm_names, fr_ffn_names}}};
