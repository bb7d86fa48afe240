/* Granite, in three forms. Dense: config.json of GraniteForCausalLM, GGUF "granite". Mixtures: GraniteMoeForCausalLM
 * and GraniteMoeSharedForCausalLM, GGUF "granitemoe". With sliding windows: GraniteSWAForCausalLM and
 * GraniteMoeSWAForCausalLM, GGUF "granite_swa". The hybrids of version 4 are in granite_hybrid.c.
 *
 * Source: the published checkpoints and transformers 5.24, models granite, granitemoe, granitemoeshared, granite_swa
 * and granitemoe_swa; for GGUF github.com/ggml-org/llama.cpp, conversion/granite.py, src/models/granite.cpp and
 * granite-swa.cpp. There are four multipliers. In mixtures, gate and up are one tensor; GGUF divides this tensor,
 * except in models with windows. In models with windows, heads have sinks, and each layer may have another rotary base
 * or no rotation. GGUF has one base for all rotated layers. */
#include "base/error.h"
#include "src/engine/families/mixture.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 32000, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .scale = 1}, .ffn = {.width = 11008, .activation = FR_SILU}}};

/* If GGUF has no key for the scale of scores, the usual scale is used. */
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

/* Reads GGUF's flag that says whether heads have rotary positions. If there is no flag, they have them. */
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

/* -------------------------------------------------------------------------------------------------- sliding windows */

static const fr_model_spec sliding = {
    .trunk =
        {.vocab = 100352, .hidden = 2560, .layers = 24, .context_limit = 8192, .eps = 1e-5F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 20, .kv_heads = 4, .window = 128, .scale = 1, .sinks = true},
              .ffn = {.width = 8192, .activation = FR_SILU}}};

static const fr_model_spec sliding_sparse = {
    .trunk =
        {.vocab = 32000, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .window = 128, .scale = 1, .sinks = true},
              .ffn = {.width = 11008, .activation = FR_SILU},
              .experts = {.count = 8,
                          .top_k = 2,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SOFTMAX,
                          .norm_top_k = true,
                          .routed_scaling = 1}},
    .mixture = {.shared_by_count = true, .normalizes = true, .as_wide = true}};

static const fr_model_spec sliding_gguf = {.trunk = {.rope = {{.neox = true}}},
                                           .layer = {.attention = {.sinks = true}, .ffn = {.activation = FR_SILU}},
                                           .kinds = {.required = true}};

static const fr_model_spec sliding_sparse_gguf = {
    .trunk = {.rope = {{.neox = true}}},
    .layer =
        {.attention = {.sinks = true},
         .ffn = {.activation = FR_SILU},
         .experts = {.activation = FR_SILU, .scoring = FR_SCORING_SOFTMAX, .norm_top_k = true, .routed_scaling = 1}},
    .mixture = {.shared_by_count = true, .normalizes = true, .as_wide = true},
    .kinds = {.required = true}};

static const char rotated_key[] = ".attention.rope_pattern";

/* Writes for each layer whether it slides; readers require this list. If some layers don't rotate heads, also writes
 * for each layer whether it rotates heads. */
static fr_status put_patterns(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    bool all_rotate = true;
    (void)mtp_layers;
    if (s->ropes > 1)
        return fr_fail(FR_INPUT, "%s: GGUF has one base for all layers, layer_rope_theta has several", where);
    fr_gguf_put_array(w, ".attention.sliding_window_pattern", FR_GGUF_BOOL, s->layers);
    for (size_t i = 0; i < s->layers; i++) fr_gguf_add_bool(w, s->layer[i].attention.window > 0);
    for (size_t i = 0; i < s->layers; i++) all_rotate &= !s->layer[i].attention.no_rope;
    if (all_rotate) return FR_OK;
    fr_gguf_put_array(w, rotated_key, FR_GGUF_BOOL, s->layers);
    for (size_t i = 0; i < s->layers; i++) fr_gguf_add_bool(w, !s->layer[i].attention.no_rope);
    return FR_OK;
}

static const fr_config_part patterns = {.put = put_patterns};
static const fr_config_row windows[] = {FR_SIZE(layer.attention.window, "sliding_window", ".attention.sliding_window",
                                                1, 1 << 24, .null_is_none = true, .required = true),
                                        FR_PART(patterns),
                                        {0}};
static const fr_config_row biased[] = {FR_FLAG(layer.ffn.biased, "mlp_bias", NULL), {0}};

/* Gives each layer the rotary form with the base that layer_rope_theta has for the layer. A base of 0 means that the
 * layer's heads are not rotated. */
static fr_status read_bases(const fr_source *source, fr_trunk_spec *trunk) {
    const json_t *bases = json_object_get(source->text, "layer_rope_theta");
    size_t forms = 0;
    if (!bases || json_is_null(bases)) return FR_OK;
    if (json_array_size(bases) != trunk->layers)
        return fr_fail(FR_INPUT, "%s: layer_rope_theta is no array of num_hidden_layers = %zu numbers", source->where,
                       trunk->layers);
    for (size_t i = 0; i < trunk->layers; i++) {
        const json_t *number = json_array_get(bases, i);
        double base = json_number_value(number);
        size_t form = 0;
        if (!json_is_number(number) || !(base == 0 || (base >= 1.001 && base <= 1e12)))
            return fr_fail(FR_INPUT, "%s: layer_rope_theta has for layer %zu neither 0 nor a base", source->where, i);
        trunk->layer[i].attention.no_rope = base == 0;
        if (base == 0) continue;
        while (form < forms && trunk->rope[form].theta != base) form++;
        if (form == FR_ROPES)
            return fr_fail(FR_UNBUILT, "%s: layer_rope_theta of more than %d different bases is not built",
                           source->where, FR_ROPES);
        trunk->rope[form] = trunk->rope[0];
        trunk->rope[form].theta = base;
        trunk->layer[i].attention.rope = form;
        if (form == forms) forms++;
    }
    trunk->ropes = forms ? forms : 1;
    return FR_OK;
}

/* Reads from GGUF which layers rotate heads. If the key is missing, all layers do. */
static fr_status read_rotated(const fr_source *source, fr_trunk_spec *trunk) {
    int64_t rotated[FR_LAYERS_MAX];
    FR_TRY(fr_gguf_ints(source->gguf, rotated_key, 0, 1, 1, trunk->layers, rotated));
    for (size_t i = 0; i < trunk->layers; i++) trunk->layer[i].attention.no_rope = !rotated[i];
    return FR_OK;
}

/* Makes the layers. For folders, the default is that the first layer is full, and every fourth layer after it. */
static fr_status sliding_shape(const fr_source *source, fr_model_spec *s) {
    const json_t *types = json_object_get(source->text, "layer_types");
    FR_TRY(s->layer.experts.count ? fr_mixture_behind_leading(source, s) : fr_layers_alike(source, s));
    FR_TRY(fr_layers_mark_kinds(source, s));
    if (source->gguf) return read_rotated(source, &s->trunk);
    for (size_t i = 0; i < s->trunk.layers && (!types || json_is_null(types)); i++)
        s->trunk.layer[i].attention.window = i % 4 ? s->layer.attention.window : 0;
    return read_bases(source, &s->trunk);
}

static const fr_tensor_name sink_names[] = {
    FR_VECTOR(fr_layer, attention.sinks, HEADS, "self_attn.sinks", "attn_sinks.weight", .needs = FR_IF_SINKS), {0}};

/* The names of mixtures with windows. In published folders a matrix has one of two names: the name that transformers
 * writes, or the name in mixtures without windows. llama.cpp writes the gate and up matrices of experts as one tensor;
 * files with two tensors are read too. */
static const fr_tensor_name swash_names[] = {
    FR_MATRIX(fr_layer, experts.router, EXPERTS, HIDDEN, SPARSE "router.weight", "ffn_gate_inp.weight"),
    FR_MATRIX(fr_layer, experts.router, EXPERTS, HIDDEN, SPARSE "router.layer.weight", "ffn_gate_inp.weight"),
    FR_NAMED(fr_layer, experts.gate, FR_SLOT_EXPERTS_PARTS, EXPERT_FFN, HIDDEN, SPARSE "experts.gate_up_proj",
             "ffn_gate_up_exps.weight"),
    FR_NAMED(fr_layer, experts.gate, FR_SLOT_EXPERTS_PARTS, EXPERT_FFN, HIDDEN, SPARSE "input_linear.weight",
             "ffn_gate_up_exps.weight"),
    FR_EXPERTS(fr_layer, experts.gate, EXPERT_FFN, HIDDEN, NULL, "ffn_gate_exps.weight"),
    FR_EXPERTS(fr_layer, experts.up, EXPERT_FFN, HIDDEN, NULL, "ffn_up_exps.weight"),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, SPARSE "experts.down_proj", "ffn_down_exps.weight"),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, SPARSE "output_linear.weight", "ffn_down_exps.weight"),
    FR_NAMED(fr_layer, ffn.gate_up, FR_SLOT_PARTS, FFN, HIDDEN, "shared_mlp.input_linear.weight", "ffn_up_shexp.weight",
             .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "shared_mlp.output_linear.weight", "ffn_down_shexp.weight",
              .needs = FR_IF_SHARED),
    {0},
};

const fr_family fr_family_granite_swa = {
    .architectures = (const char *const[]){"GraniteSWAForCausalLM", "granite_swa", NULL},
    .gguf = "granite_swa",
    .tokenizer = "gpt2",
    .pre = "refact",
    .counts_ids = true,
    .finds_biases = true,
    .defaults = &sliding,
    .gguf_defaults = &sliding_gguf,
    .rows = {windows, own, fr_size_keys, fr_head_keys, biased},
    .rope = fr_rope_whole_heads,
    .shape = sliding_shape,
    .put_rope_factors = fr_rope_llama3_factors,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, sink_names, fr_pre_norm_names, fr_ffn_names},
                                       .rotary_rows = FR_ROWS_TO_PAIRS}};

const fr_family fr_family_granite_moe_swa = {
    .architectures = (const char *const[]){"GraniteMoeSWAForCausalLM", "granite_swa", NULL},
    .gguf = "granite_swa",
    .gguf_with = ".expert_count",
    .tokenizer = "gpt2",
    .pre = "refact",
    .counts_ids = true,
    .finds_biases = true,
    .defaults = &sliding_sparse,
    .gguf_defaults = &sliding_sparse_gguf,
    .rows = {windows, own, fr_size_keys, fr_head_keys, mixtures},
    .rope = fr_rope_whole_heads,
    .shape = sliding_shape,
    .put_rope_factors = fr_rope_llama3_factors,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, sink_names, fr_pre_norm_names, swash_names},
                                       .rotary_rows = FR_ROWS_TO_PAIRS}};
