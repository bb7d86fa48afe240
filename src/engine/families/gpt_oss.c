/* gpt-oss, 20b and 120b: config.json of GptOssForCausalLM, GGUF "gpt-oss". Source: the published checkpoints and
 * transformers 5.24, model gpt_oss, which reads swiglu_limit and swiglu_alpha; for GGUF github.com/ggml-org/llama.cpp,
 * conversion/gpt_oss.py and src/models/openai-moe.cpp. Sliding and full layers alternate. Heads have sinks, and all
 * products have biases. llama.cpp truncates YaRN's ramp to whole numbers, and GGUF has no key for that. In published
 * models the ramp is not truncated, so it is not truncated for folders and for GGUF here. */
#include "base/error.h"
#include "src/engine/families/mixture.h"
#include "src/engine/families/rope_config.h"

/* LIMIT is the limit of the published models, which is the only one that llama.cpp has. */
#define LIMIT 7.0F

static const fr_model_spec defaults = {.trunk = {.vocab = 201088,
                                                 .hidden = 2880,
                                                 .layers = 36,
                                                 .context_limit = 131072,
                                                 .eps = 1e-5F,
                                                 .rope = {{.neox = true, .theta = 150000, .untruncated = true}}},
                                       .layer = {.attention = {.heads = 64,
                                                               .kv_heads = 8,
                                                               .head_dim = 64,
                                                               .window = 128,
                                                               .sinks = true,
                                                               .qkv_bias = true,
                                                               .o_bias = true},
                                                 .ffn = {.width = 2880},
                                                 .experts = {.count = 128,
                                                             .top_k = 4,
                                                             .width = 2880,
                                                             .activation = FR_CLAMPED_SWIGLU,
                                                             .limit = LIMIT,
                                                             .scoring = FR_SCORING_SOFTMAX,
                                                             .norm_top_k = true,
                                                             .routed_scaling = 1,
                                                             .biased = true}},
                                       .kinds = {.every = 2}};

/* Reads the experts' activation. A folder may give its limit. Its factor must be that of the published models. */
static fr_status read_swiglu(const fr_source *source, fr_model_spec *spec) {
    double limit, alpha;
    if (source->gguf) return FR_OK;
    FR_TRY(fr_json_real(source->text, "swiglu_limit", 1e-3, 1e6, (double)LIMIT, source->where, &limit));
    FR_TRY(fr_json_real(source->text, "swiglu_alpha", -1e6, 1e6, 1.702, source->where, &alpha));
    spec->layer.experts.limit = (float)limit;
    return alpha == 1.702 ? FR_OK : fr_fail(FR_UNBUILT, "%s: swiglu_alpha %g is not built", source->where, alpha);
}

static fr_status put_swiglu(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer) {
    (void)mtp_layers, (void)writer;
    if (fr_spec_experts(spec)->limit == LIMIT) return FR_OK;
    return fr_fail(FR_INPUT, "%s: GGUF has no key for its swiglu_limit", where);
}

static const fr_config_part swiglu = {.read = read_swiglu, .put = put_swiglu};

static const fr_config_row own[] = {
    FR_PART(swiglu),
    FR_ONLY("hidden_act", "silu"),
    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
    FR_SIZE(layer.attention.window, "sliding_window", ".attention.sliding_window", 1, 1 << 24, .required = true),
    FR_NUMBER(FR_ROW_SIZE, layer.experts.count, "num_experts", NULL, 1, 4096), /* means num_local_experts */
    FR_SIZE(layer.experts.count, "num_local_experts", ".expert_count", 1, 4096, .required = true),
    FR_SIZE(layer.experts.top_k, "num_experts_per_tok", ".expert_used_count", 1, 4096, .required = true),
    FR_SIZE(layer.experts.width, "intermediate_size", ".expert_feed_forward_length", 1, 1 << 22, .required = true),
    {0}};

static const fr_tensor_name experts[] = {
    FR_VECTOR(fr_layer, attention.sinks, HEADS, "self_attn.sinks", "attn_sinks.weight", .needs = FR_IF_SINKS),
    FR_MATRIX(fr_layer, experts.router, EXPERTS, HIDDEN, "mlp.router.weight", "ffn_gate_inp.weight"),
    FR_VECTOR(fr_layer, experts.product_bias, EXPERTS, "mlp.router.bias", "ffn_gate_inp.bias"),
    FR_NAMED(fr_layer, experts.gate, FR_SLOT_EXPERTS_PARTS, EXPERT_FFN, HIDDEN, "mlp.experts.gate_up_proj_blocks", NULL,
             .layout = FR_LAYOUT_MX),
    FR_NAMED(fr_layer, experts.gate, FR_SLOT_EXPERTS_PARTS, EXPERT_FFN, HIDDEN, "mlp.experts.gate_up_proj", NULL,
             .layout = FR_LAYOUT_COLUMNS),
    FR_EXPERTS(fr_layer, experts.gate, EXPERT_FFN, HIDDEN, "mlp.experts.*.gate_proj.weight", "ffn_gate_exps.weight"),
    FR_EXPERTS(fr_layer, experts.up, EXPERT_FFN, HIDDEN, "mlp.experts.*.up_proj.weight", "ffn_up_exps.weight"),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, "mlp.experts.down_proj_blocks", "ffn_down_exps.weight",
               .layout = FR_LAYOUT_MX),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, "mlp.experts.down_proj", "ffn_down_exps.weight",
               .layout = FR_LAYOUT_COLUMNS),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, "mlp.experts.*.down_proj.weight", "ffn_down_exps.weight"),
    FR_NAMED(fr_layer, experts.gate_bias, FR_SLOT_EXPERTS_VECTOR_PARTS, EXPERT_FFN, ONE,
             "mlp.experts.gate_up_proj_bias", NULL),
    FR_NAMED(fr_layer, experts.gate_bias, FR_SLOT_EXPERTS_VECTORS, EXPERT_FFN, ONE, "mlp.experts.gate_proj.bias",
             "ffn_gate_exps.bias"),
    FR_NAMED(fr_layer, experts.up_bias, FR_SLOT_EXPERTS_VECTORS, EXPERT_FFN, ONE, "mlp.experts.up_proj.bias",
             "ffn_up_exps.bias"),
    FR_NAMED(fr_layer, experts.down_bias, FR_SLOT_EXPERTS_VECTORS, HIDDEN, ONE, "mlp.experts.down_proj_bias",
             "ffn_down_exps.bias"),
    FR_NAMED(fr_layer, experts.down_bias, FR_SLOT_EXPERTS_VECTORS, HIDDEN, ONE, "mlp.experts.down_proj.bias",
             "ffn_down_exps.bias"),
    {0}};

/* Reads rotary positions. If a folder has no keys for them, the scaling of the published models is used. */
static fr_status rope(const fr_source *source, fr_model_spec *spec) {
    fr_rope_spec *rope = &spec->trunk.rope[0];
    const json_t *said = NULL;
    const char *key;
    FR_TRY(fr_rope_whole_heads(source, spec));
    if (!source->gguf) FR_TRY(fr_rope_parameters(source->text, source->where, &said, &key));
    if (source->gguf || said) return FR_OK;
    rope->kind = FR_ROPE_YARN;
    rope->factor = rope->beta_fast = 32;
    rope->beta_slow = 1;
    rope->original_context = 4096;
    rope->untruncated = true;
    rope->attention_factor = (float)fr_rope_yarn_magnitude(rope->factor, 1);
    return FR_OK;
}

static fr_status shape(const fr_source *source, fr_model_spec *spec) {
    FR_TRY(fr_mixture_layers(source, spec, NULL));
    return fr_layers_mark_kinds(source, spec);
}

const fr_family fr_family_gpt_oss = {
    .architectures = (const char *const[]){"GptOssForCausalLM", "gpt-oss", NULL},
    .gguf = "gpt-oss",
    .tokenizer = "gpt2",
    .pre = "gpt-4o",
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = rope,
    .shape = shape,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_post_norm_names, experts}}};
