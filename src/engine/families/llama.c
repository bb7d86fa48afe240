/* Llama, and models with the same layers (such as SmolLM2): config.json of LlamaForCausalLM, and the text half of
 * Idefics3ForConditionalGeneration and SmolVLMForConditionalGeneration, GGUF "llama". Source: the published checkpoints
 * and transformers 5.17, model llama; for GGUF github.com/ggml-org/llama.cpp, conversion/llama.py, which writes rows of
 * queries and keys in another order, and llama3's scaling of rotary positions as a tensor. The layer of an EAGLE
 * drafter is a Llama layer (src/engine/draft/eagle.c). */
#include "base/error.h"
#include "src/engine/families/config_keys.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 32000, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32}, .ffn = {.width = 11008, .activation = FR_SILU}}};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_NONE(".expert_count"),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.ffn.biased, "mlp_bias", NULL),
                                    {0}};

/* Makes the layers. Idefics 3 and SmolVLM have the text model in a part of config.json. Their text model must be
 * Llama's, and their image token is read. */
static fr_status shape(const fr_source *source, fr_model_spec *s) {
    if (!source->gguf && source->text != source->root) {
        FR_TRY(fr_config_only(source->text, "model_type", "llama", source->where));
        FR_TRY(fr_config_image_token(source->root, "image_token_id", "image_token_id", 128257, s->trunk.vocab,
                                     source->where, &s->image_token));
    }
    return fr_layers_alike(source, s);
}

const fr_family fr_family_llama = {
    .architectures = (const char *const[]){"LlamaForCausalLM", "SmolVLMForConditionalGeneration",
                                           "Idefics3ForConditionalGeneration", "llama", NULL},
    .gguf = "llama",
    .tokenizer = "gpt2",
    .pre = "llama-bpe",
    .counts_ids = true,
    .finds_biases = true,
    .picture = "<image>",
    .sees = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_whole_heads,
    .shape = shape,
    .put_rope_factors = fr_rope_llama3_factors,
    .names = &(const fr_tensor_naming){
        .layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names},
        .rotary_rows = FR_ROWS_TO_PAIRS,
        /* rotary frequencies, in early checkpoints; towers */
        .extras = (const char *const[]){"*rotary_emb.inv_freq", "*vision_model.*", "*connector.*", NULL}}};
