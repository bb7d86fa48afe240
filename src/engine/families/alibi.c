/* Decoders whose heads are not rotated, because the positions are ALiBi's. BLOOM and BLOOMZ: config.json of
 * BloomForCausalLM, GGUF "bloom". MPT: config.json of MptForCausalLM, or MPTForCausalLM as its publisher names it; GGUF
 * "mpt". Source: transformers 5.24, models bloom and mpt; for GGUF github.com/ggml-org/llama.cpp, conversion/bloom.py
 * and mpt.py. The feed-forward has no gate and is four times as wide as the residual stream. BLOOM applies a norm to
 * the embeddings, and its folders store queries, keys and values head by head. MPT's models have no biases, but if a
 * file has biases, they are used. */
#include "base/error.h"
#include "src/engine/families/config_keys.h"
#include "src/engine/families/family.h"

static const fr_config_row last[] = {
    FR_REAL(trunk.eps, "layer_norm_epsilon", ".attention.layer_norm_epsilon", 0, 1, .required = true),
    FR_SIZE(layer.attention.head_dim, NULL, ".attention.key_length", 2, 4096, .per_head = true),
    {0}};

static fr_status read_width(const fr_source *source, fr_model_spec *s) {
    if (!source->gguf) s->layer.ffn.width = 4 * s->trunk.hidden;
    s->layer.attention.head_dim = s->trunk.hidden / s->layer.attention.heads;
    return FR_OK;
}

static const fr_config_part width_part = {.read = read_width};

/* ----------------------------------------------------------------------------------------------------------- BLOOM */

static const fr_model_spec bloom = {.trunk = {.vocab = 250880,
                                              .hidden = 64,
                                              .layers = 2,
                                              .context_limit = 2048,
                                              .eps = 1e-5F,
                                              .layer_norm = true,
                                              .norm_bias = true},
                                    .layer = {.attention = {.heads = 8, .qkv_bias = true, .o_bias = true},
                                              .ffn = {.activation = FR_GELU, .biased = true}}};

static const fr_config_row bloom_own[] = {FR_WITHOUT("apply_residual_connection_post_layernorm"),
                                          FR_SIZE(trunk.hidden, "n_embed", NULL, 1, 1 << 17),
                                          FR_SIZE(trunk.layers, "n_layer", NULL, 1, FR_LAYERS_MAX),
                                          FR_SIZE(trunk.context_limit, "seq_length", NULL, 1, 1 << 24),
                                          FR_SIZE(layer.attention.heads, "n_head", NULL, 1, 4096),
                                          {0}};
static const fr_config_row width[] = {FR_PART(width_part), {0}};

#define BY_HEADS .layout = FR_LAYOUT_HEADS
static const fr_tensor_name bloom_model[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "word_embeddings.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "word_embeddings.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, embed_norm, HIDDEN, "word_embeddings_layernorm.weight", "token_embd_norm.weight"),
    FR_VECTOR(fr_trunk, embed_norm_bias, HIDDEN, "word_embeddings_layernorm.bias", "token_embd_norm.bias"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "ln_f.weight", "output_norm.weight"),
    FR_VECTOR(fr_trunk, norm_bias, HIDDEN, "ln_f.bias", "output_norm.bias"),
    {0}};
static const fr_tensor_name bloom_layer[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight"),
    FR_VECTOR(fr_layer, input_norm_bias, HIDDEN, "input_layernorm.bias", "attn_norm.bias"),
    FR_NAMED(fr_layer, attention.q, FR_SLOT_QKV, QUERIES, HIDDEN, "self_attention.query_key_value.weight",
             "attn_qkv.weight", BY_HEADS),
    FR_NAMED(fr_layer, attention.q_bias, FR_SLOT_QKV_VECTOR, QUERIES, ONE, "self_attention.query_key_value.bias",
             "attn_qkv.bias", BY_HEADS),
    FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, "self_attention.dense.weight", "attn_output.weight"),
    FR_VECTOR(fr_layer, attention.o_bias, HIDDEN, "self_attention.dense.bias", "attn_output.bias"),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "post_attention_layernorm.weight", "ffn_norm.weight"),
    FR_VECTOR(fr_layer, pre_ffn_norm_bias, HIDDEN, "post_attention_layernorm.bias", "ffn_norm.bias"),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp.dense_h_to_4h.weight", "ffn_up.weight"),
    FR_VECTOR(fr_layer, ffn.gate_bias, FFN, "mlp.dense_h_to_4h.bias", "ffn_up.bias"),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.dense_4h_to_h.weight", "ffn_down.weight"),
    FR_VECTOR(fr_layer, ffn.down_bias, HIDDEN, "mlp.dense_4h_to_h.bias", "ffn_down.bias"),
    {0}};

const fr_family fr_family_bloom = {.architectures = (const char *const[]){"BloomForCausalLM", "bloom", NULL},
                                   .gguf = "bloom",
                                   .tokenizer = "gpt2",
                                   .pre = "bloom",
                                   .defaults = &bloom,
                                   .rows = {bloom_own, fr_size_keys, width, last},
                                   .rope = fr_positions_alibi,
                                   .names = &(const fr_tensor_naming){.model = bloom_model, .layer = {bloom_layer}}};

/* ------------------------------------------------------------------------------------------------------------- MPT */

enum { ALIBI_OCTAVES_MAX = 64 }; /* a slope of 2^-64 changes no score */

static const fr_model_spec mpt = {
    .trunk = {.vocab = 50368, .hidden = 2048, .layers = 24, .context_limit = 2048, .eps = 1e-5F, .layer_norm = true},
    .layer = {.attention = {.heads = 16}, .ffn = {.activation = FR_GELU_ERF}}};

/* Reads the keys of attention, which folders have in an object of their own. The flattest slope is read from the file,
 * as llama.cpp does. transformers 5.24 has a parameter for this slope, but always computes with 2^-8. */
static fr_status read_attention(const fr_source *source, fr_model_spec *s) {
    fr_attention_spec *a = &s->layer.attention;
    const char *where = "config.json: attn_config";
    double octaves, scale, clamp;
    json_t *keys;
    bool alibi;
    FR_TRY(read_width(source, s));
    if (source->gguf) return FR_OK;
    FR_TRY(fr_json_object(source->text, "attn_config", source->where, &keys));
    FR_TRY(fr_json_bool(keys, "alibi", true, where, &alibi));
    FR_TRY(fr_json_real(keys, "alibi_bias_max", 1, ALIBI_OCTAVES_MAX, 8, where, &octaves));
    FR_TRY(fr_json_real(keys, "softmax_scale", 1e-9, 1e6, fr_rsqrt(a->head_dim), where, &scale));
    FR_TRY(fr_json_real(keys, "clip_qkv", 0, 1e6, 0, where, &clamp));
    FR_TRY(fr_config_only(keys, "attn_type", "multihead_attention", where));
    FR_TRY(fr_config_without(keys, "qk_ln", where));
    FR_TRY(fr_config_without(keys, "prefix_lm", where));
    a->scale = (float)scale;
    a->clamp = (float)clamp;
    a->alibi_octaves = (float)octaves;
    return alibi ? FR_OK : fr_fail(FR_UNBUILT, "%s: alibi false is not built", where);
}

static fr_status put_attention(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_attention_spec *a = &s->layer[0].attention;
    (void)mtp_layers, (void)w;
    if (a->scale == fr_rsqrt(a->head_dim)) return FR_OK;
    return fr_fail(FR_INPUT, "%s: GGUF has no key for its softmax_scale", where);
}

static const fr_config_part attention_part = {.read = read_attention, .put = put_attention};
static const fr_config_row mpt_own[] = {FR_SIZE(trunk.hidden, "d_model", NULL, 1, 1 << 17),
                                        FR_SIZE(trunk.layers, "n_layers", NULL, 1, FR_LAYERS_MAX),
                                        FR_SIZE(trunk.context_limit, "max_seq_len", NULL, 1, 1 << 24),
                                        FR_SIZE(layer.attention.heads, "n_heads", NULL, 1, 4096),
                                        FR_ABSENT("logit_scale"),
                                        {0}};
static const fr_config_row mpt_attention[] = {
    FR_REAL(layer.attention.clamp, NULL, ".attention.clamp_kqv", 0, 1e6),
    FR_REAL(layer.attention.alibi_octaves, NULL, ".attention.max_alibi_bias", 1, ALIBI_OCTAVES_MAX, .required = true),
    FR_PART(attention_part),
    {0}};

#define THERE .needs = FR_IF_THERE
static const fr_tensor_name mpt_model[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "wte.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "wte.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "norm_f.weight", "output_norm.weight"),
    FR_VECTOR(fr_trunk, norm_bias, HIDDEN, "norm_f.bias", "output_norm.bias", THERE),
    {0}};
static const fr_tensor_name mpt_layer[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "norm_1.weight", "attn_norm.weight"),
    FR_VECTOR(fr_layer, input_norm_bias, HIDDEN, "norm_1.bias", "attn_norm.bias", THERE),
    FR_NAMED(fr_layer, attention.q, FR_SLOT_QKV, QUERIES, HIDDEN, "attn.Wqkv.weight", "attn_qkv.weight"),
    FR_NAMED(fr_layer, attention.q_bias, FR_SLOT_QKV_VECTOR, QUERIES, ONE, "attn.Wqkv.bias", "attn_qkv.bias", THERE),
    FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, "attn.out_proj.weight", "attn_output.weight"),
    FR_VECTOR(fr_layer, attention.o_bias, HIDDEN, "attn.out_proj.bias", "attn_output.bias", THERE),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "norm_2.weight", "ffn_norm.weight"),
    FR_VECTOR(fr_layer, pre_ffn_norm_bias, HIDDEN, "norm_2.bias", "ffn_norm.bias", THERE),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "ffn.up_proj.weight", "ffn_up.weight"),
    FR_VECTOR(fr_layer, ffn.gate_bias, FFN, "ffn.up_proj.bias", "ffn_up.bias", THERE),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "ffn.down_proj.weight", "ffn_down.weight"),
    FR_VECTOR(fr_layer, ffn.down_bias, HIDDEN, "ffn.down_proj.bias", "ffn_down.bias", THERE),
    {0}};

const fr_family fr_family_mpt = {.architectures =
                                     (const char *const[]){"MptForCausalLM", "MPTForCausalLM", "mpt", NULL},
                                 .gguf = "mpt",
                                 .tokenizer = "gpt2",
                                 .pre = "mpt",
                                 .defaults = &mpt,
                                 .rows = {mpt_own, fr_size_keys, mpt_attention, last},
                                 .rope = fr_positions_alibi,
                                 .names = &(const fr_tensor_naming){.model = mpt_model, .layer = {mpt_layer}}};
