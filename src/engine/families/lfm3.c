/* LFM3: config.json of Lfm3ForCausalLM; llama.cpp has no GGUF for it. Source: transformers 5.24, model lfm3. A layer
 * has a short convolution like LFM2's, sliding attention, or full attention. The two kinds of attention have different
 * rotary positions. A matrix of its own computes a gate for each head, which scales the head's output. Norms come
 * before and after each layer's attention, convolution and feed-forward. */
#include <string.h>

#include "base/error.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 128000,
              .hidden = 2048,
              .layers = 24,
              .context_limit = 128000,
              .eps = 1e-5F,
              .post_norms = true,
              .ropes = 2,
              .rope = {[FR_SLIDING] = {.neox = true, .theta = 1e4},
                       [FR_FULL] = {.neox = true, .kind = FR_ROPE_PROPORTIONAL, .theta = 1e6, .partial = 0.5}}},
    .layer = {.attention = {.heads = 16, .kv_heads = 4, .head_dim = 128, .window = 256, .qk_norm = true, .own_gate = 1},
              .short_conv = {.conv_kernel = 7},
              .ffn = {.width = 7680, .activation = FR_SILU}}};

static fr_status read_gates(const fr_source *source, fr_model_spec *s) {
    bool gates;
    FR_TRY(fr_json_bool(source->text, "use_attention_gate", true, source->where, &gates));
    s->layer.attention.own_gate = gates ? 1 : 0;
    return FR_OK;
}

static const fr_config_part gates = {.read = read_gates};
static const fr_config_row own[] = {FR_WITHOUT("conv_bias"),
                                    FR_FLAG(trunk.post_norms, "use_sandwich_norm", NULL),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    FR_SIZE(layer.short_conv.conv_kernel, "conv_L_cache", NULL, 2, FR_CONV_KERNEL_MAX),
                                    FR_PART(gates),
                                    {0}};
static const fr_config_row eps[] = {FR_REAL(trunk.eps, "norm_eps", NULL, 0, 1), {0}};

/* Gives the kind of a layer from the list of kinds. If there is no list, the kind follows from the published model's
 * pattern. */
static fr_status kind_of(const fr_source *source, const json_t *kinds, size_t layer, const char **kind) {
    static const char *const words[] = {"full_attention", "sliding_attention", "conv"};
    *kind = words[layer % 4 == 2 ? 0 : layer % 4 == 0 && layer ? 1 : 2];
    if (!kinds) return FR_OK;
    const char *word = json_string_value(json_array_get(kinds, layer));
    for (size_t i = 0; i < 3; i++)
        if (word && strcmp(word, words[i]) == 0) *kind = words[i];
    return word && strcmp(word, *kind) == 0
               ? FR_OK
               : fr_fail(FR_UNBUILT, "%s: layer_types has \"%.40s\" for layer %zu, expected %s, %s or %s",
                         source->where, word ? word : "", layer, words[0], words[1], words[2]);
}

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    const json_t *kinds = json_object_get(source->text, "layer_types");
    if (json_is_null(kinds)) kinds = NULL;
    if (kinds && json_array_size(kinds) != s->trunk.layers)
        return fr_fail(FR_INPUT, "%s: layer_types is no array of num_hidden_layers = %zu kinds", source->where,
                       s->trunk.layers);
    FR_TRY(fr_layers_alike(source, s));
    for (size_t i = 0; i < s->trunk.layers; i++) {
        fr_layer_spec *layer = &s->trunk.layer[i];
        const char *kind;
        FR_TRY(kind_of(source, kinds, i, &kind));
        layer->attention.rope = *kind == 'f' ? FR_FULL : FR_SLIDING;
        if (*kind == 'f') layer->attention.window = 0;
        if (*kind == 's' && !layer->attention.window)
            return fr_fail(FR_INPUT, "%s: layer %zu has sliding attention, but the window is missing", source->where,
                           i);
        if (*kind != 'c') continue;
        layer->mixer = FR_MIXER_SHORT_CONV;
        layer->attention = (fr_attention_spec){0};
    }
    return FR_OK;
}

static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", NULL, .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_tokens.weight", NULL),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embed_tokens.weight", NULL),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "embedding_norm.weight", NULL),
    {0}};

#define CONV .needs = FR_IF_SHORT_CONV
#define POST .also = FR_ALSO_POST_NORMS
static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "operator_norm.weight", NULL),
    FR_VECTOR(fr_layer, post_attn_norm, HIDDEN, "post_operator_norm.weight", NULL, POST),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "ffn_norm.weight", NULL),
    FR_VECTOR(fr_layer, post_ffn_norm, HIDDEN, "post_ffn_norm.weight", NULL, POST),
    /* the name in files, and the name in transformers' module, which older tools may have stored */
    FR_MATRIX(fr_layer, attention.gate, GATES, HIDDEN, "self_attn.gate_proj.weight", NULL, .also = FR_ALSO_OWN_GATE),
    FR_MATRIX(fr_layer, attention.gate, GATES, HIDDEN, "self_attn.g_proj.weight", NULL, .also = FR_ALSO_OWN_GATE),
    FR_NAMED(fr_layer, short_conv.in, FR_SLOT_THIRDS, HIDDEN, HIDDEN, "conv.in_proj.weight", NULL, CONV),
    FR_NAMED(fr_layer, short_conv.conv, FR_SLOT_CONV, HIDDEN, CONV_KERNEL, "conv.conv.weight", NULL, CONV),
    FR_MATRIX(fr_layer, short_conv.out, HIDDEN, HIDDEN, "conv.out_proj.weight", NULL, CONV),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "feed_forward.w1.weight", NULL),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, "feed_forward.w3.weight", NULL),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "feed_forward.w2.weight", NULL),
    {0}};

const fr_family fr_family_lfm3 = {
    .architectures = (const char *const[]){"Lfm3ForCausalLM", NULL},
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_kind_keys, eps},
    .rope = fr_rope_by_kind,
    .shape = shape,
    .names = &(const fr_tensor_naming){.model = model_names, .layer = {layer_names, fr_attention_names}}};
