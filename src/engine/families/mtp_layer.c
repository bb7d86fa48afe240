/* The names of the tensors that an MTP layer has in addition to those of a layer: see mtp_layer.h. */
#include "src/engine/families/mtp_layer.h"

#define NORM(of, at, ...) FR_VECTOR(of, at, __VA_ARGS__, .norm = true)

const fr_tensor_name fr_mtp_names[] = {
    FR_MATRIX(fr_mtp_layer, eh_proj, HIDDEN, TWICE_HIDDEN, "eh_proj.weight", "nextn.eh_proj.weight"),
    FR_TABLE(fr_mtp_layer, embedding, VOCAB, HIDDEN, "embed_tokens.weight", "nextn.embed_tokens.weight",
             .needs = FR_IF_THERE),
    FR_VECTOR(fr_mtp_layer, enorm, HIDDEN, "enorm.weight", "nextn.enorm.weight"),
    FR_VECTOR(fr_mtp_layer, hnorm, HIDDEN, "hnorm.weight", "nextn.hnorm.weight"),
    FR_MATRIX(fr_mtp_layer, head, VOCAB, HIDDEN, "shared_head.head.weight", "nextn.shared_head_head.weight",
              .needs = FR_IF_THERE),
    FR_VECTOR(fr_mtp_layer, norm, HIDDEN, "shared_head.norm.weight", "nextn.shared_head_norm.weight",
              .needs = FR_IF_THERE),
    {0},
};

/* The tensors that an MTP layer has in addition to those of a layer. Published MTP layers use the model's embedding
 * table and head. Other files may have separate ones. */
const fr_tensor_name fr_qwen_mtp_names[] = {
    FR_MATRIX(fr_mtp_layer, eh_proj, HIDDEN, TWICE_HIDDEN, "fc.weight", "nextn.eh_proj.weight"),
    FR_TABLE(fr_mtp_layer, embedding, VOCAB, HIDDEN, NULL, "nextn.embed_tokens.weight", .needs = FR_IF_THERE),
    NORM(fr_mtp_layer, enorm, HIDDEN, "pre_fc_norm_embedding.weight", "nextn.enorm.weight"),
    NORM(fr_mtp_layer, hnorm, HIDDEN, "pre_fc_norm_hidden.weight", "nextn.hnorm.weight"),
    FR_MATRIX(fr_mtp_layer, head, VOCAB, HIDDEN, NULL, "nextn.shared_head_head.weight", .needs = FR_IF_THERE),
    NORM(fr_mtp_layer, norm, HIDDEN, "norm.weight", "nextn.shared_head_norm.weight", .needs = FR_IF_THERE),
    {0},
};

void fr_mtp_keep(const fr_source *source, const fr_tensor_naming *naming, fr_model_spec *spec) {
    if (!source->weights) return;
    fr_binding beside = fr_binding_mtp(source->weights, naming, &spec->trunk, true);
    if (!fr_weights_has_any(source->weights, beside.prefix)) spec->mtp_layers = 0;
}

fr_status fr_mtp_put(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer) {
    (void)spec;
    (void)where;
    if (mtp_layers) fr_gguf_put_u32(writer, ".nextn_predict_layers", (uint32_t)mtp_layers);
    return FR_OK;
}
