/* Dense decoders whose feed-forward has no gate:
 *     Arcee (AFM 4.5B)        ArceeForCausalLM, GGUF "arcee"
 *     Jais 2                  Jais2ForCausalLM, GGUF "jais2"
 *     Nemotron and Minitron   NemotronForCausalLM, GGUF "nemotron"
 *     StarCoder2              Starcoder2ForCausalLM, GGUF "starcoder2"
 * Source: transformers 5.24, models arcee, jais2, nemotron and starcoder2; for GGUF github.com/ggml-org/llama.cpp,
 * conversion/llama.py, jais.py, nemotron.py and starcoder.py. Apart from the feed-forward, Arcee is like Llama. All
 * others have LayerNorms with biases. Nemotron's folders store the norms' weights minus 1. */
#include "src/engine/families/family.h"

/* Names of the tensors of a feed-forward without a gate. The matrix `up` takes the place of the gate's matrix. */
#define UNGATED(first, second)                                                                                   \
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp." first ".weight", "ffn_up.weight"),                   \
        FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp." second ".weight", "ffn_down.weight"),                  \
        FR_VECTOR(fr_layer, ffn.gate_bias, FFN, "mlp." first ".bias", "ffn_up.bias", .needs = FR_IF_FFN_BIASED), \
        FR_VECTOR(fr_layer, ffn.down_bias, HIDDEN, "mlp." second ".bias", "ffn_down.bias", .needs = FR_IF_FFN_BIASED)

static const fr_tensor_name up_down_names[] = {UNGATED("up_proj", "down_proj"), {0}};
static const fr_tensor_name c_names[] = {UNGATED("c_fc", "c_proj"), {0}};

/* ----------------------------------------------------------------------------------------------------------- Arcee */

static const fr_model_spec arcee = {
    .trunk =
        {.vocab = 32000, .hidden = 2560, .layers = 32, .context_limit = 4096, .eps = 1e-5F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32}, .ffn = {.width = 18432, .activation = FR_RELU2}}};

static const fr_config_row arcee_own[] = {FR_ACTIVATION("hidden_act"),
                                          FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                          FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                          FR_FLAG(layer.ffn.biased, "mlp_bias", NULL),
                                          {0}};

const fr_family fr_family_arcee = {
    .architectures = (const char *const[]){"ArceeForCausalLM", "arcee", NULL},
    .gguf = "arcee",
    .tokenizer = "gpt2",
    .pre = "llama-bpe",
    .counts_ids = true,
    .finds_biases = true,
    .defaults = &arcee,
    .rows = {arcee_own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_whole_heads,
    .put_rope_factors = fr_rope_llama3_factors,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, up_down_names},
                                       .rotary_rows = FR_ROWS_TO_PAIRS}};

/* ---------------------------------------------------------------------------------------------------------- Jais 2 */

static const fr_model_spec jais2 = {.trunk = {.vocab = 150272,
                                              .hidden = 3328,
                                              .layers = 32,
                                              .context_limit = 8192,
                                              .eps = 1e-5F,
                                              .layer_norm = true,
                                              .norm_bias = true,
                                              .rope = {{.neox = true}}},
                                    .layer = {.attention = {.heads = 26, .qkv_bias = true, .o_bias = true},
                                              .ffn = {.width = 26624, .activation = FR_RELU2, .biased = true}}};

const fr_family fr_family_jais2 = {
    .architectures = (const char *const[]){"Jais2ForCausalLM", "jais2", NULL},
    .gguf = "jais2",
    .tokenizer = "gpt2",
    .pre = "jais-2",
    .counts_ids = true,
    .finds_biases = true,
    .defaults = &jais2,
    .rows = {arcee_own, fr_size_keys, fr_layer_norm_head_keys},
    .rope = fr_rope_whole_heads,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, up_down_names}}};

/* -------------------------------------------------------------------------------------------------------- Nemotron */

static const fr_model_spec nemotron = {
    .trunk = {.vocab = 256000,
              .hidden = 6144,
              .layers = 32,
              .context_limit = 4096,
              .eps = 1e-5F,
              .layer_norm = true,
              .norm_bias = true,
              .rope = {{.neox = true, .partial = 0.5}}},
    .layer = {.attention = {.heads = 48}, .ffn = {.width = 24576, .activation = FR_RELU2}}};

static const fr_config_row nemotron_own[] = {FR_ACTIVATION("hidden_act"),
                                             FR_REAL(trunk.eps, "norm_eps", NULL, 0, 1),
                                             FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                             FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                             FR_FLAG(layer.ffn.biased, "mlp_bias", NULL),
                                             {0}};

const fr_family fr_family_nemotron = {
    .architectures = (const char *const[]){"NemotronForCausalLM", "nemotron", NULL},
    .gguf = "nemotron",
    .tokenizer = "llama",
    .counts_ids = true,
    .finds_biases = true,
    .defaults = &nemotron,
    .rows = {nemotron_own, fr_size_keys, fr_layer_norm_head_keys},
    .rope = fr_rope_one_form,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, up_down_names},
                                       .norms = FR_LESS_ONE}};

/* ------------------------------------------------------------------------------------------------------- StarCoder2 */

static const fr_model_spec starcoder2 = {
    .trunk = {.vocab = 49152,
              .hidden = 3072,
              .layers = 30,
              .context_limit = 4096,
              .eps = 1e-5F,
              .layer_norm = true,
              .norm_bias = true,
              .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 24, .kv_heads = 2, .qkv_bias = true, .o_bias = true},
              .ffn = {.width = 12288, .activation = FR_GELU, .biased = true}}};

static const fr_config_row starcoder2_own[] = {FR_ACTIVATION("hidden_act"),
                                               FR_REAL(trunk.eps, "norm_epsilon", NULL, 0, 1),
                                               FR_PART(fr_window_of_all_part),
                                               FR_FLAG(layer.attention.qkv_bias, "use_bias", NULL),
                                               FR_FLAG(layer.attention.o_bias, "use_bias", NULL),
                                               FR_FLAG(layer.ffn.biased, "use_bias", NULL),
                                               {0}};

const fr_family fr_family_starcoder2 = {
    .architectures = (const char *const[]){"Starcoder2ForCausalLM", "starcoder2", NULL},
    .gguf = "starcoder2",
    .tokenizer = "gpt2",
    .pre = "refact",
    .finds_biases = true,
    .defaults = &starcoder2,
    .rows = {starcoder2_own, fr_size_keys, fr_layer_norm_head_keys},
    .rope = fr_rope_whole_heads,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, c_names}}};
