/* Gemma 3, text: config.json of Gemma3ForCausalLM, and the text part of Gemma3ForConditionalGeneration; GGUF "gemma3".
 * Source: transformers 5.17, model gemma3; for GGUF github.com/ggml-org/llama.cpp, conversion/gemma.py and
 * src/models/gemma3.cpp. Five sliding layers are followed by a full one. Norms come before and after attention and
 * feed-forward. Published files store the norms' weights minus 1. */
#include "base/error.h"
#include "src/engine/families/config_keys.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 262208,
              .hidden = 2304,
              .layers = 26,
              .context_limit = 131072,
              .eps = 1e-6F,
              .ropes = FR_LAYER_KINDS,
              .rope = {[FR_SLIDING] = {.neox = true, .theta = 1e4}, [FR_FULL] = {.neox = true, .theta = 1e6}}},
    .layer = {.attention = {.heads = 8,
                            .kv_heads = 4,
                            .head_dim = 256,
                            .window = 4096,
                            .qk_norm = true,
                            .sees_block = true,
                            .scale = 0.0625F},
              .ffn = {.width = 9216, .activation = FR_GELU}},
    .kinds = {.every = 6}};

static const fr_config_row own[] = {
    FR_ONLY("hidden_activation", "gelu_pytorch_tanh"),
    FR_ABSENT("attn_logit_softcapping"),
    FR_WITHOUT("attention_bias"),
    FR_WITHOUT("use_bidirectional_attention"),
    FR_REAL(trunk.softcap, "final_logit_softcapping", ".final_logit_softcapping", 0, 1e6),
    FR_RSQRT(layer.attention.scale, "query_pre_attn_scalar", NULL, 1, 1 << 17),
    {0}};

/* Makes the layers. In transformers, the class with a vision tower has no soft cap of logits, so it is removed. */
static fr_status shape(const fr_source *source, fr_model_spec *s) {
    if (!source->gguf && source->text != source->root) s->trunk.softcap = 0;
    if (!source->gguf)
        FR_TRY(fr_config_image_token(source->root, "image_token_id", "image_token_index", 262144, s->trunk.vocab,
                                     source->where, &s->image_token));
    return fr_layers_by_kind(source, s);
}

const fr_family fr_family_gemma3 = {
    .architectures = (const char *const[]){"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration", "gemma3", NULL},
    .gguf = "gemma3",
    .tokenizer = "llama",
    .scaled_by_hidden = 62, /* number of layers of the 27B model, which scales scores by hidden / heads */
    .picture = "<image_soft_token>",
    .sees = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_kind_keys},
    .rope = fr_rope_by_kind,
    .scales_embedding = true,
    .shape = shape,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_sandwich_norm_names, fr_ffn_names},
                                       .norms = FR_LESS_ONE,
                                       .extras =
                                           (const char *const[]){"*vision_tower.*", "*multi_modal_projector.*", NULL}}};
