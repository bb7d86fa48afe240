/* The GLM family: what its layers are, and what its tensors are called. See glm.h.
 *
 * Names in GGUF: github.com/ggml-org/llama.cpp, conversion/glm.py. */
#include "src/families/glm.h"

#include "base/error.h"
#include "src/families/mtp_layer.h"
#include "src/model/model.h"
#include "src/vision/vision.h"

/* GGUF has the gate, then what it gates, as one tensor too. */
static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight"),
    FR_FUSED_QKV(QUERIES),
    FR_MATRIX(fr_layer, q, QUERIES, HIDDEN, "self_attn.q_proj.weight", "attn_q.weight", .order = FR_ROWS_TO_NEOX),
    FR_MATRIX(fr_layer, k, KEYS, HIDDEN, "self_attn.k_proj.weight", "attn_k.weight", .order = FR_ROWS_TO_NEOX),
    FR_MATRIX(fr_layer, v, KEYS, HIDDEN, "self_attn.v_proj.weight", "attn_v.weight"),
    FR_MATRIX(fr_layer, o, HIDDEN, QUERIES, "self_attn.o_proj.weight", "attn_output.weight"),
    FR_VECTOR(fr_layer, post_attn_norm, HIDDEN, "post_self_attn_layernorm.weight", "post_attention_norm.weight"),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "post_attention_layernorm.weight", "ffn_norm.weight"),
    FR_NAMED(fr_layer, gate_up, FR_SLOT_PARTS, FFN, HIDDEN, "mlp.gate_up_proj.weight", "ffn_up.weight"),
    FR_MATRIX(fr_layer, down, HIDDEN, FFN, "mlp.down_proj.weight", "ffn_down.weight"),
    FR_VECTOR(fr_layer, post_ffn_norm, HIDDEN, "post_mlp_layernorm.weight", "post_ffw_norm.weight"),
    {0},
};

static const char *const extras[] = {NULL};

static const fr_tensor_naming names = {
    .model = fr_model_names, .layer = {layer_names}, .mtp = fr_mtp_names, .extras = extras};

static fr_status glm_read(fr_model *model, fr_trunk_spec *spec) {
    fr_glm_config config;
    FR_TRY(fr_glm_config_read(&config, &model->weights));
    FR_TRY(fr_uniform_spec(&config.uniform, spec));
    model->mtp_layers = fr_chained_there(&model->weights, spec, config.mtp_layers);
    model->image_token = config.image_token;
    if (!fr_vision_exists(&model->weights)) return FR_OK;
    return fr_vision_open(&model->weights, model->kernels, spec->hidden, &model->vision);
}

static const char *const architectures[] = {"GlmOcrForConditionalGeneration", "glm4", NULL};

const fr_family fr_family_glm = {.architectures = architectures,
                                 .gguf = "glm4",
                                 .tokenizer = "gpt2",
                                 .pre = "glm4",
                                 .picture = "<|image|>",
                                 .names = &names,
                                 .read = glm_read,
                                 .put_keys = fr_glm_put_keys,
                                 .gguf_neox = fr_glm_gguf_halves};
