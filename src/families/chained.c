/* The names of an MTP layer's tensors, beside those of a layer: see chained.h. */
#include "src/families/chained.h"

const fr_name fr_usual_chained_names[] = {
    FR_MATRIX(fr_chained, eh_proj, HIDDEN, TWICE_HIDDEN, "eh_proj.weight", "nextn.eh_proj.weight"),
    FR_TABLE(fr_chained, embedding, VOCAB, HIDDEN, "embed_tokens.weight", "nextn.embed_tokens.weight",
             .needs = FR_IF_THERE),
    FR_VECTOR(fr_chained, enorm, HIDDEN, "enorm.weight", "nextn.enorm.weight"),
    FR_VECTOR(fr_chained, hnorm, HIDDEN, "hnorm.weight", "nextn.hnorm.weight"),
    FR_MATRIX(fr_chained, head, VOCAB, HIDDEN, "shared_head.head.weight", "nextn.shared_head_head.weight",
              .needs = FR_IF_THERE),
    FR_VECTOR(fr_chained, norm, HIDDEN, "shared_head.norm.weight", "nextn.shared_head_norm.weight",
              .needs = FR_IF_THERE),
    {0},
};

size_t fr_chained_there(fr_weights *weights, const fr_trunk_spec *spec, size_t announced) {
    fr_binding mtp = fr_binding_layer(weights, spec, spec->layer, spec->layers);
    return fr_weights_has_any(weights, mtp.prefix) ? announced : 0;
}
