/* Dense decoders whose configuration says for each layer whether it slides: Ministral (config.json of
 * MinistralForCausalLM) and CWM (CwmForCausalLM). llama.cpp has no GGUF for them. Source: transformers 5.24, models
 * ministral and cwm. If layer_types is missing, all of Ministral's layers slide. In CWM the first layer and every
 * fourth layer after it are then full, and all others slide. */
#include "base/error.h"
#include "src/engine/families/family.h"

static const fr_model_spec ministral = {
    .trunk =
        {.vocab = 32000, .hidden = 4096, .layers = 32, .context_limit = 131072, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 8, .window = 4096},
              .ffn = {.width = 14336, .activation = FR_SILU}}};

static const fr_model_spec cwm = {.trunk = {.vocab = 128256,
                                            .hidden = 6144,
                                            .layers = 64,
                                            .context_limit = 131072,
                                            .eps = 1e-5F,
                                            .rope = {{.neox = true, .theta = 1e6}}},
                                  .layer = {.attention = {.heads = 48, .kv_heads = 8, .head_dim = 128, .window = 8192},
                                            .ffn = {.width = 21504, .activation = FR_SILU}}};

static const fr_config_row own[] = {
    FR_ONLY("hidden_act", "silu"),
    FR_SIZE(layer.attention.window, "sliding_window", NULL, 0, 1 << 24, .null_is_none = true),
    {0}};
static const fr_config_row biased[] = {FR_FLAG(layer.ffn.biased, "mlp_bias", NULL), {0}}; /* only CWM reads mlp_bias */

static fr_status rope_of_cwm(const fr_source *source, fr_model_spec *spec) {
    return fr_rope_llama3_unless_told(source, spec, 16);
}

static fr_status every_fourth_from_first(const fr_source *source, fr_model_spec *spec) {
    const json_t *types = json_object_get(source->text, "layer_types");
    FR_TRY(fr_layers_by_kind(source, spec));
    for (size_t i = 0; i < spec->trunk.layers && (!types || json_is_null(types)); i++)
        spec->trunk.layer[i].attention.window = i % 4 ? spec->layer.attention.window : 0;
    return FR_OK;
}

static const fr_tensor_naming names = {.layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names}};

const fr_family fr_family_ministral = {.architectures = (const char *const[]){"MinistralForCausalLM", NULL},
                                       .defaults = &ministral,
                                       .rows = {own, fr_size_keys, fr_head_keys},
                                       .rope = fr_rope_whole_heads,
                                       .shape = fr_layers_by_kind,
                                       .names = &names};

const fr_family fr_family_cwm = {.architectures = (const char *const[]){"CwmForCausalLM", NULL},
                                 .defaults = &cwm,
                                 .rows = {own, biased, fr_size_keys, fr_head_keys},
                                 .rope = rope_of_cwm,
                                 .shape = every_fourth_from_first,
                                 .names = &names};
