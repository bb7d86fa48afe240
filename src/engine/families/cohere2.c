/* Cohere 1 (Command R, Aya) and Cohere 2 (Command R7B, Command A): config.json of CohereForCausalLM and
 * Cohere2ForCausalLM, GGUF "command-r" and "cohere2". Source: transformers 5.24, models cohere and cohere2; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/command_r.py, src/models/command-r.cpp and cohere2.cpp, which does not
 * support biases. Attention and feed-forward of a layer read the same LayerNorm, which has no bias, and heads are
 * rotated in pairs of neighbours. In Cohere 2, three sliding layers are followed by a full one, whose heads aren't
 * rotated. Command R+, in which each head has a LayerNorm of its own, is not supported. */
#include "base/error.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {.trunk = {.vocab = 256000,
                                                 .hidden = 8192,
                                                 .layers = 40,
                                                 .context_limit = 8192,
                                                 .eps = 1e-5F,
                                                 .layer_norm = true,
                                                 .logit_scale = 0.0625F},
                                       .layer = {.norms = FR_NORM_SHARED,
                                                 .attention = {.heads = 64, .window = 4096},
                                                 .ffn = {.width = 22528, .activation = FR_SILU}},
                                       .kinds = {.every = 4}};

static fr_status put(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)w;
    return s->layer[0].attention.o_bias ? fr_fail(FR_INPUT, "%s: GGUF has no name for biases", where) : FR_OK;
}

static const fr_config_part biases = {.put = put};
static const fr_config_row own[] = {
    FR_ONLY("hidden_act", "silu"),
    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
    FR_PART(biases),
    FR_REAL(trunk.logit_scale, "logit_scale", ".logit_scale", 1e-6, 1e6, .required = true),
    FR_SIZE(layer.attention.window, "sliding_window", ".attention.sliding_window", 1, 1 << 24, .required = true),
    FR_KINDS("sliding_window_pattern"),
    {0}};

static const fr_tensor_naming names = {.layer = {fr_attention_names, fr_ffn_names}};

const fr_family fr_family_cohere2 = {.architectures = (const char *const[]){"Cohere2ForCausalLM", "cohere2", NULL},
                                     .gguf = "cohere2",
                                     .tokenizer = "gpt2",
                                     .pre = "command-r",
                                     .counts_ids = true,
                                     .defaults = &defaults,
                                     .rows = {own, fr_size_keys, fr_layer_norm_head_keys},
                                     .rope = fr_rope_whole_heads,
                                     .shape = fr_layers_still_if_full,
                                     .names = &names};

static const fr_model_spec cohere1 = {
    .trunk = {.vocab = 256000,
              .hidden = 8192,
              .layers = 40,
              .context_limit = 8192,
              .eps = 1e-5F,
              .layer_norm = true,
              .logit_scale = 0.0625F},
    .layer = {.norms = FR_NORM_SHARED, .attention = {.heads = 64}, .ffn = {.width = 22528, .activation = FR_SILU}}};

static const fr_config_row own1[] = {
    FR_ONLY("hidden_act", "silu"),
    FR_WITHOUT("use_qk_norm"),
    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
    FR_PART(biases),
    FR_REAL(trunk.logit_scale, "logit_scale", ".logit_scale", 1e-6, 1e6, .required = true),
    {0}};

const fr_family fr_family_cohere = {.architectures = (const char *const[]){"CohereForCausalLM", "command-r", NULL},
                                    .gguf = "command-r",
                                    .tokenizer = "gpt2",
                                    .pre = "command-r",
                                    .defaults = &cohere1,
                                    .rows = {own1, fr_size_keys, fr_layer_norm_head_keys},
                                    .rope = fr_rope_whole_heads,
                                    .names = &names};
