/* Phi-3, 3.5, Phi-4 and Phi-4-mini: config.json of Phi3ForCausalLM, GGUF "phi3". Source: the published checkpoints and
 * transformers 5.17, model phi3; for GGUF github.com/ggml-org/llama.cpp, conversion/phi.py and src/models/phi3.cpp.
 * llama.cpp has a key for the window but ignores it. Queries, keys and values are one tensor; gate and up are another.
 * Only a part of a head may be rotated. LongRoPE's divisors depend on the length of the text. */
#include <string.h>

#include "base/error.h"
#include "src/engine/families/rope_config.h"

enum { TRAINED = 4096 }; /* number of positions for which the model was trained, if no key gives it */

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 32064, .hidden = 3072, .layers = 32, .context_limit = 4096, .eps = 1e-5F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32}, .ffn = {.width = 8192, .activation = FR_SILU}}};

static const fr_config_part window = {.read = fr_window_of_all};
static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_NONE(".expert_count"),
                                    FR_PART(window),
                                    FR_SIZE(layer.attention.window, NULL, ".attention.sliding_window", 0, 1 << 24),
                                    {0}};

/* Reads rotary positions. Older files call LongRoPE "su" or "yarn". In these files, the number of trained positions is
 * outside of LongRoPE's object. */
static fr_status rope(const fr_source *source, fr_model_spec *s) {
    static const char trained[] = "original_max_position_embeddings";
    const json_t *parameters = NULL;
    const char *key = NULL, *type = NULL;
    if (source->gguf) return fr_rope_one_form(source, s);
    FR_TRY(fr_rope_parameters(source->text, source->where, &parameters, &key));
    const char *named = fr_rope_type_key(parameters);
    if (parameters) FR_TRY(fr_json_text(parameters, named, source->where, &type));
    if (!type || strcmp(type, "default") == 0) return fr_rope_one_form(source, s);
    if (strcmp(type, "su") != 0 && strcmp(type, "yarn") != 0 && strcmp(type, "longrope") != 0)
        return fr_fail(FR_UNBUILT, "%s: rope_type %s is not built (default, longrope, su and yarn are)", source->where,
                       type);
    fr_source told = *source;
    json_t *text = json_deep_copy(source->text), *of = json_object_get(text, key);
    bool whole = text && json_object_set_new(of, named, json_string("longrope")) == 0;
    if (whole && !json_object_get(text, trained))
        whole = json_object_set_new(text, trained, json_integer(TRAINED)) == 0;
    told.text = text;
    fr_status status = whole ? fr_rope_one_form(&told, s) : fr_fail_memory("rotary positions", 0);
    json_decref(text);
    return status;
}

const fr_family fr_family_phi3 = {
    .architectures = (const char *const[]){"Phi3ForCausalLM", "phi3", NULL},
    .gguf = "phi3",
    .tokenizer = "gpt2",
    .pre = "gpt-4o",
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = rope,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_fused_ffn_names}}};
