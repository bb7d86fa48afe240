/* OPT and Galactica: config.json of OPTForCausalLM; llama.cpp has no GGUF for them. Source: transformers 5.24, model
 * opt. A learned table has a row for each position, after two other rows. The 350M model has an early form: it applies
 * a norm to the residual stream after attention or feed-forward is added, and the rows of its embedding table are
 * narrower than the stream. */
#include "base/error.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {.trunk = {.vocab = 50272,
                                                 .hidden = 768,
                                                 .layers = 12,
                                                 .context_limit = 2048,
                                                 .eps = 1e-5F,
                                                 .layer_norm = true,
                                                 .position_offset = 2},
                                       .layer = {.attention = {.heads = 12, .qkv_bias = true, .o_bias = true},
                                                 .ffn = {.width = 3072, .activation = FR_RELU, .biased = true}}};

static fr_status read_norms(const fr_source *source, fr_model_spec *s) {
    bool before, removed, weighted;
    size_t hidden = s->trunk.hidden, *width = &s->trunk.embed_width;
    FR_TRY(fr_json_bool(source->text, "do_layer_norm_before", true, source->where, &before));
    FR_TRY(fr_json_bool(source->text, "_remove_final_layer_norm", false, source->where, &removed));
    FR_TRY(fr_json_bool(source->text, "layer_norm_elementwise_affine", true, source->where, &weighted));
    FR_TRY(fr_json_size(source->text, "word_embed_proj_dim", 1, 1 << 17, (int64_t)hidden, source->where, width));
    s->layer.norms = before ? FR_NORMS_BEFORE : FR_NORMS_AFTER;
    s->trunk.no_last_norm = !before || removed;
    s->trunk.plain_norms = !weighted;
    s->layer.attention.head_dim = hidden / s->layer.attention.heads;
    if (*width == hidden) *width = 0;
    if (*width < hidden) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: word_embed_proj_dim %zu is not built where hidden_size is less", source->where,
                   *width);
}

static const fr_config_part norms = {.read = read_norms};
static const fr_config_row own[] = {FR_ACTIVATION("activation_function"),
                                    FR_SIZE(layer.ffn.width, "ffn_dim", NULL, 1, 1 << 22),
                                    FR_FLAG(layer.attention.qkv_bias, "enable_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "enable_bias", NULL),
                                    FR_FLAG(layer.ffn.biased, "enable_bias", NULL),
                                    {0}};
static const fr_config_row last[] = {FR_PART(norms), {0}};

#define NORM(at, name, ...)                                                      \
    FR_VECTOR(fr_layer, at, HIDDEN, name ".weight", NULL, .needs = __VA_ARGS__), \
        FR_VECTOR(fr_layer, at##_bias, HIDDEN, name ".bias", NULL, .needs = __VA_ARGS__)
static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, EMBEDDING, "lm_head.weight", NULL, .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, EMBEDDING, "embed_tokens.weight", NULL),
    FR_TABLE(fr_trunk, embedding, VOCAB, EMBEDDING, "embed_tokens.weight", NULL),
    FR_TABLE(fr_trunk, positions, POSITIONS, HIDDEN, "embed_positions.weight", NULL),
    FR_MATRIX(fr_trunk, project_in, HIDDEN, EMBEDDING, "project_in.weight", NULL, .needs = FR_IF_EMBED_WIDTH),
    FR_MATRIX(fr_trunk, project_out, EMBEDDING, HIDDEN, "project_out.weight", NULL, .needs = FR_IF_EMBED_WIDTH),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "final_layer_norm.weight", NULL, .needs = FR_IF_LAST_NORM),
    FR_VECTOR(fr_trunk, norm_bias, HIDDEN, "final_layer_norm.bias", NULL, .needs = FR_IF_LAST_NORM),
    {0}};
static const fr_tensor_name layer_names[] = {
    NORM(input_norm, "self_attn_layer_norm", FR_IF_INPUT_NORM),
    NORM(post_attn_norm, "self_attn_layer_norm", FR_IF_NORMS_AFTER),
    NORM(pre_ffn_norm, "final_layer_norm", FR_IF_FFN_NORM),
    NORM(post_ffn_norm, "final_layer_norm", FR_IF_NORMS_AFTER),
    FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, "self_attn.out_proj.weight", NULL),
    FR_VECTOR(fr_layer, attention.o_bias, HIDDEN, "self_attn.out_proj.bias", NULL, .needs = FR_IF_O_BIAS),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "fc1.weight", NULL),
    FR_VECTOR(fr_layer, ffn.gate_bias, FFN, "fc1.bias", NULL, .needs = FR_IF_FFN_BIASED),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "fc2.weight", NULL),
    FR_VECTOR(fr_layer, ffn.down_bias, HIDDEN, "fc2.bias", NULL, .needs = FR_IF_FFN_BIASED),
    {0}};

const fr_family fr_family_opt = {
    .architectures = (const char *const[]){"OPTForCausalLM", NULL},
    .defaults = &defaults,
    .rows = {own, fr_size_keys, last},
    .rope = fr_positions_learned,
    .names = &(const fr_tensor_naming){.model = model_names, .layer = {layer_names, fr_attention_names}}};
