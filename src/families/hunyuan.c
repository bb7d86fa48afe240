/* Hunyuan, dense: config.json of HunYuanDenseV1ForCausalLM, GGUF "hunyuan-dense". Source: the published checkpoints and
 * transformers 5.17, model hunyuan_v1_dense; of GGUF github.com/ggml-org/llama.cpp, conversion/hunyuan.py, which has
 * the base that alpha makes. Norms of heads stand behind their rotation; alpha makes the base larger. */
#include <string.h>

#include "base/error.h"
#include "kernels/double_math.h"
#include "src/families/rope_config.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 290943, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-5F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .qk_norm = true, .norm_turned = true},
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

/* NTK-aware scaling by a factor that is told: the base is theta alpha^(d / (d - 2)). */
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
    FR_TRY(fr_json_text(parameters, json_object_get(parameters, "rope_type") ? "rope_type" : "type", source->where,
                        &type));
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
