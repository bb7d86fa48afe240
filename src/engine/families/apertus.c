/* Apertus (8B, 70B): config.json of ApertusForCausalLM, GGUF "apertus". Source: transformers 5.24, model apertus and
 * activations.py; for GGUF github.com/ggml-org/llama.cpp, conversion/llama.py. The layers are Llama's with norms of
 * heads. The feed-forward has no gate. Its activation is xIELU, which has four learned numbers in each layer. These
 * numbers are tensors in folders and keys in GGUF. */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 131072,
              .hidden = 4096,
              .layers = 32,
              .context_limit = 65536,
              .eps = 1e-5F,
              .rope = {{.neox = true, .theta = 12e6}}},
    .layer = {.attention = {.heads = 32, .qk_norm = true},
              /* four numbers that give alpha_p = alpha_n = 0.8. alpha_p is the softplus of the first number. alpha_n is
               * beta, the third number, plus the softplus of the second number */
              .ffn = {.width = 14336, .activation = FR_XIELU, .xielu = {0.203357F, -1.0502256F, 0.5F, -1e-6F}}}};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "xielu"),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    {0}};

/* The names of the activation's four numbers: as tensors in folders, and as keys in GGUF. */
static const char *const tensors[] = {"alpha_p", "alpha_n", "beta", "eps"};
static const char *const keys[] = {"xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"};
enum { NUMBERS = 4 };

/* Reads one of the activation's numbers from GGUF. The key's value is one number for all layers, or an array with a
 * number for each layer. */
static fr_status read_key(const fr_source *source, size_t number, fr_trunk_spec *trunk) {
    const fr_gguf_value *value = fr_gguf_find(source->gguf, keys[number]);
    double same = 0;
    bool array = value && value->type == FR_GGUF_ARRAY;
    if (!array) FR_TRY(fr_gguf_real(source->gguf, keys[number], -1e6, 1e6, NAN, &same));
    if (array) FR_TRY(fr_gguf_array(source->gguf, keys[number], FR_GGUF_F32, &value));
    if (array && value->count != trunk->layers)
        return fr_fail(FR_INPUT, "%s: key %s has not one number for each layer", source->where, keys[number]);
    for (size_t i = 0; i < trunk->layers; i++)
        trunk->layer[i].ffn.xielu[number] = array ? fr_gguf_f32(value, i) : (float)same;
    return FR_OK;
}

static fr_status shape(const fr_source *source, fr_model_spec *spec) {
    FR_TRY(fr_layers_alike(source, spec));
    for (size_t n = 0; source->gguf && n < NUMBERS; n++) FR_TRY(read_key(source, n, &spec->trunk));
    for (size_t i = 0; !source->gguf && source->weights && i < spec->trunk.layers; i++)
        for (size_t n = 0; n < NUMBERS; n++) {
            char name[96];
            snprintf(name, sizeof name, "%slayers.%zu.mlp.act_fn.%s", fr_tensor_names_prefix(source->weights), i,
                     tensors[n]);
            if (fr_source_has(source, name))
                FR_TRY(fr_bind_scalar(source->weights, "", name, &spec->trunk.layer[i].ffn.xielu[n]));
        }
    for (size_t i = 0; i < spec->trunk.layers; i++)
        for (size_t n = 0; n < NUMBERS; n++)
            if (!(fabsf(spec->trunk.layer[i].ffn.xielu[n]) <= 80.0F))
                return fr_fail(FR_INPUT, "%s: layer %zu: %s of the activation is not in -80 to 80", source->where, i,
                               tensors[n]);
    return FR_OK;
}

static fr_status put(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers, (void)where;
    for (size_t n = 0; n < NUMBERS; n++) {
        fr_gguf_put_array(w, keys[n], FR_GGUF_F32, s->layers);
        for (size_t i = 0; i < s->layers; i++) fr_gguf_add_f32(w, s->layer[i].ffn.xielu[n]);
    }
    return FR_OK;
}

static const fr_config_part xielu = {.put = put};
static const fr_config_row last[] = {FR_PART(xielu), {0}};

static fr_status read_rope(const fr_source *source, fr_model_spec *spec) {
    return fr_rope_llama3_unless_told(source, spec, 8);
}

static const fr_tensor_name names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "attention_layernorm.weight", "attn_norm.weight"),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "feedforward_layernorm.weight", "ffn_norm.weight"),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp.up_proj.weight", "ffn_up.weight"),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.down_proj.weight", "ffn_down.weight"),
    {0},
};

const fr_family fr_family_apertus = {
    .architectures = (const char *const[]){"ApertusForCausalLM", "apertus", NULL},
    .gguf = "apertus",
    .tokenizer = "gpt2",
    .pre = "tekken",
    .counts_ids = true,
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys, last},
    .rope = read_rope,
    .shape = shape,
    .put_rope_factors = fr_rope_llama3_factors,
    .names = &(const fr_tensor_naming){.layer = {names, fr_attention_names},
                                       .extras = (const char *const[]){"*.mlp.act_fn.*", NULL}}};
