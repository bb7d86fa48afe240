/* MiniMax-M2: config.json of MiniMaxM2ForCausalLM, GGUF "minimax-m2". Source: the published checkpoints and
 * transformers 5.17, model minimax_m2; for GGUF github.com/ggml-org/llama.cpp, conversion/minimax.py. Scores are
 * sigmoid, corrected by a bias. One norm covers the queries of all heads, and another norm the keys. Only a part of a
 * head is rotated, and published files give the part's length. Published files do not contain the MTP layers. */
#include "base/error.h"
#include "src/engine/families/mixture.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 200064,
              .hidden = 3072,
              .layers = 62,
              .context_limit = 196608,
              .eps = 1e-6F,
              .rope = {{.neox = true, .theta = 5e6}}},
    .layer = {.attention = {.heads = 48, .kv_heads = 8, .head_dim = 128, .qk_norm = true, .qk_norm_wide = true},
              .ffn = {.width = 1536, .activation = FR_SILU},
              .experts = {.count = 256,
                          .top_k = 8,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SIGMOID,
                          .score_bias = true,
                          .norm_top_k = true,
                          .routed_scaling = 1.0F}},
    .mixture = {.as_wide = true, .normalizes = true}};

/* Reads how many values of a head are rotated. transformers reads only partial_rotary_factor; this is for files that
 * have rotary_dim instead. Later the width is multiplied by `partial` and rounded down. Half a value is added here so
 * that rounding doesn't lose a value. */
static fr_status read_rotary(const fr_source *source, fr_model_spec *s) {
    size_t width = s->layer.attention.head_dim, dims;
    FR_TRY(fr_json_size(source->text, "rotary_dim", 2, (int64_t)width, (int64_t)width, source->where, &dims));
    if (dims < width) s->trunk.rope[0].partial = ((double)dims + 0.5) / (double)width;
    return FR_OK;
}

static fr_status read_mixture(const fr_source *source, fr_model_spec *s) {
    if (!source->gguf) FR_TRY(read_rotary(source, s));
    return fr_mixture_read(source, s);
}

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)where;
    fr_mixture_put_counts(s, w);
    fr_gguf_put_u32(w, ".expert_feed_forward_length", (uint32_t)fr_spec_experts(s)->width);
    fr_gguf_put_u32(w, ".expert_gating_func", 2);
    return FR_OK;
}

static const fr_config_part mixture = {.read = read_mixture, .put = put_mixture};
static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"), {0}};
static const fr_config_row mixtures[] = {FR_PART(mixture), {0}};

const fr_family fr_family_minimax_m2 = {
    .architectures = (const char *const[]){"MiniMaxM2ForCausalLM", "minimax-m2", NULL},
    .gguf = "minimax-m2",
    .tokenizer = "gpt2",
    .pre = "minimax-m2",
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys, mixtures},
    .rope = fr_rope_one_form,
    .shape = fr_mixture_behind_leading,
    .names = &(const fr_tensor_naming){
        .layer = {fr_attention_names, fr_pre_norm_names, fr_block_sparse_names, fr_mixture_names}}};
