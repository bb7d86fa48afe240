/* Qwen3, mixtures: config.json of Qwen3MoeForCausalLM, GGUF "qwen3moe". Source: the published checkpoints and
 * transformers 5.24, model qwen3_moe; for GGUF github.com/ggml-org/llama.cpp, conversion/qwen.py. GGUF has no key for
 * router weights that are not normalized, no key for layers without a mixture, and no names for biases. */
#include "base/error.h"
#include "src/engine/families/mixture.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 151936, .hidden = 2048, .layers = 24, .context_limit = 32768, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 4, .qk_norm = true},
              .ffn = {.width = 6144, .activation = FR_SILU},
              .experts = {.count = 128,
                          .top_k = 8,
                          .width = 768,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SOFTMAX,
                          .routed_scaling = 1.0F}}};

static fr_status read_mixture(const fr_source *source, fr_model_spec *s) {
    s->layer.experts.norm_top_k = source->gguf != NULL;
    return fr_mixture_read(source, s);
}

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_experts_spec *experts = fr_spec_experts(s);
    (void)mtp_layers;
    if (fr_spec_attention(s)->qkv_bias) return fr_fail(FR_INPUT, "%s: GGUF has no name for biases", where);
    if (experts && experts->norm_top_k) return fr_mixture_put_keys(s, where, w);
    return fr_fail(FR_INPUT, "%s: GGUF has no key for a mixture whose weights are not normalized", where);
}

static const fr_config_part mixture = {.read = read_mixture, .put = put_mixture};
static const fr_config_row mixtures[] = {FR_PART(mixture), {0}};
static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_PART(fr_window_part), /* all layers have the window */
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    {0}};

const fr_family fr_family_qwen3_moe = {
    .architectures = (const char *const[]){"Qwen3MoeForCausalLM", "qwen3moe", NULL},
    .gguf = "qwen3moe",
    .tokenizer = "gpt2",
    .pre = "qwen2",
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys, mixtures},
    .rope = fr_rope_whole_heads,
    .shape = fr_mixture_sparse_layers,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_mixture_names}}};
