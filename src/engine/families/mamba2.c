/* Mamba-2 alone: config.json of Mamba2ForCausalLM, GGUF "mamba2". Source: transformers 5.24, model mamba2; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/mamba.py and src/models/mamba2.cpp. A layer is a norm and then Mamba-2,
 * without a feed-forward. No key limits the number of positions. */
#include <math.h>

#include "base/error.h"
#include "src/engine/families/mamba_config.h"

/* No layer has attention, so the sizes of heads have no effect; they only have to be valid. */
static const fr_model_spec defaults = {
    .trunk = {.vocab = 32768,
              .hidden = 4096,
              .layers = 64,
              .context_limit = 1 << 20,
              .eps = 1e-5F,
              .rope = {{.neox = true, .dims = 2}}},
    .layer = {.mixer = FR_MIXER_MAMBA,
              .attention = {.heads = 1, .kv_heads = 1, .head_dim = 2, .scale = 1, .no_rope = true},
              .mamba = {.groups = 8,
                        .heads = 128,
                        .state_dim = 128,
                        .head_dim = 64,
                        .conv_kernel = 4,
                        .conv_bias = true,
                        .step_max = INFINITY}}};

static fr_status read_inner(const fr_source *source, fr_model_spec *s) {
    size_t expand;
    if (source->gguf) return fr_mamba_check(source, s, true);
    FR_TRY(fr_json_size(source->text, "expand", 1, 1024, 2, source->where, &expand));
    FR_TRY(fr_mamba_head_dim(source, "head_dim", expand * s->trunk.hidden, s));
    FR_TRY(fr_mamba_limits(source, "time_step_limit", s));
    return fr_mamba_check(source, s, true);
}

/* Writes keys that readers require although the model has no heads and no feed-forward. */
static fr_status put_inner(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    fr_gguf_put_u32(w, ".feed_forward_length", 0);
    fr_gguf_put_u32(w, ".attention.head_count", 0);
    return fr_mamba_put_no_limits(&fr_spec_layer(s, 0)->mamba, where);
}

static const fr_config_part inner = {.read = read_inner, .put = put_inner};

static const fr_config_row rows[] = {
    FR_ONLY("hidden_act", "silu"),
    FR_SIZE(trunk.vocab, "vocab_size", NULL, 1, 1 << 24),
    FR_SIZE(trunk.layers, "num_hidden_layers", ".block_count", 1, FR_LAYERS_MAX, .required = true),
    FR_SIZE(trunk.context_limit, NULL, ".context_length", 1, 1 << 24, .required = true),
    FR_SIZE(trunk.hidden, "hidden_size", ".embedding_length", 1, 1 << 17, .required = true),
    FR_REAL(trunk.eps, "layer_norm_epsilon", ".attention.layer_norm_rms_epsilon", 0, 1, .required = true),
    FR_MAMBA_ROWS("num_heads", "n_groups", "state_size", "conv_kernel", "use_conv_bias", "use_bias"),
    FR_PART(fr_mamba_part),
    FR_PART(inner),
    {0}};

static fr_status no_rope(const fr_source *source, fr_model_spec *s) {
    (void)source;
    (void)s;
    return FR_OK;
}

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    FR_TRY(fr_layers_alike(source, s));
    for (size_t i = 0; i < s->trunk.layers; i++) fr_mamba_set_mixer(&s->trunk.layer[i], FR_MIXER_MAMBA);
    return FR_OK;
}

static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embeddings.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embeddings.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "norm_f.weight", "output_norm.weight"),
    {0},
};

static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "norm.weight", "attn_norm.weight"),
    {0},
};

const fr_family fr_family_mamba2 = {
    .architectures = (const char *const[]){"Mamba2ForCausalLM", "mamba2", NULL},
    .gguf = "mamba2",
    .tokenizer = "gpt2",
    .pre = "mpt",
    .defaults = &defaults,
    .rows = {rows},
    .rope = no_rope,
    .shape = shape,
    .names = &(const fr_tensor_naming){.model = model_names, .layer = {layer_names, fr_mamba_mixer_names}}};
