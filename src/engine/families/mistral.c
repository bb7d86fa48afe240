/* Mistral and its successors (7B, Nemo, Small): config.json of MistralForCausalLM, whose GGUF is read by llama.c.
 * Ministral 3: config.json of Ministral3ForCausalLM, GGUF "mistral3". The text part of Mistral3ForConditionalGeneration
 * may be of either model. Source: the published checkpoints and transformers 5.17, models mistral, mistral3 and
 * ministral3; for GGUF github.com/ggml-org/llama.cpp, conversion/llama.py and mistral3.py. All layers have the window,
 * for which GGUF has no key. Ministral 3 scales queries by their position. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/families/config_keys.h"
#include "src/engine/families/rope_config.h"

static const fr_model_spec mistral = {
    .trunk =
        {.vocab = 32000, .hidden = 4096, .layers = 32, .context_limit = 131072, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 8, .window = 4096},
              .ffn = {.width = 14336, .activation = FR_SILU}}};

static const fr_model_spec ministral3 = {.trunk = {.vocab = 131072,
                                                   .hidden = 4096,
                                                   .layers = 34,
                                                   .context_limit = 262144,
                                                   .eps = 1e-5F,
                                                   .rope = {{.neox = true}}},
                                         .layer = {.attention = {.heads = 32, .kv_heads = 8, .head_dim = 128},
                                                   .ffn = {.width = 14336, .activation = FR_SILU}}};

/* The rotary positions of Ministral 3, for a config.json that has no keys for them. */
static const char usual_rope[] =
    "{\"rope_parameters\": {\"rope_type\": \"yarn\", \"rope_theta\": 1e6, \"factor\": 16, \"beta_fast\": 32, "
    "\"beta_slow\": 1, \"original_max_position_embeddings\": 16384, \"mscale_all_dim\": 1, \"mscale\": 1, "
    "\"llama_4_scaling_beta\": 0.1}}";

/* Finds out whether the text model is Ministral 3's. If a model with a vision tower has no model_type for its text
 * part, the text model is Mistral's. */
static fr_status is_ministral(const fr_source *s, bool *is) {
    const char *type;
    FR_TRY(fr_json_text(s->text, "model_type", s->where, &type));
    *is = type ? strcmp(type, "ministral3") == 0 : s->text == s->root;
    if (*is || !type || strcmp(type, "mistral") == 0) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: model_type %s is not built (mistral and ministral3 are)", s->where, type);
}

static fr_status read_kind(const fr_source *s, fr_model_spec *spec) {
    bool newer = true;
    if (!s->gguf) FR_TRY(is_ministral(s, &newer));
    if (newer) return FR_OK;
    spec->trunk.vocab = mistral.trunk.vocab;
    spec->trunk.layers = mistral.trunk.layers;
    spec->trunk.context_limit = mistral.trunk.context_limit;
    spec->trunk.eps = mistral.trunk.eps;
    spec->layer.attention = mistral.layer.attention;
    spec->layer.attention.owns_kv = true;
    return FR_OK;
}

/* Reads the scaling that Ministral 3 adds. For mscale, llama.cpp assumes 1. */
static fr_status gguf_rope(const fr_gguf *gguf, fr_rope_spec *rope) {
    double all;
    FR_TRY(fr_gguf_real(gguf, ".rope.scaling.yarn_log_multiplier", 0, 1e3, 0, &all));
    FR_TRY(fr_gguf_real(gguf, ".attention.temperature_scale", 0, 1e3, 0, &rope->query_beta));
    if (all > 0)
        rope->attention_factor = (float)((double)rope->attention_factor / fr_rope_yarn_magnitude(rope->factor, all));
    if (rope->query_beta == 0.0 || rope->original_context >= 1) return FR_OK;
    return fr_fail(FR_INPUT, "%s: key %s.rope.scaling.original_context_length is missing, beyond which queries grow",
                   gguf->path, gguf->architecture);
}

static fr_status shape(const fr_source *s, fr_model_spec *spec) {
    if (!s->gguf && json_is_object(json_object_get(s->root, "vision_config")))
        FR_TRY(fr_config_image_token(s->root, "image_token_id", "image_token_index", 10, spec->trunk.vocab, s->where,
                                     &spec->image_token));
    return fr_layers_alike(s, spec);
}

static fr_status rope_of(const fr_source *s, fr_model_spec *spec) {
    const json_t *parameters;
    const char *key;
    fr_rope_spec *rope = &spec->trunk.rope[0];
    FR_TRY(fr_rope_whole_heads(s, spec));
    FR_TRY(fr_rope_parameters(s->text, s->where, &parameters, &key));
    FR_TRY(fr_json_real(parameters, "llama_4_scaling_beta", 0, 1e3, NAN, s->where, &rope->query_beta));
    if (rope->kind != FR_ROPE_DEFAULT && rope->kind != FR_ROPE_LINEAR) return FR_OK;
    return fr_json_real(parameters, "original_max_position_embeddings", 1, 1 << 24, NAN, s->where,
                        &rope->original_context);
}

static fr_status rope(const fr_source *s, fr_model_spec *spec) {
    fr_source told = *s;
    json_t *usual = NULL;
    const json_t *said = NULL;
    const char *key;
    bool newer = true;
    if (s->gguf) {
        FR_TRY(fr_rope_whole_heads(s, spec));
        return gguf_rope(s->gguf, &spec->trunk.rope[0]);
    }
    FR_TRY(is_ministral(s, &newer));
    if (!newer) return fr_rope_whole_heads(s, spec);
    FR_TRY(fr_rope_parameters(s->text, s->where, &said, &key));
    if (!said) FR_TRY(fr_json_parse(usual_rope, sizeof usual_rope - 1, s->where, &usual));
    if (!said) told.text = usual;
    fr_status status = rope_of(&told, spec);
    json_decref(usual);
    return status;
}

static fr_status put_growth(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)where;
    if (spec->rope[0].query_beta == 0.0) return FR_OK;
    fr_gguf_put_f32(w, ".attention.temperature_scale", (float)spec->rope[0].query_beta);
    return FR_OK;
}

static const fr_config_part kind = {.read = read_kind}, growth = {.put = put_growth};
static const fr_config_row own[] = {
    FR_PART(kind), FR_ONLY("hidden_act", "silu"), FR_PART(fr_window_of_all_part), FR_PART(growth), {0}};
static const fr_tensor_naming names = {.layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names},
                                       .rotary_rows = FR_ROWS_TO_PAIRS,
                                       .extras =
                                           (const char *const[]){"*vision_tower.*", "*multi_modal_projector.*", NULL}};

const fr_family fr_family_mistral = {.architectures = (const char *const[]){"MistralForCausalLM", NULL},
                                     .gguf = "llama",
                                     .tokenizer = "llama",
                                     .counts_ids = true,
                                     .defaults = &mistral,
                                     .rows = {own + 1, fr_size_keys, fr_head_keys},
                                     .rope = fr_rope_whole_heads,
                                     .names = &names};

const fr_family fr_family_mistral3 = {.architectures = (const char *const[]){"Mistral3ForConditionalGeneration",
                                                                             "Ministral3ForCausalLM", "mistral3", NULL},
                                      .gguf = "mistral3",
                                      .tokenizer = "gpt2",
                                      .pre = "tekken",
                                      .counts_ids = true,
                                      .picture = "[IMG]",
                                      .sees = true,
                                      .defaults = &ministral3,
                                      .rows = {own, fr_size_keys, fr_head_keys},
                                      .rope = rope,
                                      .shape = shape,
                                      .names = &names};
