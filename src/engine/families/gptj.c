/* GPT-J: config.json of GPTJForCausalLM; llama.cpp has no GGUF for it. Source: transformers 5.24, model gptj. Attention
 * and feed-forward of a layer read the same norm. A part of each attention head is rotated, in pairs of neighbouring
 * values. The LM head has a bias. */
#include "base/error.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 50400,
              .hidden = 4096,
              .layers = 28,
              .context_limit = 2048,
              .eps = 1e-5F,
              .layer_norm = true,
              .norm_bias = true,
              .head_bias = true},
    .layer = {.norms = FR_NORM_SHARED, .attention = {.heads = 16}, .ffn = {.activation = FR_GELU, .biased = true}}};

/* Reads the width of the feed-forward, which by default is four times the hidden width. */
static fr_status read_width(const fr_source *source, fr_model_spec *s) {
    return fr_json_size(source->text, "n_inner", 1, 1 << 22, (int64_t)(4 * s->trunk.hidden), source->where,
                        &s->layer.ffn.width);
}

static const fr_config_part width = {.read = read_width};
static const fr_config_row first[] = {FR_ACTIVATION("activation_function"),
                                      FR_SIZE(trunk.layers, "n_layer", NULL, 1, FR_LAYERS_MAX),
                                      FR_SIZE(trunk.context_limit, "n_positions", NULL, 1, 1 << 24),
                                      FR_SIZE(trunk.hidden, "n_embd", NULL, 1, 1 << 17),
                                      FR_SIZE(layer.attention.heads, "n_head", NULL, 1, 4096),
                                      {0}};
static const fr_config_row last[] = {FR_PART(width), FR_REAL(trunk.eps, "layer_norm_epsilon", NULL, 0, 1), {0}};

/* Reads the number of rotated values of a head. Only rotary_dim is read; the keys that other families have for it are
 * ignored. */
static fr_status read_rotary(const fr_source *source, fr_model_spec *s) {
    fr_attention_spec *a = &s->layer.attention;
    fr_rope_spec *rope = &s->trunk.rope[0];
    a->head_dim = s->trunk.hidden / a->heads;
    FR_TRY(fr_json_size(source->text, "rotary_dim", 2, 4096, 64, source->where, &rope->dims));
    rope->sections[0] = rope->dims / 2;
    if (!json_is_null(json_object_get(source->text, "rotary_dim"))) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: rotary_dim null is not built", source->where);
}

static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", NULL, .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "wte.weight", NULL),
    FR_VECTOR(fr_trunk, head_bias, VOCAB, "lm_head.bias", NULL, .top = true),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "wte.weight", NULL),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "ln_f.weight", NULL),
    FR_VECTOR(fr_trunk, norm_bias, HIDDEN, "ln_f.bias", NULL),
    {0}};
static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "ln_1.weight", NULL),
    FR_VECTOR(fr_layer, input_norm_bias, HIDDEN, "ln_1.bias", NULL),
    FR_MATRIX(fr_layer, attention.q, QUERIES, HIDDEN, "attn.q_proj.weight", NULL),
    FR_MATRIX(fr_layer, attention.k, KEYS, HIDDEN, "attn.k_proj.weight", NULL),
    FR_MATRIX(fr_layer, attention.v, KEYS, HIDDEN, "attn.v_proj.weight", NULL),
    FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, "attn.out_proj.weight", NULL),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp.fc_in.weight", NULL),
    FR_VECTOR(fr_layer, ffn.gate_bias, FFN, "mlp.fc_in.bias", NULL),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.fc_out.weight", NULL),
    FR_VECTOR(fr_layer, ffn.down_bias, HIDDEN, "mlp.fc_out.bias", NULL),
    {0}};

const fr_family fr_family_gptj = {
    .architectures = (const char *const[]){"GPTJForCausalLM", NULL},
    .defaults = &defaults,
    .rows = {first, fr_size_keys, last},
    .rope = read_rotary,
    .names = &(const fr_tensor_naming){.model = model_names,
                                       .layer = {layer_names},
                                       .extras = (const char *const[]){"*.attn.bias", "*.attn.masked_bias", NULL}}};
