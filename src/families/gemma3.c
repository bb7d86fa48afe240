/* Gemma 3, text: config.json of Gemma3ForCausalLM and the text half of Gemma3ForConditionalGeneration, GGUF "gemma3".
 * Source: transformers 5.17, model gemma3; of GGUF github.com/ggml-org/llama.cpp, conversion/gemma.py and
 * src/models/gemma3.cpp. Five sliding layers, then a full one; norms before and behind each part, in published files
 * less one. */
#include <math.h>

#include "base/error.h"
#include "src/families/family.h"

enum { PATTERN = 6, LAYERS_OF_27B = 62 };

static const fr_model_spec defaults = {
    .trunk = {.vocab = 262208,
              .hidden = 2304,
              .layers = 26,
              .context_limit = 131072,
              .eps = 1e-6F,
              .ropes = FR_LAYER_KINDS,
              .rope = {[FR_SLIDING] = {.neox = true, .theta = 1e4}, [FR_FULL] = {.neox = true, .theta = 1e6}}},
    .layer = {
        .attention = {.heads = 8, .kv_heads = 4, .head_dim = 256, .window = 4096, .qk_norm = true, .scale = 0.0625F},
        .ffn = {.width = 9216, .activation = FR_GELU}}};

/* What GGUF, which has no key for the scale, means. */
static float scale_in_gguf(const fr_trunk_spec *s, const fr_attention_spec *a) {
    return fr_rsqrt(s->layers == LAYERS_OF_27B ? s->hidden / a->heads : a->head_dim);
}

static fr_status put_kinds(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    const fr_attention_spec *a = fr_spec_attention(s);
    if (fr_spec_window(s)) fr_layers_put_kinds(s, PATTERN, w);
    if (a->scale == scale_in_gguf(s, a)) return FR_OK;
    return fr_fail(FR_INPUT, "%s: GGUF has no key for its query_pre_attn_scalar", where);
}

static const fr_config_part kinds = {.put = put_kinds};

static const fr_config_row own[] = {
    FR_ONLY("hidden_activation", "gelu_pytorch_tanh"), FR_ABSENT("attn_logit_softcapping"),
    FR_WITHOUT("attention_bias"), FR_WITHOUT("use_bidirectional_attention"),
    FR_REAL(trunk.softcap, "final_logit_softcapping", ".final_logit_softcapping", 0, 1e6),
    FR_RSQRT(layer.attention.scale, "query_pre_attn_scalar", NULL, 1, 1 << 17), FR_PART(kinds), {0}};

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    size_t every = PATTERN;
    if (source->gguf) s->layer.attention.scale = scale_in_gguf(&s->trunk, &s->layer.attention);
    if (source->gguf && !fr_gguf_find(source->gguf, ".attention.sliding_window")) s->layer.attention.window = 0;
    FR_TRY(fr_json_size(source->text, "sliding_window_pattern", 1, FR_MOST_LAYERS, PATTERN, source->where, &every));
    s->trunk.embedding_scale = (float)sqrt((double)s->trunk.hidden);
    return fr_layers_by_kind(source, s, (fr_kind_pattern){.every = s->layer.attention.window ? every : 1});
}

const fr_family fr_family_gemma3 = {
    .architectures = (const char *const[]){"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration", "gemma3", NULL},
    .gguf = "gemma3",
    .tokenizer = "llama",
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_kind_keys},
    .rope = fr_rope_by_kind,
    .shape = shape,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_sandwich_norm_names, fr_ffn_names},
                                       .norms = FR_LESS_ONE,
                                       .extras =
                                           (const char *const[]){"*vision_tower.*", "*multi_modal_projector.*", NULL}}};
