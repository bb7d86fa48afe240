/* Qwen3 as data, its mixtures: configuration, what its layers are and what its tensors are called.
 *
 * In: config.json of Qwen3MoeForCausalLM, or the metadata of llama.cpp's GGUF of it (architecture "qwen3moe"). Out:
 * what trunk.h opens. Source of the architecture: the published checkpoints and transformers 5.17, model qwen3_moe.
 * Keys and names in GGUF: github.com/ggml-org/llama.cpp, conversion/qwen.py. It has no key for weights that are not
 * normalized, and none for layers without a mixture. */
#include "base/error.h"
#include "src/families/config_keys.h"
#include "src/families/llama.h"
#include "src/families/mixture.h"
#include "src/families/rope_config.h"
#include "src/model/model.h"

static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight"),
    FR_FUSED_QKV(QUERIES),
    FR_MATRIX(fr_layer, q, QUERIES, HIDDEN, "self_attn.q_proj.weight", "attn_q.weight"),
    FR_VECTOR(fr_layer, q_norm, HEAD, "self_attn.q_norm.weight", "attn_q_norm.weight"),
    FR_MATRIX(fr_layer, k, KEYS, HIDDEN, "self_attn.k_proj.weight", "attn_k.weight"),
    FR_VECTOR(fr_layer, k_norm, HEAD, "self_attn.k_norm.weight", "attn_k_norm.weight"),
    FR_MATRIX(fr_layer, v, KEYS, HIDDEN, "self_attn.v_proj.weight", "attn_v.weight"),
    FR_MATRIX(fr_layer, o, HIDDEN, QUERIES, "self_attn.o_proj.weight", "attn_output.weight"),
    FR_VECTOR(fr_layer, q_bias, QUERIES, "self_attn.q_proj.bias", NULL, .needs = FR_IF_QKV_BIAS),
    FR_VECTOR(fr_layer, k_bias, KEYS, "self_attn.k_proj.bias", NULL, .needs = FR_IF_QKV_BIAS),
    FR_VECTOR(fr_layer, v_bias, KEYS, "self_attn.v_proj.bias", NULL, .needs = FR_IF_QKV_BIAS),
    FR_VECTOR(fr_layer, o_bias, HIDDEN, "self_attn.o_proj.bias", NULL, .needs = FR_IF_O_BIAS),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "post_attention_layernorm.weight", "ffn_norm.weight"),
    {0},
};

static const char *const extras[] = {NULL};

static const fr_tensor_naming names = {
    .model = fr_model_names, .layer = {layer_names, fr_mixture_names}, .extras = extras};

/* ---------------------------------------------------------------------------------------------------- configuration */

static const char config_json[] = "config.json";

static const fr_mixture_config usual_mixture = {.experts = {.count = 128,
                                                            .top_k = 8,
                                                            .width = 768,
                                                            .activation = FR_SILU,
                                                            .scoring = FR_SCORING_SOFTMAX,
                                                            .routed_scaling = 1.0f}};

/* Every decoder_sparse_step-th layer has a mixture, but for those in mlp_only_layers. */
static fr_status read_layers(const json_t *root, fr_mixture_config *c) {
    const json_t *dense = json_object_get(root, "mlp_only_layers"), *number;
    int64_t step;
    size_t i;
    FR_TRY(fr_json_int(root, "decoder_sparse_step", 1, FR_MOST_LAYERS, 1, config_json, &step));
    for (i = 0; i < FR_MOST_LAYERS; i++) c->dense[i] = (i + 1) % (size_t)step != 0;
    if (dense && !json_is_null(dense) && !json_is_array(dense))
        return fr_fail(FR_INPUT, "%s: mlp_only_layers is no list", config_json);
    json_array_foreach(dense, i, number) {
        json_int_t layer = json_is_integer(number) ? json_integer_value(number) : -1;
        if (layer < 0 || layer >= FR_MOST_LAYERS)
            return fr_fail(FR_INPUT, "%s: mlp_only_layers has something that is no layer's number", config_json);
        c->dense[layer] = true;
    }
    return FR_OK;
}

typedef struct qwen3_config {
    fr_uniform_config uniform;
    fr_mixture_config mixture;
} qwen3_config;

static fr_status from_json(qwen3_config *c, const fr_weights *weights) {
    static const fr_uniform_config usual = {.vocab = 151936,
                                            .hidden = 2048,
                                            .layers = 24,
                                            .heads = 32,
                                            .kv_heads = 4,
                                            .ffn = 6144,
                                            .context_limit = 32768,
                                            .eps = 1e-6F};
    const json_t *root = weights->files->config;
    FR_TRY(fr_config_head(root, config_json, weights));
    FR_TRY(fr_json_bool(root, "attention_bias", false, config_json, &c->uniform.attention_biased));
    FR_TRY(fr_config_without(root, "use_sliding_window", config_json));
    FR_TRY(fr_uniform_from_json(&c->uniform, root, &usual, config_json));
    FR_TRY(fr_mixture_from_json(&c->mixture, root, &usual_mixture, config_json));
    FR_TRY(read_layers(root, &c->mixture));
    return fr_llama_rope_from_json(&c->uniform, root, 1.0, config_json);
}

static fr_status from_gguf(qwen3_config *c, fr_weights *weights) {
    fr_mixture_config usual = usual_mixture;
    usual.experts.norm_top_k = true;
    FR_TRY(fr_uniform_from_gguf(&c->uniform, weights->files));
    FR_TRY(fr_mixture_from_gguf(&c->mixture, weights->files->gguf, &usual));
    FR_TRY(fr_llama_rope_from_gguf(&c->uniform.rope, weights));
    c->uniform.rope.neox = true;
    return FR_OK;
}

static fr_status read_config(qwen3_config *c, fr_weights *weights) {
    const fr_gguf *gguf = weights->files->gguf;
    const char *where = gguf ? gguf->path : config_json;
    *c = (qwen3_config){0};
    FR_TRY(gguf ? from_gguf(c, weights) : from_json(c, weights));
    c->uniform.rope.sections[0] = c->uniform.rope.dims / 2;
    FR_TRY(fr_uniform_check(&c->uniform, where));
    return fr_mixture_check(&c->mixture, c->uniform.layers, where);
}

static fr_status read(fr_model *model, fr_trunk_spec *spec) {
    qwen3_config config;
    FR_TRY(read_config(&config, &model->weights));
    return fr_mixture_spec(&config.uniform, &config.mixture, spec);
}

static fr_status put_keys(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_experts_spec *experts = fr_spec_experts(s);
    if (!experts || !experts->norm_top_k)
        return fr_fail(FR_INPUT, "%s: GGUF has no key for a mixture whose weights are not normalized", where);
    fr_uniform_put_sizes(s, mtp_layers, w);
    fr_uniform_put_heads(s, w);
    FR_TRY(fr_mixture_put_keys(s, where, w));
    return fr_rope_put_scaling(&s->rope[0], where, w);
}

static const char *const architectures[] = {"Qwen3MoeForCausalLM", "qwen3moe", NULL};

const fr_family fr_family_qwen3 = {.architectures = architectures,
                                   .gguf = "qwen3moe",
                                   .tokenizer = "gpt2",
                                   .pre = "qwen2",
                                   .names = &names,
                                   .read = read,
                                   .put_keys = put_keys};
