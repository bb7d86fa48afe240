/* Falcon-H1: config.json of FalconH1ForCausalLM, GGUF "falcon-h1". Source: the published checkpoints and transformers
 * 5.24, model falcon_h1; for GGUF github.com/ggml-org/llama.cpp, conversion/falcon_h1.py and src/models/falcon-h1.cpp.
 * Each layer runs attention and Mamba-2 on the same input, and then a feed-forward. Many products have a multiplier. In
 * GGUF, the weights are already multiplied by it (`forerun quantize` does the same). For a folder, a multiplier is
 * applied to the product (fr_layer_factors). For the inputs of Mamba-2's convolution, it is applied to the weights of
 * the convolution. */
#include <math.h>

#include "base/error.h"
#include "src/engine/families/mamba_config.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 128000, .hidden = 4096, .layers = 32, .context_limit = 8192, .eps = 1e-5F, .rope = {{.neox = true}}},
    .layer = {
        .mixer = FR_MIXER_BOTH,
        .attention = {.heads = 32, .kv_heads = 8},
        .mamba =
            {.groups = 1, .heads = 128, .state_dim = 256, .conv_kernel = 4, .conv_bias = true, .step_max = INFINITY},
        .ffn = {.width = 14336, .activation = FR_SILU}}};

/* ------------------------------------------------------------------------------------------------------ multipliers */

static fr_status read_real(const fr_source *source, const char *key, double *value) {
    return fr_json_real(source->text, key, -1e6, 1e6, 1.0, source->where, value);
}

/* Reads a list of `count` factors. If there is no list, all factors are 1. */
static fr_status read_list(const fr_source *source, const char *key, size_t count, double *values) {
    const json_t *list = json_object_get(source->text, key);
    bool given = list && !json_is_null(list);
    if (given && json_array_size(list) != count)
        return fr_fail(FR_INPUT, "%s: %s is no list of %zu numbers", source->where, key, count);
    for (size_t i = 0; i < count; i++) {
        const json_t *number = given ? json_array_get(list, i) : NULL;
        values[i] = given ? json_number_value(number) : 1.0;
        if (given && (!json_is_number(number) || fabs(values[i]) > 1e6))
            return fr_fail(FR_INPUT, "%s: %s has something that is no multiplier", source->where, key);
    }
    return FR_OK;
}

/* Sets the factor of a product. If an input has a multiplier, this is a factor of each product that reads the input. A
 * multiplier of 0 is refused, because a factor of 0 means that there is no factor. */
static fr_status set_factor(const fr_source *source, const char *key, float *factor, double value) {
    *factor = (float)value;
    if (*factor != 0.0F) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: %s: a multiplier of 0 is not built", source->where, key);
}

static fr_status read_multipliers(const fr_source *source, fr_model_spec *s) {
    fr_layer_factors *f = &s->layer.factors;
    double in, out, key, state_in, state_out, embedding, head, feed[2], state[5];
    if (source->gguf) return FR_OK;
    FR_TRY(read_real(source, "attention_in_multiplier", &in));
    FR_TRY(read_real(source, "attention_out_multiplier", &out));
    FR_TRY(read_real(source, "key_multiplier", &key));
    FR_TRY(read_real(source, "ssm_in_multiplier", &state_in));
    FR_TRY(read_real(source, "ssm_out_multiplier", &state_out));
    FR_TRY(read_real(source, "embedding_multiplier", &embedding));
    FR_TRY(read_real(source, "lm_head_multiplier", &head));
    FR_TRY(read_list(source, "mlp_multipliers", 2, feed));
    FR_TRY(read_list(source, "ssm_multipliers", 5, state));
    const struct {
        const char *key;
        float *factor;
        double value;
    } all[] = {{"attention_in_multiplier", &f->q, in},
               {"key_multiplier", &f->k, in * key},
               {"attention_in_multiplier", &f->v, in},
               {"attention_out_multiplier", &f->o, out},
               {"mlp_multipliers", &f->gate, feed[0]},
               {"mlp_multipliers", &f->down, feed[1]},
               {"ssm_multipliers", &f->mamba_z, state_in * state[0]},
               {"ssm_multipliers", &f->mamba_x, state_in * state[1]},
               {"ssm_multipliers", &f->mamba_b, state_in * state[2]},
               {"ssm_multipliers", &f->mamba_c, state_in * state[3]},
               {"ssm_multipliers", &f->mamba_dt, state_in * state[4]},
               {"ssm_out_multiplier", &f->mamba_out, state_out},
               {"embedding_multiplier", &s->trunk.embedding_scale, embedding},
               {"lm_head_multiplier", &s->trunk.logit_scale, head}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        FR_TRY(set_factor(source, all[i].key, all[i].factor, all[i].value));
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------- keys */

/* Reads the width of all heads of Mamba-2 together. Also reads whether their outputs have a norm, and where this norm
 * is. */
static fr_status read_states(const fr_source *source, fr_model_spec *s) {
    bool normed;
    size_t expand, inner;
    if (source->gguf) return fr_mamba_check(source, s, fr_source_layer_has(source, s, "ssm_norm.weight"));
    const json_t *told = json_object_get(source->text, "mamba_d_ssm");
    FR_TRY(fr_json_size(source->text, "mamba_expand", 1, 1024, 2, source->where, &expand));
    FR_TRY(fr_json_size(source->text, "mamba_d_ssm", 1, 1 << 24, 1024, source->where, &inner));
    if (json_is_null(told)) inner = expand * s->trunk.hidden;
    FR_TRY(fr_mamba_head_dim(source, "mamba_d_head", inner, s));
    FR_TRY(fr_mamba_limits(source, "time_step_limit", s));
    FR_TRY(fr_json_bool(source->text, "mamba_rms_norm", false, source->where, &normed));
    FR_TRY(fr_json_bool(source->text, "mamba_norm_before_gate", true, source->where, &s->layer.mamba.norm_first));
    return fr_mamba_check(source, s, normed);
}

static fr_status put_states(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)w;
    return fr_mamba_put_no_limits(&fr_spec_layer(s, 0)->mamba, where);
}

static const fr_config_part multipliers = {.read = read_multipliers}, states = {.read = read_states, .put = put_states};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"), FR_WITHOUT("attention_bias"), FR_WITHOUT("mlp_bias"),
                                    FR_WITHOUT("projectors_bias"), FR_PART(multipliers),         {0}};
static const fr_config_row of_states[] = {FR_MAMBA_ROWS("mamba_n_heads", "mamba_n_groups", "mamba_d_state",
                                                        "mamba_d_conv", "mamba_conv_bias", "mamba_proj_bias"),
                                          FR_WITHOUT("mamba_proj_bias"),
                                          FR_PART(fr_mamba_part),
                                          FR_PART(states),
                                          {0}};

/* ------------------------------------------------------------------------------------------------------------ names */

static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "final_layernorm.weight", "output_norm.weight"),
    {0},
};

#define FACTOR(of) .factor = offsetof(fr_layer_spec, factors.of)
#define FEED       "feed_forward."
static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight"),
    FR_NAMED(fr_layer, attention.q, FR_SLOT_QKV, QUERIES, HIDDEN, NULL, "attn_qkv.weight"),
    FR_MATRIX(fr_layer, attention.q, QUERIES, HIDDEN, "self_attn.q_proj.weight", "attn_q.weight", FACTOR(q)),
    FR_MATRIX(fr_layer, attention.k, KEYS, HIDDEN, "self_attn.k_proj.weight", "attn_k.weight", FACTOR(k)),
    FR_MATRIX(fr_layer, attention.v, KEYS, HIDDEN, "self_attn.v_proj.weight", "attn_v.weight", FACTOR(v)),
    FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, "self_attn.o_proj.weight", "attn_output.weight", FACTOR(o)),
    /* llama.cpp's name of this tensor has no ".weight" */
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "pre_ff_layernorm.weight", "ffn_norm"),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, NULL, "ffn_norm.weight"),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, FEED "gate_proj.weight", "ffn_gate.weight", FACTOR(gate)),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, FEED "up_proj.weight", "ffn_up.weight"),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, FEED "down_proj.weight", "ffn_down.weight", FACTOR(down)),
    {0},
};

const fr_family fr_family_falcon_h1 = {
    .architectures = (const char *const[]){"FalconH1ForCausalLM", "falcon-h1", NULL},
    .gguf = "falcon-h1",
    .factors_in_weights = true,
    .tokenizer = "gpt2",
    .pre = "falcon-h1",
    .counts_ids = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys, of_states},
    .rope = fr_rope_whole_heads,
    .names = &(const fr_tensor_naming){.model = model_names, .layer = {layer_names, fr_mamba_names}}};
