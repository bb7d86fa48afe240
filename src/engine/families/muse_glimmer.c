/* Muse-Glimmer: the text model of MuseGlimmerForConditionalGeneration, GGUF "muse-glimmer"; pictures are not read.
 * Source: transformers 5.24, model muse_glimmer; for GGUF github.com/ggml-org/llama.cpp, conversion/muse_glimmer.py.
 * Norms without weights are applied to embeddings and to heads. A matrix of its own computes a gate for each value of a
 * head. Norms come before and after attention and feed-forward; the norms after them have another eps. Folders store
 * the weights of the layers' norms minus 1. Layers whose rotary base is 0 are not rotated. If no base is given, every
 * fourth layer is full and not rotated. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 202048,
              .hidden = 6656,
              .layers = 52,
              .context_limit = 131072,
              .eps = 1e-5F,
              .post_eps = 1e-8F,
              .norms_embeddings = true,
              .logit_scale = 0.19611613513818404F,
              .softcap = 20,
              .rope = {{.neox = true}}},
    .layer = {.attention =
                  {.heads = 32, .kv_heads = 2, .head_dim = 128, .window = 2048, .bare_qk_norm = true, .own_gate = 128},
              .ffn = {.width = 19968, .activation = FR_SILU}}};

/* Reads a factor of queries, by which the scale of scores is multiplied. Also sets the size of gates. */
static fr_status read_heads(const fr_source *source, fr_model_spec *s) {
    fr_attention_spec *a = &s->layer.attention;
    double factor;
    a->own_gate = a->head_dim;
    if (source->gguf) return FR_OK;
    FR_TRY(fr_json_real(source->text, "qk_scale_factor", 1e-6, 1e6, 3.87, source->where, &factor));
    a->scale = (float)(factor / sqrt((double)a->head_dim));
    return FR_OK;
}

static const fr_config_part heads = {.read = read_heads};
static const fr_config_row own[] = {
    FR_ONLY("hidden_activation", "silu"),
    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
    FR_REAL(trunk.post_eps, "post_norm_eps", NULL, 0, 1),
    FR_REAL(trunk.logit_scale, "output_multiplier", ".logit_scale", 1e-9, 1e6),
    FR_REAL(trunk.softcap, "final_logit_softcapping", ".final_logit_softcapping", 0, 1e6),
    FR_SIZE(layer.attention.window, "sliding_window", ".attention.sliding_window", 1, 1 << 24),
    {0}};
static const fr_config_row last[] = {FR_PART(heads), {0}};

/* Finds out which layers are full and which slide. layer_types lists the kinds; if it is missing, a layer's kind
 * follows from its distance to the last layer. Also finds out which layers are rotated. */
static fr_status shape(const fr_source *source, fr_model_spec *s) {
    const json_t *kinds = json_object_get(source->text, "layer_types");
    const json_t *bases = json_object_get(source->text, "layer_rope_theta");
    bool listed = bases && !json_is_null(bases), told = source->gguf || (kinds && !json_is_null(kinds));
    FR_TRY(told ? fr_layers_by_kind(source, s) : fr_layers_alike(source, s));
    if (listed && json_array_size(bases) != s->trunk.layers)
        return fr_fail(FR_INPUT, "%s: layer_rope_theta is no array of num_hidden_layers = %zu numbers", source->where,
                       s->trunk.layers);
    for (size_t i = 0; i < s->trunk.layers && listed; i++)
        if (!json_is_number(json_array_get(bases, i)))
            return fr_fail(FR_INPUT, "%s: layer_rope_theta has no number for layer %zu", source->where, i);
    for (size_t i = 0; i < s->trunk.layers; i++) {
        fr_attention_spec *a = &s->trunk.layer[i].attention;
        bool fourth = (s->trunk.layers - 1 - i) % 4 == 0;
        if (!told && fourth) a->window = 0;
        a->no_rope = source->gguf ? !a->window : listed ? json_number_value(json_array_get(bases, i)) == 0 : fourth;
    }
    return FR_OK;
}

#define GGUF_NORM(at, name) FR_VECTOR(fr_layer, attention.at, HEAD, NULL, name, .needs = FR_IF_THERE)
static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "norm.weight", "output_norm.weight"),
    {0}};
static const fr_tensor_name gate_names[] = {
    FR_MATRIX(fr_layer, attention.gate, GATES, HIDDEN, "self_attn.gate_proj.weight", "attn_gate.weight"),
    GGUF_NORM(q_norm, "attn_q_norm.weight"),
    GGUF_NORM(k_norm, "attn_k_norm.weight"),
    {0}};

const fr_family fr_family_muse_glimmer = {
    .architectures =
        (const char *const[]){"MuseGlimmerForConditionalGeneration", "MuseGlimmerForCausalLM", "muse-glimmer", NULL},
    .tokenizer = "gpt2",
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys, last},
    .rope = fr_rope_whole_heads,
    .shape = shape,
    .names = &(const fr_tensor_naming){
        .model = model_names,
        .layer = {gate_names, fr_attention_names, fr_sandwich_norm_names, fr_ffn_names},
        .norms = FR_LESS_ONE,
        .rotary_rows = FR_ROWS_TO_PAIRS,
        .extras = (const char *const[]){"*vision_tower.*", "*vision_adapter.*", "*vision_projection.*", NULL}}};
