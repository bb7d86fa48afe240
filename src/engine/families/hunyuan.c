/* Hunyuan. Dense: config.json of HunYuanDenseV1ForCausalLM, GGUF "hunyuan-dense". Mixtures (A13B): config.json of
 * HunYuanMoEV1ForCausalLM, GGUF "hunyuan-moe". Source: the published checkpoints and transformers 5.17, models
 * hunyuan_v1_dense and hunyuan_v1_moe; for GGUF github.com/ggml-org/llama.cpp, conversion/hunyuan.py. Norms are applied
 * to heads after their rotation. `alpha` makes the rotary base larger; the converter writes the enlarged base. */
#include <string.h>

#include "base/error.h"
#include "kernels/double_math.h"
#include "src/engine/families/mixture.h"
#include "src/engine/families/rope_config.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 290943, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-5F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .qk_norm = true, .norm_after_rope = true},
              .ffn = {.width = 11008, .activation = FR_SILU}}};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    {0}};

static const fr_tensor_name head_norms[] = {
    FR_VECTOR(fr_layer, attention.q_norm, HEAD, "self_attn.query_layernorm.weight", "attn_q_norm.weight"),
    FR_VECTOR(fr_layer, attention.k_norm, HEAD, "self_attn.key_layernorm.weight", "attn_k_norm.weight"),
    {0},
};

/* Reads NTK-aware scaling with a given alpha. The base is theta * alpha^(d / (d - 2)), where d is the width of a
 * head. */
static fr_status rope_by_alpha(const fr_source *source, const json_t *parameters, double alpha, fr_model_spec *s) {
    double theta, d = (double)s->layer.attention.head_dim;
    fr_source told = *source;
    FR_TRY(fr_json_real(source->text, "rope_theta", 1.001, 1e12, 1e4, source->where, &theta));
    FR_TRY(fr_json_real(parameters, "rope_theta", 1.001, 1e12, theta, source->where, &theta));
    if (d <= 2) return fr_fail(FR_INPUT, "%s: heads of %g values can't turn by alpha", source->where, d);
    json_t *plain = json_pack("{s:f}", "rope_theta", theta * fr_exp_double(fr_log_double(alpha) * d / (d - 2)));
    if (!plain) return fr_fail_memory("rotary positions", 0);
    told.text = plain;
    fr_status status = fr_rope_whole_heads(&told, s);
    json_decref(plain);
    return status;
}

static fr_status rope(const fr_source *source, fr_model_spec *s) {
    const json_t *parameters = NULL;
    const char *key, *type = NULL;
    double alpha = 0;
    if (source->gguf) return fr_rope_whole_heads(source, s);
    FR_TRY(fr_rope_parameters(source->text, source->where, &parameters, &key));
    if (!parameters) return fr_rope_whole_heads(source, s);
    FR_TRY(fr_json_text(parameters, fr_rope_type_key(parameters), source->where, &type));
    FR_TRY(fr_json_real(parameters, "alpha", 0, 1e9, 0, source->where, &alpha));
    if (!type || strcmp(type, "dynamic") != 0 || alpha == 0.0) return fr_rope_whole_heads(source, s);
    return rope_by_alpha(source, parameters, alpha, s);
}

const fr_family fr_family_hunyuan = {
    .architectures = (const char *const[]){"HunYuanDenseV1ForCausalLM", "hunyuan-dense", NULL},
    .gguf = "hunyuan-dense",
    .tokenizer = "gpt2",
    .pre = "hunyuan-dense",
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = rope,
    .names = &(const fr_tensor_naming){.layer = {head_norms, fr_attention_names, fr_pre_norm_names, fr_ffn_names}}};

/* --------------------------------------------------------------------------------------------------------- mixtures */

static const fr_mixture_words words = {.count = "num_experts", .top_k = "num_experts_per_tok"};

static const fr_model_spec sparse_defaults = {
    .trunk =
        {.vocab = 290943, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-5F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .qk_norm = true, .norm_after_rope = true},
              .ffn = {.width = 11008, .activation = FR_SILU},
              .experts = {.count = 1,
                          .top_k = 1,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SOFTMAX,
                          .norm_top_k = true,
                          .routed_scaling = 1.0F}},
    .mixture = {.words = &words, .shared_by_count = true, .normalizes = true, .as_wide = true}};

/* Reads the number of experts that a row uses. The file has one number, or a list that has the same number for each
 * layer. */
static fr_status read_top_k(const fr_source *source, fr_experts_spec *e) {
    const json_t *list = json_object_get(source->text, "moe_topk"), *number, *first = json_array_get(list, 0);
    size_t i;
    if (!json_is_array(list))
        return fr_json_size(source->text, "moe_topk", 1, 4096, (int64_t)e->top_k, source->where, &e->top_k);
    if (!json_is_integer(first) || json_integer_value(first) < 1 || json_integer_value(first) > 4096)
        return fr_fail(FR_INPUT, "%s: moe_topk has no number of experts", source->where);
    json_array_foreach (list, i, number)
        if (!json_equal(number, first))
            return fr_fail(FR_UNBUILT, "%s: moe_topk that differs by layer is not built", source->where);
    e->top_k = (size_t)json_integer_value(first);
    return FR_OK;
}

/* Reads the mixture. In transformers the shared expert is always as wide as each of the other experts, even if
 * config.json has other keys for its width. */
static fr_status read_mixture(const fr_source *source, fr_model_spec *s) {
    FR_TRY(fr_mixture_read(source, s));
    s->mixture.shared = s->layer.ffn.width;
    return source->gguf ? FR_OK : read_top_k(source, &s->layer.experts);
}

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    uint32_t width = (uint32_t)fr_spec_experts(s)->width;
    (void)mtp_layers;
    (void)where;
    fr_mixture_put_counts(s, w);
    fr_gguf_put_u32(w, ".expert_feed_forward_length", width);
    fr_gguf_put_u32(w, ".expert_shared_count", 1);
    fr_gguf_put_u32(w, ".expert_shared_feed_forward_length", width);
    return FR_OK;
}

static const fr_config_part mixture = {.read = read_mixture, .put = put_mixture};
static const fr_config_row mixtures[] = {FR_WITHOUT("use_cla"), FR_PART(mixture), {0}};

static const fr_tensor_name sparse_names[] = {
    FR_MATRIX(fr_layer, experts.router, EXPERTS, HIDDEN, "mlp.gate.wg.weight", "ffn_gate_inp.weight"),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp.shared_mlp.gate_proj.weight", "ffn_gate_shexp.weight"),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, "mlp.shared_mlp.up_proj.weight", "ffn_up_shexp.weight"),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.shared_mlp.down_proj.weight", "ffn_down_shexp.weight"),
    {0},
};

const fr_family fr_family_hunyuan_moe = {
    .architectures = (const char *const[]){"HunYuanMoEV1ForCausalLM", "hunyuan-moe", NULL},
    .gguf = "hunyuan-moe",
    .tokenizer = "gpt2",
    .pre = "hunyuan",
    .finds_biases = true,
    .defaults = &sparse_defaults,
    .rows = {own, fr_size_keys, fr_head_keys, mixtures},
    .rope = rope,
    .shape = fr_mixture_behind_leading,
    .names = &(const fr_tensor_naming){
        .layer = {head_norms, fr_attention_names, fr_pre_norm_names, sparse_names, fr_mixture_names}}};
