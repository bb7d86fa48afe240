/* GPT-NeoX, Pythia, Dolly 2, RedPajama: config.json of GPTNeoXForCausalLM, GGUF "gptneox". Source: transformers 5.24,
 * model gpt_neox; for GGUF github.com/ggml-org/llama.cpp, conversion/gptneox.py. Attention and feed-forward of a layer
 * read the same rows, each after a norm of its own. In some models the feed-forward instead reads the rows after
 * attention. Folders have queries, keys and values in one tensor, head by head. */
#include "base/error.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {.trunk = {.vocab = 50432,
                                                 .hidden = 6144,
                                                 .layers = 44,
                                                 .context_limit = 2048,
                                                 .eps = 1e-5F,
                                                 .layer_norm = true,
                                                 .norm_bias = true,
                                                 .rope = {{.neox = true, .partial = 0.25}}},
                                       .layer = {.norms = FR_NORMS_PARALLEL,
                                                 .attention = {.heads = 64, .qkv_bias = true, .o_bias = true},
                                                 .ffn = {.width = 24576, .activation = FR_GELU_ERF, .biased = true}}};

static fr_status read_norms(const fr_source *source, fr_model_spec *s) {
    static const char key[] = ".use_parallel_residual"; /* in config.json the key has no dot */
    bool parallel;
    FR_TRY(source->gguf ? fr_gguf_bool(source->gguf, key, true, &parallel)
                        : fr_json_bool(source->text, key + 1, true, source->where, &parallel));
    s->layer.norms = parallel ? FR_NORMS_PARALLEL : FR_NORMS_BEFORE;
    return FR_OK;
}

static fr_status put_norms(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers, (void)where;
    fr_gguf_put_bool(w, ".use_parallel_residual", s->layer[0].norms == FR_NORMS_PARALLEL);
    return FR_OK;
}

static const fr_config_part norms = {.read = read_norms, .put = put_norms};
static const fr_config_row own[] = {FR_ACTIVATION("hidden_act"),
                                    FR_PART(norms),
                                    FR_REAL(trunk.rope[0].theta, "rotary_emb_base", NULL, 1.001, 1e12),
                                    FR_REAL(trunk.rope[0].partial, "rotary_pct", NULL, 0, 1),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    {0}};

#define BY_HEADS .layout = FR_LAYOUT_HEADS
static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_out.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_in.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embed_in.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "final_layer_norm.weight", "output_norm.weight"),
    FR_VECTOR(fr_trunk, norm_bias, HIDDEN, "final_layer_norm.bias", "output_norm.bias"),
    {0}};
static const fr_tensor_name layer_names[] = {
    FR_NAMED(fr_layer, attention.q, FR_SLOT_QKV, QUERIES, HIDDEN, "attention.query_key_value.weight", "attn_qkv.weight",
             BY_HEADS),
    FR_NAMED(fr_layer, attention.q_bias, FR_SLOT_QKV_VECTOR, QUERIES, ONE, "attention.query_key_value.bias",
             "attn_qkv.bias", BY_HEADS, .needs = FR_IF_QKV_BIAS),
    FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, "attention.dense.weight", "attn_output.weight"),
    FR_VECTOR(fr_layer, attention.o_bias, HIDDEN, "attention.dense.bias", "attn_output.bias", .needs = FR_IF_O_BIAS),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp.dense_h_to_4h.weight", "ffn_up.weight"),
    FR_VECTOR(fr_layer, ffn.gate_bias, FFN, "mlp.dense_h_to_4h.bias", "ffn_up.bias"),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.dense_4h_to_h.weight", "ffn_down.weight"),
    FR_VECTOR(fr_layer, ffn.down_bias, HIDDEN, "mlp.dense_4h_to_h.bias", "ffn_down.bias"),
    {0}};

const fr_family fr_family_gpt_neox = {
    .architectures = (const char *const[]){"GPTNeoXForCausalLM", "gptneox", NULL},
    .gguf = "gptneox",
    .tokenizer = "gpt2",
    .pre = "olmo",
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_layer_norm_head_keys},
    .rope = fr_rope_one_form,
    .names = &(const fr_tensor_naming){.model = model_names,
                                       .layer = {layer_names, fr_attention_names, fr_pre_norm_names},
                                       .extras = (const char *const[]){"*.attention.bias", "*.attention.masked_bias",
                                                                       "*.attention.rotary_emb.inv_freq", NULL}}};
