/* Granite 4's hybrids and Bamba: config.json of GraniteMoeHybridForCausalLM and BambaForCausalLM; GGUF "granitehybrid".
 * Hybrids in which all layers have attention (4.0 micro, 1b, 350m) are "granite" or "granitemoe" in GGUF. Source: the
 * published checkpoints and transformers 5.24, models granitemoehybrid and bamba; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/granite.py and src/models/granite-hybrid.cpp. A layer has attention or
 * Mamba-2, and then a feed-forward. In Granite, this may be a mixture together with a shared feed-forward. Granite has
 * four multipliers, and its heads are rotated only if config.json says so. Bamba has no multipliers, and half of each
 * head is rotated. In GGUF, layers of Mamba-2 have no key/value heads. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/families/mamba_config.h"
#include "src/engine/families/mixture.h"
#include "src/engine/families/rope_config.h"

/* ---------------------------------------------------------------------------------------------------------- Granite */

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 32000, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {
        .attention = {.heads = 32, .scale = 1},
        .mamba =
            {.groups = 1, .heads = 128, .state_dim = 256, .conv_kernel = 4, .conv_bias = true, .step_max = INFINITY},
        .ffn = {.width = 11008, .activation = FR_SILU},
        .experts = {.count = 8,
                    .top_k = 2,
                    .activation = FR_SILU,
                    .scoring = FR_SCORING_SOFTMAX,
                    .norm_top_k = true,
                    .routed_scaling = 1.0F}}};

/* If GGUF has no key for the scale of scores, the usual scale is used. */
static const fr_model_spec gguf_defaults = {
    .trunk = {.rope = {{.neox = true}}},
    .layer = {
        .mamba = {.step_max = INFINITY},
        .ffn = {.activation = FR_SILU},
        .experts = {.activation = FR_SILU, .scoring = FR_SCORING_SOFTMAX, .norm_top_k = true, .routed_scaling = 1.0F}}};

/* Reads the width of all heads of Mamba-2 together, and what is computed from it. If all layers have attention, nothing
 * uses this width, so a file may have any number for it. */
static fr_status read_inner(const fr_source *source, fr_model_spec *s) {
    size_t expand;
    if (!source->gguf) {
        FR_TRY(fr_json_size(source->text, "mamba_expand", 1, 1024, 2, source->where, &expand));
        FR_TRY(fr_mamba_head_dim(source, "mamba_d_head", expand * s->trunk.hidden, s));
        FR_TRY(fr_mamba_limits(source, "time_step_limit", s));
    }
    return fr_mamba_check(source, s, true);
}

static bool has_mamba(const fr_trunk_spec *s) {
    for (size_t i = 0; i < s->layers; i++)
        if (s->layer[i].mixer == FR_MIXER_MAMBA) return true;
    return false;
}

/* Writes the keys of Mamba-2, if any layer has it. */
static fr_status put_states(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_mamba_spec *m = &s->mtp.mamba;
    if (!has_mamba(s)) return FR_OK;
    FR_TRY(fr_mamba_put_no_limits(m, where));
    fr_gguf_put_u32(w, ".ssm.time_step_rank", (uint32_t)m->heads);
    fr_gguf_put_u32(w, ".ssm.group_count", (uint32_t)m->groups);
    fr_gguf_put_u32(w, ".ssm.state_size", (uint32_t)m->state_dim);
    fr_gguf_put_u32(w, ".ssm.conv_kernel", (uint32_t)m->conv_kernel);
    return fr_mamba_part.put(s, mtp_layers, where, w);
}

/* Reads the sizes of Mamba-2 and its flags. */
static fr_status read_states(const fr_source *source, fr_model_spec *s) {
    fr_mamba_spec *m = &s->layer.mamba;
    const struct {
        const char *json, *gguf;
        int64_t high;
        size_t *size;
    } sizes[] = {{"mamba_n_heads", ".ssm.time_step_rank", 4096, &m->heads},
                 {"mamba_n_groups", ".ssm.group_count", 4096, &m->groups},
                 {"mamba_d_state", ".ssm.state_size", 4096, &m->state_dim},
                 {"mamba_d_conv", ".ssm.conv_kernel", FR_CONV_KERNEL_MAX, &m->conv_kernel}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t *size = sizes[i].size;
        if (source->gguf)
            FR_TRY(fr_gguf_size(source->gguf, sizes[i].gguf, 1, sizes[i].high, FR_GGUF_REQUIRED, size));
        else
            FR_TRY(fr_json_size(source->text, sizes[i].json, 1, sizes[i].high, (int64_t)*size, source->where, size));
    }
    if (source->gguf) FR_TRY(fr_mamba_part.read(source, s));
    if (source->gguf) return FR_OK;
    FR_TRY(fr_json_bool(source->text, "mamba_conv_bias", true, source->where, &m->conv_bias));
    return fr_json_bool(source->text, "mamba_proj_bias", false, source->where, &m->bias);
}

static fr_status read_mixture(const fr_source *source, fr_model_spec *s) {
    const char *count = "num_local_experts";
    size_t experts;
    if (source->gguf) {
        FR_TRY(fr_gguf_size(source->gguf, ".expert_count", 0, 4096, 0, &experts));
    } else {
        FR_TRY(fr_json_size(source->text, count, 0, 4096, 8, source->where, &experts));
        FR_TRY(fr_json_size(source->text, "shared_intermediate_size", 1, 1 << 22, 1024, source->where,
                            &s->mixture.shared));
    }
    size_t shared = s->mixture.shared;
    if (experts == 0) {
        s->layer.experts = (fr_experts_spec){0};
        if (!source->gguf) s->layer.ffn.width = shared;
        return FR_OK;
    }
    s->mixture = (fr_mixture_keys){.shared_by_count = true, .normalizes = true, .as_wide = true};
    FR_TRY(fr_mixture_read(source, s));
    s->mixture.shared = shared;
    if (!source->gguf) return FR_OK;
    return fr_gguf_size(source->gguf, ".expert_shared_feed_forward_length", 0, 1 << 22, 0, &s->mixture.shared);
}

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)where;
    if (!fr_spec_experts(s)) return FR_OK;
    fr_mixture_put_counts(s, w);
    fr_gguf_put_u32(w, ".expert_shared_feed_forward_length", (uint32_t)fr_spec_layer(s, 0)->ffn.width);
    return FR_OK;
}

/* Reads whether heads are rotated. GGUF has a flag for this. If the flag is missing, heads are rotated. */
static fr_status read_uses_rope(const fr_source *source, fr_model_spec *s) {
    const char *positions;
    bool uses_rope = true;
    if (source->gguf) {
        FR_TRY(fr_gguf_bool(source->gguf, ".rope.scaling.finetuned", true, &uses_rope));
    } else {
        FR_TRY(fr_json_text(source->text, "position_embedding_type", source->where, &positions));
        uses_rope = positions && strcmp(positions, "rope") == 0;
    }
    s->layer.attention.no_rope = !uses_rope;
    return FR_OK;
}

static fr_status put_uses_rope(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    bool rotates = !fr_spec_attention(s)->no_rope;
    (void)mtp_layers;
    (void)where;
    if (has_mamba(s) || !rotates) fr_gguf_put_bool(w, ".rope.scaling.finetuned", rotates);
    return FR_OK;
}

static const fr_config_part states_part = {.read = read_states, .put = put_states},
                            mixture_part = {.read = read_mixture, .put = put_mixture},
                            uses_rope = {.read = read_uses_rope, .put = put_uses_rope};

#define SIZES                                                                                                      \
    FR_ONLY("hidden_act", "silu"), FR_SIZE(trunk.vocab, "vocab_size", NULL, 1, 1 << 24),                           \
        FR_SIZE(trunk.layers, "num_hidden_layers", ".block_count", 1, FR_LAYERS_MAX, .required = true),            \
        FR_SIZE(trunk.context_limit, "max_position_embeddings", ".context_length", 1, 1 << 24, .required = true),  \
        FR_SIZE(trunk.hidden, "hidden_size", ".embedding_length", 1, 1 << 17, .required = true),                   \
        FR_SIZE(layer.ffn.width, "intermediate_size", ".feed_forward_length", 1, 1 << 22, .required = true),       \
        FR_SIZE(layer.attention.heads, "num_attention_heads", ".attention.head_count", 1, 4096, .required = true), \
        FR_PART(fr_mamba_kv_heads_part), FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),                \
        FR_FLAG(layer.attention.o_bias, "attention_bias", NULL)

static const fr_config_row own[] = {SIZES,
                                    FR_REAL(layer.attention.scale, "attention_multiplier", ".attention.scale", 0, 1e6),
                                    FR_REAL(trunk.embedding_scale, "embedding_multiplier", ".embedding_scale", 0, 1e6),
                                    FR_REAL(trunk.residual_scale, "residual_multiplier", ".residual_scale", 0, 1e6),
                                    FR_DIVISOR(trunk.logit_scale, "logits_scaling", ".logit_scale", 0, 1e6),
                                    {0}};
static const fr_config_row parts[] = {FR_PART(states_part), FR_PART(mixture_part), FR_PART(uses_rope), {0}};

/* ----------------------------------------------------------------------------------------------------------- layers */

/* Reads whether each layer has attention. config.json has a list of words (under another key if transformers has saved
 * it), or Bamba's list of layer numbers. GGUF has the number of key/value heads of each layer. If there is no list, all
 * layers are Mamba-2. */
static fr_status kinds_from_json(const fr_source *source, const fr_model_spec *s, bool *attends) {
    const json_t *types = json_object_get(source->text, "layer_types");
    const json_t *numbers = json_object_get(source->text, "attn_layer_indices"), *number;
    size_t i;
    if (!types || json_is_null(types)) types = json_object_get(source->text, "layers_block_type");
    bool listed = types && !json_is_null(types);
    if (listed && json_array_size(types) != s->trunk.layers)
        return fr_fail(FR_INPUT, "%s: layer_types is no array of %zu kinds", source->where, s->trunk.layers);
    for (i = 0; i < s->trunk.layers; i++) {
        const char *word = listed ? json_string_value(json_array_get(types, i)) : "mamba";
        attends[i] = word && (strcmp(word, "attention") == 0 || strcmp(word, "full_attention") == 0);
        if (!attends[i] && (!word || (strcmp(word, "mamba") != 0 && strcmp(word, "linear_attention") != 0)))
            return fr_fail(FR_UNBUILT, "%s: layer_types has \"%.40s\" for layer %zu, expected mamba or attention",
                           source->where, word ? word : "", i);
    }
    if (listed || !numbers || json_is_null(numbers)) return FR_OK;
    if (!json_is_array(numbers)) return fr_fail(FR_INPUT, "%s: attn_layer_indices is no list", source->where);
    json_array_foreach (numbers, i, number) {
        json_int_t layer = json_is_integer(number) ? json_integer_value(number) : -1;
        if (layer < 0 || (size_t)layer >= s->trunk.layers)
            return fr_fail(FR_INPUT, "%s: attn_layer_indices has something that is no layer's number", source->where);
        attends[layer] = true;
    }
    return FR_OK;
}

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    bool attends[FR_LAYERS_MAX];
    int64_t heads[FR_LAYERS_MAX];
    if (source->gguf) {
        s->layer.attention.qkv_bias = fr_source_layer_has(source, s, "attn_q.bias");
        s->layer.attention.o_bias = fr_source_layer_has(source, s, "attn_output.bias");
        s->layer.ffn.biased = fr_source_layer_has(source, s, "ffn_up.bias");
        FR_TRY(fr_mamba_gguf_kv_heads(source, s->trunk.layers, heads));
        for (size_t i = 0; i < s->trunk.layers; i++) attends[i] = heads[i] != 0;
    } else {
        FR_TRY(kinds_from_json(source, s, attends));
    }
    bool mamba = false;
    for (size_t i = 0; i < s->trunk.layers; i++) mamba |= !attends[i];
    if (mamba) FR_TRY(read_inner(source, s));
    FR_TRY(s->layer.experts.count ? fr_mixture_behind_leading(source, s) : fr_layers_alike(source, s));
    for (size_t i = 0; i < s->trunk.layers; i++)
        fr_mamba_set_mixer(&s->trunk.layer[i], attends[i] ? FR_MIXER_ATTENTION : FR_MIXER_MAMBA);
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ names */

#define SPARSE "block_sparse_moe."
static const fr_tensor_name granite_names[] = {
    FR_MATRIX(fr_layer, experts.router, EXPERTS, HIDDEN, SPARSE "router.layer.weight", "ffn_gate_inp.weight",
              .needs = FR_IF_EXPERTS),
    FR_NAMED(fr_layer, experts.gate, FR_SLOT_EXPERTS_PARTS, EXPERT_FFN, HIDDEN, SPARSE "input_linear.weight", NULL,
             .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, experts.gate, EXPERT_FFN, HIDDEN, NULL, "ffn_gate_exps.weight", .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, experts.up, EXPERT_FFN, HIDDEN, NULL, "ffn_up_exps.weight", .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, SPARSE "output_linear.weight", "ffn_down_exps.weight",
               .needs = FR_IF_EXPERTS),
    FR_NAMED(fr_layer, ffn.gate_up, FR_SLOT_PARTS, FFN, HIDDEN, "shared_mlp.input_linear.weight", NULL,
             .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, NULL, "ffn_gate_shexp.weight", .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, NULL, "ffn_up_shexp.weight", .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "shared_mlp.output_linear.weight", "ffn_down_shexp.weight",
              .needs = FR_IF_SHARED),
    FR_NAMED(fr_layer, ffn.gate_up, FR_SLOT_PARTS, FFN, HIDDEN, "shared_mlp.input_linear.weight", NULL,
             .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, NULL, "ffn_gate.weight", .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, NULL, "ffn_up.weight", .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "shared_mlp.output_linear.weight", "ffn_down.weight",
              .needs = FR_IF_DENSE),
    {0},
};

static const char *gguf_of(const fr_trunk_spec *spec) {
    if (has_mamba(spec)) return "granitehybrid";
    return fr_spec_experts(spec) ? "granitemoe" : "granite";
}

const fr_family fr_family_granite_hybrid = {
    .architectures = (const char *const[]){"GraniteMoeHybridForCausalLM", "granitehybrid", NULL},
    .gguf = "granitehybrid",
    .gguf_of = gguf_of,
    .tokenizer = "gpt2",
    .pre = "refact",
    .counts_ids = true,
    .defaults = &defaults,
    .gguf_defaults = &gguf_defaults,
    .rows = {own, fr_head_keys, parts},
    .rope = fr_rope_whole_heads,
    .shape = shape,
    .put_rope_factors = fr_rope_llama3_factors,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_mamba_names, fr_pre_norm_names, granite_names},
                                       .rotary_rows = FR_ROWS_TO_PAIRS}};

/* ------------------------------------------------------------------------------------------------------------ Bamba */

static const fr_model_spec bamba_defaults = {
    .trunk = {.vocab = 128000,
              .hidden = 4096,
              .layers = 32,
              .context_limit = 262144,
              .eps = 1e-5F,
              .rope = {{.neox = true, .partial = 0.5}}},
    .layer = {
        .attention = {.heads = 32, .kv_heads = 8},
        .mamba =
            {.groups = 1, .heads = 128, .state_dim = 256, .conv_kernel = 4, .conv_bias = true, .step_max = INFINITY},
        .ffn = {.width = 14336, .activation = FR_SILU}}};

static const fr_config_row bamba_own[] = {
    SIZES, FR_FLAG(layer.ffn.biased, "mlp_bias", NULL), FR_PART(states_part), {0}};

static const fr_tensor_name bamba_model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", NULL, .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_tokens.weight", NULL),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embed_tokens.weight", NULL),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "final_layernorm.weight", NULL),
    {0},
};

#define FEED "feed_forward."
static const fr_tensor_name bamba_names[] = {
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "pre_ff_layernorm.weight", NULL),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, FEED "gate_proj.weight", NULL),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, FEED "up_proj.weight", NULL),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, FEED "down_proj.weight", NULL),
    FR_VECTOR(fr_layer, ffn.gate_bias, FFN, FEED "gate_proj.bias", NULL, .needs = FR_IF_FFN_BIASED),
    FR_VECTOR(fr_layer, ffn.up_bias, FFN, FEED "up_proj.bias", NULL, .needs = FR_IF_FFN_BIASED),
    FR_VECTOR(fr_layer, ffn.down_bias, HIDDEN, FEED "down_proj.bias", NULL, .needs = FR_IF_FFN_BIASED),
    {0},
};

/* llama.cpp's converter reorders the rows of Bamba's queries and keys as if whole heads were rotated. Such a file gives
 * other results than the folder, so this family has no GGUF. */
const fr_family fr_family_bamba = {
    .architectures = (const char *const[]){"BambaForCausalLM", NULL},
    .defaults = &bamba_defaults,
    .rows = {bamba_own, fr_head_keys},
    .rope = fr_rope_one_form,
    .shape = shape,
    .names = &(const fr_tensor_naming){.model = bamba_model_names,
                                       .layer = {fr_attention_names, fr_mamba_names, bamba_names}}};
