/* The Qwen3.5 family: what its layers are, and what its tensors are called. See qwen35.h.
 *
 * Names in GGUF, and what is changed on the way there: github.com/ggml-org/llama.cpp, conversion/qwen.py. Published
 * norms hold what their weights are more than one, but for the one that gates DeltaNet's output. */
#include "src/families/qwen35.h"

#include "base/error.h"
#include "src/families/mtp_layer.h"
#include "src/model/model.h"

#define NORM(of, at, ...) FR_VECTOR(of, at, __VA_ARGS__, .values = FR_LESS_ONE)

static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    NORM(fr_trunk, norm, HIDDEN, "norm.weight", "output_norm.weight"),
    {0},
};

static const fr_tensor_name layer_names[] = {
    NORM(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight"),

    FR_FUSED_QKV(QUERIES_GATED, .needs = FR_IF_ATTENTION),
    FR_MATRIX(fr_layer, q, QUERIES_GATED, HIDDEN, "self_attn.q_proj.weight", "attn_q.weight", .needs = FR_IF_ATTENTION),
    FR_MATRIX(fr_layer, k, KEYS, HIDDEN, "self_attn.k_proj.weight", "attn_k.weight", .needs = FR_IF_ATTENTION),
    FR_MATRIX(fr_layer, v, KEYS, HIDDEN, "self_attn.v_proj.weight", "attn_v.weight", .needs = FR_IF_ATTENTION),
    FR_MATRIX(fr_layer, o, HIDDEN, QUERIES, "self_attn.o_proj.weight", "attn_output.weight", .needs = FR_IF_ATTENTION),
    NORM(fr_layer, q_norm, HEAD, "self_attn.q_norm.weight", "attn_q_norm.weight", .needs = FR_IF_ATTENTION),
    NORM(fr_layer, k_norm, HEAD, "self_attn.k_norm.weight", "attn_k_norm.weight", .needs = FR_IF_ATTENTION),

    FR_MATRIX(fr_layer, in_qkv, DELTA_CHANNELS, HIDDEN, "linear_attn.in_proj_qkv.weight", "attn_qkv.weight",
              .needs = FR_IF_DELTANET, .order = FR_ROWS_TILED),
    FR_MATRIX(fr_layer, in_z, DELTA_VALUES, HIDDEN, "linear_attn.in_proj_z.weight", "attn_gate.weight",
              .needs = FR_IF_DELTANET, .order = FR_ROWS_TILED),
    FR_MATRIX(fr_layer, in_b, DELTA_HEADS, HIDDEN, "linear_attn.in_proj_b.weight", "ssm_beta.weight",
              .needs = FR_IF_DELTANET, .order = FR_ROWS_TILED),
    FR_MATRIX(fr_layer, in_a, DELTA_HEADS, HIDDEN, "linear_attn.in_proj_a.weight", "ssm_alpha.weight",
              .needs = FR_IF_DELTANET, .order = FR_ROWS_TILED),
    FR_MATRIX(fr_layer, out, HIDDEN, DELTA_VALUES, "linear_attn.out_proj.weight", "ssm_out.weight",
              .needs = FR_IF_DELTANET, .order = FR_COLS_TILED),
    FR_NAMED(fr_layer, conv, FR_SLOT_CONV, DELTA_CHANNELS, CONV_KERNEL, "linear_attn.conv1d.weight",
             "ssm_conv1d.weight", .needs = FR_IF_DELTANET, .order = FR_ROWS_TILED),
    FR_VECTOR(fr_layer, dt_bias, DELTA_HEADS, "linear_attn.dt_bias", "ssm_dt.bias", .needs = FR_IF_DELTANET,
              .order = FR_ROWS_TILED),
    FR_VECTOR(fr_layer, decay, DELTA_HEADS, "linear_attn.A_log", "ssm_a", .needs = FR_IF_DELTANET,
              .order = FR_ROWS_TILED, .values = FR_LOG_OF_MINUS),
    FR_VECTOR(fr_layer, value_norm, DELTA_HEAD, "linear_attn.norm.weight", "ssm_norm.weight", .needs = FR_IF_DELTANET),

    NORM(fr_layer, pre_ffn_norm, HIDDEN, "post_attention_layernorm.weight", "post_attention_norm.weight"),
    {0},
};

/* What the MTP layer has beside a layer's. Published ones share the model's table and head; files may have others. */
static const fr_tensor_name mtp_names[] = {
    FR_MATRIX(fr_mtp_layer, eh_proj, HIDDEN, TWICE_HIDDEN, "fc.weight", "nextn.eh_proj.weight"),
    FR_TABLE(fr_mtp_layer, embedding, VOCAB, HIDDEN, NULL, "nextn.embed_tokens.weight", .needs = FR_IF_THERE),
    NORM(fr_mtp_layer, enorm, HIDDEN, "pre_fc_norm_embedding.weight", "nextn.enorm.weight"),
    NORM(fr_mtp_layer, hnorm, HIDDEN, "pre_fc_norm_hidden.weight", "nextn.hnorm.weight"),
    FR_MATRIX(fr_mtp_layer, head, VOCAB, HIDDEN, NULL, "nextn.shared_head_head.weight", .needs = FR_IF_THERE),
    NORM(fr_mtp_layer, norm, HIDDEN, "norm.weight", "nextn.shared_head_norm.weight", .needs = FR_IF_THERE),
    {0},
};

static const char *const mtp[] = {"mtp.", "model.mtp.", NULL};

/* Its tower, which is not built. */
static const char *const extras[] = {"model.visual.*", "visual.*", NULL};

static const fr_tensor_naming names = {.model = model_names,
                                       .layer = {layer_names, fr_mixture_names},
                                       .mtp = mtp_names,
                                       .mtp_prefixes = mtp,
                                       .extras = extras};

static fr_status read_any(fr_model *model, fr_trunk_spec *spec, bool mixture) {
    fr_qwen35_config config;
    FR_TRY(fr_qwen35_config_read(&config, &model->weights, mixture));
    FR_TRY(fr_qwen35_spec(&config, spec));
    fr_binding beside = fr_binding_mtp(&model->weights, &names, spec, true);
    model->mtp_layers = fr_weights_has_any(&model->weights, beside.prefix) ? config.mtp_layers : 0;
    return FR_OK;
}

static fr_status qwen35_read(fr_model *model, fr_trunk_spec *spec) {
    return read_any(model, spec, false);
}

static fr_status qwen35_moe_read(fr_model *model, fr_trunk_spec *spec) {
    return read_any(model, spec, true);
}

static const char *const architectures[] = {"Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration", "qwen35", NULL};
static const char *const mixtures[] = {"Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration", "qwen35moe",
                                       NULL};

const fr_family fr_family_qwen35 = {.architectures = architectures,
                                    .gguf = "qwen35",
                                    .tokenizer = "gpt2",
                                    .pre = "qwen35",
                                    .names = &names,
                                    .read = qwen35_read,
                                    .put_keys = fr_qwen35_put_keys};

const fr_family fr_family_qwen35_moe = {.architectures = mixtures,
                                        .gguf = "qwen35moe",
                                        .tokenizer = "gpt2",
                                        .pre = "qwen35",
                                        .names = &names,
                                        .read = qwen35_moe_read,
                                        .put_keys = fr_qwen35_put_keys};
