/* Granite, dense: config.json of GraniteForCausalLM, GGUF "granite". Granite, mixtures: GraniteMoeForCausalLM and
 * GraniteMoeSharedForCausalLM; GGUF "granitemoe". Source: the published checkpoints and transformers 5.17, models
 * granite, granitemoe and granitemoeshared; for GGUF github.com/ggml-org/llama.cpp, conversion/granite.py and
 * src/models/granite.cpp. There are four multipliers. In mixtures, gate and up are one tensor, which GGUF divides. The
 * hybrids of version 4 are in granite_hybrid.c. */
#include "base/error.h"
#include "src/engine/families/mixture.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 32000, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .scale = 1}, .ffn = {.width = 11008, .activation = FR_SILU}}};

/* In GGUF, scores have the usual scale if there is no key for it. */
static const fr_model_spec gguf_defaults = {.trunk = {.rope = {{.neox = true}}},
                                            .layer = {.ffn = {.activation = FR_SILU}}};

static const fr_config_row no_mixture[] = {FR_NONE(".expert_count"), {0}};
static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    FR_REAL(layer.attention.scale, "attention_multiplier", ".attention.scale", 0, 1e6),
                                    FR_REAL(trunk.embedding_scale, "embedding_multiplier", ".embedding_scale", 0, 1e6),
                                    FR_REAL(trunk.residual_scale, "residual_multiplier", ".residual_scale", 0, 1e6),
                                    FR_DIVISOR(trunk.logit_scale, "logits_scaling", ".logit_scale", 0, 1e6),
                                    {0}};

/* Reads the flag in GGUF that says if heads have rotary positions; by default they have. */
static fr_status read_uses_rope(const fr_source *source, fr_model_spec *s) {
    bool uses_rope = true;
    if (source->gguf) FR_TRY(fr_gguf_bool(source->gguf, ".rope.scaling.finetuned", true, &uses_rope));
    s->layer.attention.no_rope = !uses_rope;
    return FR_OK;
}

static fr_status put_uses_rope(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)where;
    if (fr_spec_attention(s)->no_rope) fr_gguf_put_bool(w, ".rope.scaling.finetuned", false);
    return FR_OK;
}

static const fr_config_part uses_rope_part = {.read = read_uses_rope, .put = put_uses_rope};
static const fr_config_row dense[] = {FR_FLAG(layer.ffn.biased, "mlp_bias", NULL), FR_PART(uses_rope_part), {0}};

const fr_family fr_family_granite = {
    .architectures = (const char *const[]){"GraniteForCausalLM", "granite", NULL},
    .gguf = "granite",
    .tokenizer = "gpt2",
    .pre = "refact",
    .counts_ids = true,
    .finds_biases = true,
    .defaults = &defaults,
    .gguf_defaults = &gguf_defaults,
    .rows = {no_mixture, own, fr_size_keys, fr_head_keys, dense},
    .rope = fr_rope_whole_heads,
    .put_rope_factors = fr_rope_llama3_factors,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names},
                                       .rotary_rows = FR_ROWS_TO_PAIRS}};

/* -------------------------------------------------------------------------------------------------------- mixtures */

static const fr_model_spec sparse_defaults = {
    .trunk =
        {.vocab = 32000, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .scale = 1},
              .ffn = {.width = 11008, .activation = FR_SILU},
              .experts = {.count = 8,
                          .top_k = 2,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SOFTMAX,
                          .norm_top_k = true,
                          .routed_scaling = 1.0F}},
    .mixture = {.shared_by_count = true, .normalizes = true, .as_wide = true}};

static const fr_model_spec sparse_gguf_defaults = {
    .trunk = {.rope = {{.neox = true}}},
    .layer =
        {.ffn = {.activation = FR_SILU},
         .experts = {.activation = FR_SILU, .scoring = FR_SCORING_SOFTMAX, .norm_top_k = true, .routed_scaling = 1.0F}},
    .mixture = {.shared_by_count = true, .normalizes = true, .as_wide = true}};

static fr_status read_mixture(const fr_source *source, fr_model_spec *s) {
    size_t *shared = &s->mixture.shared;
    FR_TRY(fr_mixture_read(source, s));
    if (source->gguf) return fr_gguf_size(source->gguf, ".expert_shared_feed_forward_length", 0, 1 << 22, 0, shared);
    return fr_json_size(source->text, "shared_intermediate_size", 0, 1 << 22, 0, source->where, shared);
}

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    size_t shared = fr_spec_layer(s, 0)->ffn.width;
    (void)mtp_layers;
    (void)where;
    fr_mixture_put_counts(s, w);
    if (shared) fr_gguf_put_u32(w, ".expert_shared_feed_forward_length", (uint32_t)shared);
    return FR_OK;
}

static const fr_config_part mixture = {.read = read_mixture, .put = put_mixture};
static const fr_config_row mixtures[] = {FR_PART(mixture), {0}};

#define SPARSE "block_sparse_moe."
static const fr_tensor_name sparse_names[] = {
    FR_MATRIX(fr_layer, experts.router, EXPERTS, HIDDEN, SPARSE "router.layer.weight", "ffn_gate_inp.weight"),
    FR_NAMED(fr_layer, experts.gate, FR_SLOT_EXPERTS_PARTS, EXPERT_FFN, HIDDEN, SPARSE "input_linear.weight", NULL),
    FR_EXPERTS(fr_layer, experts.gate, EXPERT_FFN, HIDDEN, NULL, "ffn_gate_exps.weight"),
    FR_EXPERTS(fr_layer, experts.up, EXPERT_FFN, HIDDEN, NULL, "ffn_up_exps.weight"),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, SPARSE "output_linear.weight", "ffn_down_exps.weight"),
    FR_NAMED(fr_layer, ffn.gate_up, FR_SLOT_PARTS, FFN, HIDDEN, "shared_mlp.input_linear.weight", NULL,
             .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, NULL, "ffn_gate_shexp.weight", .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, NULL, "ffn_up_shexp.weight", .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "shared_mlp.output_linear.weight", "ffn_down_shexp.weight",
              .needs = FR_IF_SHARED),
    {0},
};

const fr_family fr_family_granite_moe = {
    .architectures = (const char *const[]){"GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM", "granitemoe", NULL},
    .gguf = "granitemoe",
    .tokenizer = "gpt2",
    .pre = "refact",
    .counts_ids = true,
    .finds_biases = true,
    .defaults = &sparse_defaults,
    .gguf_defaults = &sparse_gguf_defaults,
    .rows = {own, fr_size_keys, fr_head_keys, mixtures},
    .rope = fr_rope_whole_heads,
    .shape = fr_mixture_behind_leading,
    .put_rope_factors = fr_rope_llama3_factors,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, sparse_names},
                                       .rotary_rows = FR_ROWS_TO_PAIRS}};
