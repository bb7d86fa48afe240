/* Gemma 4, text: the E-series, dense models and mixtures of experts, and their assistants. config.json of
 * Gemma4ForCausalLM, Gemma4ForConditionalGeneration and Gemma4Unified... (the 12B), and for an assistant the
 * text_config of Gemma4AssistantForCausalLM; GGUF "gemma4". Source: the published checkpoints and transformers 5.17,
 * models gemma4, gemma4_assistant, gemma4_unified; for GGUF github.com/ggml-org/llama.cpp,
 * gguf-py/gguf/tensor_mapping.py. The layers are made by gemma4_layers.c. */
#include "src/engine/families/gemma4_layers.h"

#include "base/error.h"

/* The defaults of Gemma4TextConfig. */
static const fr_model_spec text = {
    .trunk = {.vocab = 262144,
              .hidden = 2304,
              .layers = 30,
              .context_limit = 131072,
              .ple_width = 256,
              .eps = 1e-6F,
              .ropes = FR_LAYER_KINDS,
              .rope = {[FR_SLIDING] = {.dims = 256, .neox = true, .theta = 1e4},
                       [FR_FULL] =
                           {.kind = FR_ROPE_PROPORTIONAL, .dims = 512, .neox = true, .theta = 1e6, .partial = 0.25}}},
    .layer = {.attention = {.heads = 8, .kv_heads = 4, .window = 512, .qk_norm = true, .v_norm = true, .scale = 1.0F},
              .ffn = {.width = 9216, .activation = FR_GELU},
              .experts = {.activation = FR_GELU, .norm_top_k = true, .routed_scaling = 1.0F, .parallel = true}},
    .kinds = {.every = 6, .required = true}};

/* ---------------------------------------------------------------------------------------------------- configuration */

static fr_status put_kinds(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    if (s->rope[FR_FULL].factor != 1.0)
        return fr_fail(FR_INPUT, "%s: its rotary positions have a factor that GGUF has no key for", where);
    fr_gguf_put_array(w, ".attention.sliding_window_pattern", FR_GGUF_BOOL, s->layers);
    for (size_t i = 0; i < s->layers; i++) fr_gguf_add_bool(w, s->layer[i].attention.rope == FR_SLIDING);
    return FR_OK;
}

/* Sets the defaults of Gemma4UnifiedTextConfig that differ from Gemma 4's others. */
static fr_status be_unified(const fr_source *source, fr_model_spec *s) {
    (void)source;
    s->trunk.context_limit = 262144;
    s->trunk.ple_width = 0;
    s->layer.attention.window = 1024;
    s->layer.attention.sees_block = true;
    return FR_OK;
}

/* Sets the defaults of GGUF: there are no per-layer embeddings, and the heads of sliding layers are like those of full
 * layers. */
static fr_status be_gguf(const fr_source *source, fr_model_spec *s) {
    if (!source->gguf) return FR_OK;
    s->trunk.ple_width = s->trunk.rope[FR_SLIDING].dims = 0;
    return FR_OK;
}

static const fr_config_part kinds = {.put = put_kinds}, as_unified = {.read = be_unified}, as_gguf = {.read = be_gguf};
static const fr_config_row of_12b[] = {FR_PART(as_unified), {0}};

static const fr_config_row own[] = {FR_PART(as_gguf),
                                    FR_ONLY("hidden_activation", "gelu_pytorch_tanh"),
                                    FR_WITHOUT("attention_bias"),
                                    FR_ONLY("use_bidirectional_attention", "vision"),
                                    FR_FLAG(layer.attention.k_eq_v, "attention_k_eq_v", NULL),
                                    {0}};

static const fr_config_row sizes[] = {
    FR_SIZE(trunk.vocab, "vocab_size", NULL, 1, 1 << 24),
    FR_SIZE(trunk.layers, "num_hidden_layers", ".block_count", 1, FR_LAYERS_MAX, .required = true),
    FR_SIZE(trunk.context_limit, "max_position_embeddings", ".context_length", 1, 1 << 24, .required = true),
    FR_SIZE(trunk.hidden, "hidden_size", ".embedding_length", 1, 1 << 17, .required = true),
    FR_EACH(layer.ffn.width, "intermediate_size", ".feed_forward_length", 1, 1 << 22, .required = true),
    FR_EACH(layer.attention.heads, "num_attention_heads", ".attention.head_count", 1, 4096, .required = true),
    FR_EACH(layer.attention.kv_heads, "num_key_value_heads", ".attention.head_count_kv", 1, 4096, .required = true),
    FR_REAL(trunk.rope[FR_FULL].theta, NULL, ".rope.freq_base", 1, 1e12, .required = true),
    FR_REAL(trunk.rope[FR_SLIDING].theta, NULL, ".rope.freq_base_swa", 1, 1e12),
    FR_REAL(trunk.eps, "rms_norm_eps", ".attention.layer_norm_rms_epsilon", 0, 1, .required = true),
    FR_REAL(trunk.softcap, "final_logit_softcapping", ".final_logit_softcapping", 0, 1e6),
    FR_SIZE(layer.attention.window, "sliding_window", ".attention.sliding_window", 1, 1 << 24, .required = true),
    FR_SIZE(borrowers, "num_kv_shared_layers", ".attention.shared_kv_layers", 0, FR_LAYERS_MAX),
    FR_SIZE(trunk.ple_width, "hidden_size_per_layer_input", ".embedding_length_per_layer_input", 0, 1 << 16),
    FR_SIZE(trunk.ple_pad, "pad_token_id", NULL, 0, 1 << 24, .null_is_none = true),
    FR_PART(kinds),
    FR_SIZE(layer.experts.count, "num_experts", ".expert_count", 0, 4096, .sparse = true),
    FR_SIZE(layer.experts.top_k, "top_k_experts", ".expert_used_count", 0, 4096, .sparse = true),
    FR_SIZE(layer.experts.width, "moe_intermediate_size", ".expert_feed_forward_length", 0, 1 << 20, .sparse = true),
    FR_SIZE(trunk.rope[FR_FULL].dims, "global_head_dim", ".attention.key_length", 2, 4096, .required = true),
    FR_SAME(trunk.rope[FR_FULL].dims, ".attention.value_length"),
    FR_SAME(trunk.rope[FR_FULL].dims, ".rope.dimension_count"),
    FR_SIZE(trunk.rope[FR_SLIDING].dims, "head_dim", ".attention.key_length_swa", 2, 4096,
            .like = offsetof(fr_model_spec, trunk.rope[FR_FULL].dims)),
    FR_SAME(trunk.rope[FR_SLIDING].dims, ".attention.value_length_swa"),
    FR_SAME(trunk.rope[FR_SLIDING].dims, ".rope.dimension_count_swa"),
    {0}};

/* ------------------------------------------------------------------------------------------------------------ names */

static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight", .needs = FR_IF_EMBEDS),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "norm.weight", "output_norm.weight"),
    FR_TABLE(fr_trunk, ple_table, VOCAB, TOKENS, "embed_tokens_per_layer.weight", "per_layer_token_embd.weight",
             .needs = FR_IF_PLE),
    FR_MATRIX(fr_trunk, ple_projection, TOKENS, HIDDEN, "per_layer_model_projection.weight",
              "per_layer_model_proj.weight", .needs = FR_IF_PLE),
    FR_VECTOR(fr_trunk, ple_norm, TOKEN, "per_layer_projection_norm.weight", "per_layer_proj_norm.weight",
              .needs = FR_IF_PLE),
    {0},
};

static const fr_tensor_name layer_names[] = {
    FR_MATRIX(fr_layer, experts.router, EXPERTS, HIDDEN, "router.proj.weight", "ffn_gate_inp.weight",
              .needs = FR_IF_EXPERTS),
    FR_VECTOR(fr_layer, experts.router_scale, HIDDEN, "router.scale", "ffn_gate_inp.scale", .needs = FR_IF_EXPERTS),
    FR_VECTOR(fr_layer, experts.pre_norm, HIDDEN, "pre_feedforward_layernorm_2.weight", "pre_ffw_norm_2.weight",
              .needs = FR_IF_EXPERTS),
    FR_NAMED(fr_layer, experts.gate, FR_SLOT_EXPERTS_PARTS, EXPERT_FFN, HIDDEN, "experts.gate_up_proj",
             "ffn_gate_up_exps.weight", .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, experts.gate, EXPERT_FFN, HIDDEN, NULL, "ffn_gate_exps.weight", .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, experts.up, EXPERT_FFN, HIDDEN, NULL, "ffn_up_exps.weight", .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, "experts.down_proj", "ffn_down_exps.weight",
               .needs = FR_IF_EXPERTS),
    FR_VECTOR(fr_layer, experts.scale, EXPERTS, "router.per_expert_scale", "ffn_down_exps.scale",
              .needs = FR_IF_EXPERTS),
    FR_VECTOR(fr_layer, experts.post_dense_norm, HIDDEN, "post_feedforward_layernorm_1.weight",
              "post_ffw_norm_1.weight", .needs = FR_IF_EXPERTS),
    FR_VECTOR(fr_layer, experts.post_norm, HIDDEN, "post_feedforward_layernorm_2.weight", "post_ffw_norm_2.weight",
              .needs = FR_IF_EXPERTS),
    FR_VECTOR(fr_layer, scalar, ONE, "layer_scalar", "layer_output_scale.weight"),
    FR_MATRIX(fr_layer, ple.gate, TOKEN, HIDDEN, "per_layer_input_gate.weight", "inp_gate.weight", .needs = FR_IF_PLE),
    FR_MATRIX(fr_layer, ple.out, HIDDEN, TOKEN, "per_layer_projection.weight", "proj.weight", .needs = FR_IF_PLE),
    FR_VECTOR(fr_layer, ple.norm, HIDDEN, "post_per_layer_input_norm.weight", "post_norm.weight", .needs = FR_IF_PLE),
    {0},
};

/* Tensors that nothing reads. They are towers for pictures and sound; projections of layers that use another layer's
 * keys and values; an assistant's centroids, if the assistant scores all ids; and the angles of full layers, if there
 * are no full layers. */
static const char *const extras[] = {"*vision*",
                                     "*audio*",
                                     "*.self_attn.[kv]_proj.weight",
                                     "*.self_attn.k_norm.weight",
                                     "blk.*.attn_[kv].weight",
                                     "blk.*.attn_k_norm.weight",
                                     "masked_embedding.centroids.weight",
                                     "masked_embedding.token_ordering",
                                     "masked_embd_centroids.weight",
                                     "masked_embd_ordering",
                                     "mtp[._]centroids.weight",
                                     "mtp[._]token_ordering.weight",
                                     "rope_freqs.weight",
                                     NULL};

static const fr_tensor_naming names = {.model = model_names,
                                       .layer = {fr_attention_names, fr_sandwich_norm_names, fr_ffn_names, layer_names},
                                       .extras = extras};

const fr_family fr_family_gemma4 = {
    .architectures = (const char *const[]){"Gemma4ForCausalLM", "Gemma4ForConditionalGeneration", "gemma4", NULL},
    .gguf = "gemma4",
    .tokenizer = "gemma4",
    .defaults = &text,
    .rows = {own, sizes},
    .rope = fr_gemma4_rope,
    .scales_embedding = true,
    .picture = "<|image|>",
    .sees = true,
    .shape = fr_gemma4_layers,
    .put_rope_factors = fr_gemma4_put_rope_factors,
    .names = &names};

const fr_family fr_family_gemma4_unified = {
    .architectures = (const char *const[]){"Gemma4UnifiedForCausalLM", "Gemma4UnifiedForConditionalGeneration", NULL},
    .gguf = "gemma4",
    .tokenizer = "gemma4",
    .defaults = &text,
    .rows = {of_12b, own, sizes},
    .rope = fr_gemma4_rope,
    .scales_embedding = true,
    .picture = "<|image|>",
    .sees = true,
    .shape = fr_gemma4_layers,
    .put_rope_factors = fr_gemma4_put_rope_factors,
    .names = &names};
