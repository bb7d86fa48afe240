/* The Falcon models before Falcon 3 (7B, 40B, 180B, and the smaller falcon-rw): config.json of FalconForCausalLM, GGUF
 * "falcon". Source: transformers 5.24, model falcon; for GGUF github.com/ggml-org/llama.cpp, conversion/falcon.py.
 * Folders have one tensor for queries, keys and values, which is ordered by key heads. falcon-rw has ALiBi instead of
 * rotary positions. */
#include "base/error.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 65024,
              .hidden = 4544,
              .layers = 32,
              .context_limit = 2048,
              .eps = 1e-5F,
              .layer_norm = true,
              .norm_bias = true,
              .rope = {{.neox = true}}},
    .layer = {.norms = FR_NORM_SHARED, .attention = {.heads = 71}, .ffn = {.activation = FR_GELU_ERF}}};

/* Reads the number of key heads, the width of the feed-forward, and where norms are. */
static fr_status read_layers(const fr_source *source, fr_model_spec *s) {
    bool newer, one_key, parallel;
    int64_t norms, heads = (int64_t)s->layer.attention.heads;
    if (source->gguf) {
        if (fr_source_has(source, "blk.0.attn_norm_2.weight")) s->layer.norms = FR_NORMS_PARALLEL;
        return FR_OK;
    }
    FR_TRY(fr_json_bool(source->text, "new_decoder_architecture", false, source->where, &newer));
    FR_TRY(fr_json_bool(source->text, "multi_query", true, source->where, &one_key));
    FR_TRY(fr_json_bool(source->text, "parallel_attn", true, source->where, &parallel));
    FR_TRY(fr_json_int(source->text, "num_ln_in_parallel_attn", 1, 2, newer ? 2 : 1, source->where, &norms));
    FR_TRY(fr_json_size(source->text, "num_kv_heads", 1, 4096, heads, source->where, &s->layer.attention.kv_heads));
    FR_TRY(fr_json_size(source->text, "ffn_hidden_size", 1, 1 << 22, (int64_t)(4 * s->trunk.hidden), source->where,
                        &s->layer.ffn.width));
    if (!newer) s->layer.attention.kv_heads = one_key ? 1 : (size_t)heads;
    s->layer.norms = !parallel ? FR_NORMS_BEFORE : norms == 2 ? FR_NORMS_PARALLEL : FR_NORM_SHARED;
    if (newer ? parallel : norms == 1) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: num_ln_in_parallel_attn and parallel_attn don't suit new_decoder_architecture",
                   source->where);
}

static fr_status put_layers(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers, (void)w;
    if (s->layer[0].attention.alibi) return fr_fail(FR_INPUT, "%s: GGUF has no key for its alibi", where);
    if (s->layer[0].norms != FR_NORMS_BEFORE) return FR_OK;
    return fr_fail(FR_INPUT, "%s: GGUF has no key for its parallel_attn", where);
}

static const fr_config_part layers = {.read = read_layers, .put = put_layers};
static const fr_config_row own[] = {FR_ACTIVATION("activation"),
                                    FR_FLAG(layer.attention.alibi, "alibi", NULL),
                                    FR_SIZE(trunk.hidden, "n_embed", NULL, 1, 1 << 17),
                                    FR_REAL(trunk.eps, "layer_norm_epsilon", NULL, 0, 1),
                                    FR_FLAG(layer.attention.qkv_bias, "bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "bias", NULL),
                                    FR_FLAG(layer.ffn.biased, "bias", NULL),
                                    {0}};
static const fr_config_row last[] = {FR_PART(layers), {0}};

static fr_status read_positions(const fr_source *source, fr_model_spec *s) {
    if (!s->layer.attention.alibi) return fr_rope_whole_heads(source, s);
    s->layer.attention.alibi_stepped = true;
    return fr_positions_alibi(source, s);
}

#define BY_HEADS .layout = FR_LAYOUT_HEADS
#define THERE    .needs = FR_IF_THERE
static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "word_embeddings.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "word_embeddings.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "ln_f.weight", "output_norm.weight"),
    FR_VECTOR(fr_trunk, norm_bias, HIDDEN, "ln_f.bias", "output_norm.bias"),
    {0}};
static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "ln_attn.weight", "attn_norm_2.weight", THERE),
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight"),
    FR_VECTOR(fr_layer, input_norm_bias, HIDDEN, "ln_attn.bias", "attn_norm_2.bias", THERE),
    FR_VECTOR(fr_layer, input_norm_bias, HIDDEN, "input_layernorm.bias", "attn_norm.bias"),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "ln_mlp.weight", "attn_norm.weight", .needs = FR_IF_FFN_NORM),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "post_attention_layernorm.weight", NULL, .needs = FR_IF_FFN_NORM),
    FR_VECTOR(fr_layer, pre_ffn_norm_bias, HIDDEN, "ln_mlp.bias", "attn_norm.bias", .needs = FR_IF_FFN_NORM),
    FR_VECTOR(fr_layer, pre_ffn_norm_bias, HIDDEN, "post_attention_layernorm.bias", NULL, .needs = FR_IF_FFN_NORM),
    FR_NAMED(fr_layer, attention.q, FR_SLOT_QKV, QUERIES, HIDDEN, "self_attention.query_key_value.weight",
             "attn_qkv.weight", BY_HEADS),
    FR_NAMED(fr_layer, attention.q_bias, FR_SLOT_QKV_VECTOR, QUERIES, ONE, "self_attention.query_key_value.bias",
             "attn_qkv.bias", BY_HEADS, .needs = FR_IF_QKV_BIAS),
    FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, "self_attention.dense.weight", "attn_output.weight"),
    FR_VECTOR(fr_layer, attention.o_bias, HIDDEN, "self_attention.dense.bias", "attn_output.bias",
              .needs = FR_IF_O_BIAS),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp.dense_h_to_4h.weight", "ffn_up.weight"),
    FR_VECTOR(fr_layer, ffn.gate_bias, FFN, "mlp.dense_h_to_4h.bias", "ffn_up.bias", .needs = FR_IF_FFN_BIASED),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.dense_4h_to_h.weight", "ffn_down.weight"),
    FR_VECTOR(fr_layer, ffn.down_bias, HIDDEN, "mlp.dense_4h_to_h.bias", "ffn_down.bias", .needs = FR_IF_FFN_BIASED),
    {0}};

const fr_family fr_family_falcon = {.architectures = (const char *const[]){"FalconForCausalLM", "falcon", NULL},
                                    .gguf = "falcon",
                                    .tokenizer = "gpt2",
                                    .pre = "falcon",
                                    .finds_biases = true,
                                    .defaults = &defaults,
                                    .rows = {own, fr_size_keys, last, fr_layer_norm_head_keys},
                                    .rope = read_positions,
                                    .names = &(const fr_tensor_naming){.model = model_names, .layer = {layer_names}}};
