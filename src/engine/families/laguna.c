/* Laguna (XS.2, M.1): config.json of LagunaForCausalLM, GGUF "laguna". Source: transformers 5.24, model laguna; for
 * GGUF github.com/ggml-org/llama.cpp, conversion/laguna.py. Sliding and full layers have different rotary positions,
 * each of a part of a head, and may have different numbers of heads. A separate matrix makes one gate for each head, or
 * one for each value of a head's output. The output is multiplied by the softplus of the gates. A mixture has a shared
 * expert. */
#include <string.h>

#include "base/error.h"
#include "src/engine/families/mixture.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 100352,
         .hidden = 2048,
         .layers = 40,
         .context_limit = 131072,
         .eps = 1e-6F,
         .ropes = 2,
         .rope =
             {[FR_SLIDING] = {.neox = true, .theta = 1e4}, [FR_FULL] = {.neox = true, .theta = 5e5, .partial = 0.5}}},
    .layer = {.attention = {.heads = 48,
                            .kv_heads = 8,
                            .head_dim = 128,
                            .window = 512,
                            .qk_norm = true,
                            .own_gate = 1,
                            .gate_softplus = true},
              .ffn = {.width = 8192, .activation = FR_SILU},
              .experts = {.count = 256,
                          .top_k = 8,
                          .width = 512,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SIGMOID,
                          .score_bias = true,
                          .norm_top_k = true,
                          .routed_scaling = 1.0F}},
    .mixture = {.shared = 1, .shared_width = 512, .leading_dense = 1, .normalizes = true},
    .kinds = {.every = 1}};

/* Reads the size of gates. In GGUF, this size follows from the shape of the first layer's matrix of gates. Also reads
 * the mixture, and config.json's two keys for the routers' scores and weights. */
static fr_status read_own(const fr_source *source, fr_model_spec *s) {
    const json_t *gating = json_object_get(source->text, "gating");
    const char *word = json_string_value(gating);
    double scaling, cap;
    FR_TRY(fr_mixture_read(source, s));
    if (source->gguf) {
        const fr_tensor *gate =
            source->weights ? fr_tensors_find(&source->weights->files->tensors, "blk.0.attn_gate.weight") : NULL;
        if (gate && gate->dims == 2 && gate->shape[0] > s->layer.attention.heads)
            s->layer.attention.own_gate = s->layer.attention.head_dim;
        return FR_OK;
    }
    FR_TRY(fr_json_real(source->text, "moe_routed_scaling_factor", 0, 1e6, 1, source->where, &scaling));
    FR_TRY(fr_json_real(source->text, "moe_router_logit_softcapping", 0, 1e6, 0, source->where, &cap));
    s->layer.experts.routed_scaling = (float)scaling;
    s->layer.experts.product_cap = (float)cap;
    if (!gating || json_is_true(gating) || (word && strcmp(word, "per-head") == 0)) return FR_OK;
    s->layer.attention.own_gate = s->layer.attention.head_dim;
    return word && strcmp(word, "per-element") == 0
               ? FR_OK
               : fr_fail(FR_UNBUILT, "%s: gating is neither true nor \"per-head\" nor \"per-element\"", source->where);
}

static fr_status put_own(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_experts_spec *e = fr_spec_experts(s);
    (void)mtp_layers, (void)w;
    return e->product_cap == 0.0F
               ? FR_OK
               : fr_fail(FR_INPUT, "%s: GGUF has no key for its moe_router_logit_softcapping", where);
}

static const fr_config_part own_part = {.read = read_own, .put = put_own};
static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_WITHOUT("moe_apply_router_weight_on_input"),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    {0}};
static const fr_config_row sizes[] = {
    FR_SIZE(trunk.vocab, "vocab_size", NULL, 1, 1 << 24),
    FR_SIZE(trunk.layers, "num_hidden_layers", ".block_count", 1, FR_LAYERS_MAX, .required = true),
    FR_SIZE(trunk.context_limit, "max_position_embeddings", ".context_length", 1, 1 << 24, .required = true),
    FR_SIZE(trunk.hidden, "hidden_size", ".embedding_length", 1, 1 << 17, .required = true),
    FR_SIZE(layer.ffn.width, "intermediate_size", ".feed_forward_length", 1, 1 << 22, .required = true),
    FR_EACH(layer.attention.heads, "num_attention_heads", ".attention.head_count", 1, 4096, .required = true),
    FR_SIZE(layer.attention.kv_heads, "num_key_value_heads", ".attention.head_count_kv", 1, 4096, .required = true),
    FR_SIZE(trunk.rope[FR_FULL].dims, NULL, ".rope.dimension_count", 2, 4096),
    FR_SIZE(trunk.rope[FR_SLIDING].dims, NULL, ".rope.dimension_count_swa", 2, 4096),
    {0}};
static const fr_config_row last[] = {FR_PART(own_part), {0}};

/* Marks the first layer and every fourth layer after it as full, because llama.cpp's converter writes no key for the
 * kinds of layers. */
static void mark_published(fr_model_spec *s) {
    for (size_t i = 0; i < s->trunk.layers; i++) {
        fr_attention_spec *a = &s->trunk.layer[i].attention;
        bool full = i % 4 == 0 || !s->layer.attention.window;
        a->window = full ? 0 : s->layer.attention.window;
        a->rope = full ? FR_FULL : FR_SLIDING;
    }
}

/* Makes the layers, and reads their numbers of heads from the list that a folder may have. GGUF's array of these
 * numbers is read with the rows. Each layer has its own number of gates. */
static fr_status shape(const fr_source *source, fr_model_spec *s) {
    const json_t *heads = json_object_get(source->text, "num_attention_heads_per_layer");
    bool listed = heads && !json_is_null(heads);
    FR_TRY(fr_mixture_told_layers(source, s));
    if (source->gguf && !fr_gguf_find(source->gguf, ".attention.sliding_window_pattern"))
        mark_published(s);
    else
        FR_TRY(fr_layers_mark_kinds(source, s));
    if (listed && json_array_size(heads) != s->trunk.layers)
        return fr_fail(FR_INPUT, "%s: num_attention_heads_per_layer is no list of %zu numbers", source->where,
                       s->trunk.layers);
    for (size_t i = 0; listed && i < s->trunk.layers; i++) {
        json_int_t count = json_integer_value(json_array_get(heads, i));
        if (count < 1 || count > 4096)
            return fr_fail(FR_INPUT, "%s: num_attention_heads_per_layer has no number of 1 to 4096 for layer %zu",
                           source->where, i);
        s->trunk.layer[i].attention.heads = (size_t)count;
    }
    return FR_OK;
}

static const fr_tensor_name gate_names[] = {
    FR_MATRIX(fr_layer, attention.gate, GATES, HIDDEN, "self_attn.g_proj.weight", "attn_gate.weight",
              .also = FR_ALSO_OWN_GATE),
    FR_VECTOR(fr_layer, experts.router_bias, EXPERTS, "mlp.experts.e_score_correction_bias", "exp_probs_b.bias",
              .needs = FR_IF_CORRECTED),
    FR_VECTOR(fr_layer, experts.router_bias, EXPERTS, "mlp.gate.e_score_correction_bias", "exp_probs_b.bias",
              .needs = FR_IF_CORRECTED),
    {0}};

const fr_family fr_family_laguna = {
    .architectures = (const char *const[]){"LagunaForCausalLM", "laguna", NULL},
    .gguf = "laguna",
    .tokenizer = "gpt2",
    .counts_ids = true,
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, sizes, fr_kind_keys, last},
    .rope = fr_rope_by_kind_in_part,
    .shape = shape,
    .names = &(const fr_tensor_naming){.layer = {gate_names, fr_attention_names, fr_pre_norm_names, fr_mixture_names}}};
