/* GPT-2 (124M to XL, DistilGPT2, DialoGPT): config.json of GPT2LMHeadModel, GGUF "gpt2". Source: transformers 5.24,
 * model gpt2; for GGUF github.com/ggml-org/llama.cpp, conversion/gpt2.py. A table has a row for each position, and
 * folders store matrices as [inputs, outputs]. */
#include "base/error.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {.trunk = {.vocab = 50257,
                                                 .hidden = 768,
                                                 .layers = 12,
                                                 .context_limit = 1024,
                                                 .eps = 1e-5F,
                                                 .layer_norm = true,
                                                 .norm_bias = true},
                                       .layer = {.attention = {.heads = 12, .qkv_bias = true, .o_bias = true},
                                                 .ffn = {.activation = FR_GELU, .biased = true}}};

/* Reads the width of the feed-forward, which by default is four times the hidden width. Also reads the scale of
 * scores. */
static fr_status read_own(const fr_source *source, fr_model_spec *s) {
    bool scales = true;
    if (source->gguf) return FR_OK;
    FR_TRY(fr_json_size(source->text, "n_inner", 1, 1 << 22, (int64_t)(4 * s->trunk.hidden), source->where,
                        &s->layer.ffn.width));
    FR_TRY(fr_json_bool(source->text, "scale_attn_weights", true, source->where, &scales));
    if (!scales) s->layer.attention.scale = 1.0F;
    return FR_OK;
}

/* If the folder says so, divides a layer's scale of scores by the layer's number, counted from 1. */
static fr_status shape(const fr_source *source, fr_model_spec *s) {
    bool by_layer = false;
    if (!source->gguf)
        FR_TRY(fr_json_bool(source->text, "scale_attn_by_inverse_layer_idx", false, source->where, &by_layer));
    FR_TRY(fr_layers_alike(source, s));
    for (size_t i = 0; by_layer && i < s->trunk.layers; i++) s->trunk.layer[i].attention.scale /= (float)(i + 1);
    return FR_OK;
}

static fr_status put_scale(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers, (void)w;
    const fr_attention_spec *last = &s->layer[s->layers - 1].attention;
    return last->scale == fr_rsqrt(last->head_dim) ? FR_OK
                                                   : fr_fail(FR_INPUT, "%s: GGUF has no key for its scale", where);
}

static const fr_config_part own_part = {.read = read_own, .put = put_scale};
static const fr_config_row first[] = {FR_ACTIVATION("activation_function"),
                                      FR_WITHOUT("add_cross_attention"),
                                      FR_SIZE(trunk.layers, "n_layer", NULL, 1, FR_LAYERS_MAX),
                                      FR_SIZE(trunk.context_limit, "n_positions", NULL, 1, 1 << 24),
                                      FR_SIZE(trunk.hidden, "n_embd", NULL, 1, 1 << 17),
                                      FR_SIZE(layer.attention.heads, "n_head", NULL, 1, 4096),
                                      {0}};
static const fr_config_row last[] = {
    FR_PART(own_part),
    FR_REAL(trunk.eps, "layer_norm_epsilon", ".attention.layer_norm_epsilon", 0, 1, .required = true),
    FR_SIZE(layer.attention.head_dim, "head_dim", ".attention.key_length", 2, 4096, .per_head = true),
    {0}};

#define TURNED .layout = FR_LAYOUT_HALVES
static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "wte.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "wte.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, positions, POSITIONS, HIDDEN, "wpe.weight", "position_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "ln_f.weight", "output_norm.weight"),
    FR_VECTOR(fr_trunk, norm_bias, HIDDEN, "ln_f.bias", "output_norm.bias"),
    {0}};
static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "ln_1.weight", "attn_norm.weight"),
    FR_VECTOR(fr_layer, input_norm_bias, HIDDEN, "ln_1.bias", "attn_norm.bias"),
    FR_NAMED(fr_layer, attention.q, FR_SLOT_QKV, QUERIES, HIDDEN, "attn.c_attn.weight", "attn_qkv.weight", TURNED),
    FR_NAMED(fr_layer, attention.q_bias, FR_SLOT_QKV_VECTOR, QUERIES, ONE, "attn.c_attn.bias", "attn_qkv.bias"),
    FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, "attn.c_proj.weight", "attn_output.weight", TURNED),
    FR_VECTOR(fr_layer, attention.o_bias, HIDDEN, "attn.c_proj.bias", "attn_output.bias"),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "ln_2.weight", "ffn_norm.weight"),
    FR_VECTOR(fr_layer, pre_ffn_norm_bias, HIDDEN, "ln_2.bias", "ffn_norm.bias"),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp.c_fc.weight", "ffn_up.weight", TURNED),
    FR_VECTOR(fr_layer, ffn.gate_bias, FFN, "mlp.c_fc.bias", "ffn_up.bias"),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.c_proj.weight", "ffn_down.weight", TURNED),
    FR_VECTOR(fr_layer, ffn.down_bias, HIDDEN, "mlp.c_proj.bias", "ffn_down.bias"),
    {0}};

const fr_family fr_family_gpt2 = {
    .architectures = (const char *const[]){"GPT2LMHeadModel", "gpt2", NULL},
    .gguf = "gpt2",
    .tokenizer = "gpt2",
    .pre = "gpt-2",
    .defaults = &defaults,
    .rows = {first, fr_size_keys, last},
    .rope = fr_positions_learned,
    .shape = shape,
    .names = &(const fr_tensor_naming){.model = model_names,
                                       .layer = {layer_names},
                                       .extras = (const char *const[]){"*.attn.bias", "*.attn.masked_bias", NULL}}};
