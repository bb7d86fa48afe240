/* Gemma 1 (2B, 7B, CodeGemma): config.json of GemmaForCausalLM, GGUF "gemma". Source: transformers 5.24, model gemma;
 * for GGUF github.com/ggml-org/llama.cpp, conversion/gemma.py and src/models/gemma.cpp. Published files store the
 * weights of norms minus 1. Early files call the activation "gelu" but mean its tanh form. Later files name the tanh
 * form. */
#include <string.h>

#include "base/error.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {.trunk = {.vocab = 256000,
                                                 .hidden = 3072,
                                                 .layers = 28,
                                                 .context_limit = 8192,
                                                 .eps = 1e-6F,
                                                 .rope = {{.neox = true, .theta = 1e4}}},
                                       .layer = {.attention = {.heads = 16, .kv_heads = 16, .head_dim = 256},
                                                 .ffn = {.width = 24576, .activation = FR_GELU}}};

static fr_status read_activation(const fr_source *source, fr_model_spec *spec) {
    const char *word;
    (void)spec;
    if (source->gguf) return FR_OK;
    FR_TRY(fr_json_text(source->text, "hidden_act", source->where, &word));
    if (!word || strcmp(word, "gelu") == 0 || strcmp(word, "gelu_pytorch_tanh") == 0) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: hidden_act %.40s is not built (gelu_pytorch_tanh is)", source->where, word);
}

static const fr_config_part activation = {.read = read_activation};
static const fr_config_row own[] = {
    FR_PART(activation), FR_WITHOUT("attention_bias"), FR_WITHOUT("use_bidirectional_attention"), {0}};

const fr_family fr_family_gemma = {
    .architectures = (const char *const[]){"GemmaForCausalLM", "gemma", NULL},
    .gguf = "gemma",
    .tokenizer = "llama",
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_one_form,
    .scales_embedding = true,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names},
                                       .norms = FR_LESS_ONE}};
