/* The tensors of a chained MTP layer: one decoder layer that drafts, applied again and again.
 *
 * Pair p is (the target's hidden row of position p after its final norm, the embedding of token p + 1). The layer
 * computes
 *
 *     x = eh_proj([enorm(embedding) ; hnorm(hidden)]); x through the layer; n = norm(x); logits = head(n)
 *
 * and the logits predict token p + 2. The layer has a KV cache of its own, in which pair p is at slot p. The rotary
 * position of pair p is that of token p + 1. In a chain the next pair is (n, the draft).
 *
 * A family with such a layer in its checkpoints (GLM, DeepSeek, Qwen3.5) names its tensors (fr_tensor_naming.mtp, and
 * those of a layer after the last one); draft_mtp.c does the rest. */
#ifndef FR_SRC_ENGINE_FAMILIES_MTP_LAYER_H
#define FR_SRC_ENGINE_FAMILIES_MTP_LAYER_H

#include "src/engine/families/family.h"
#include "src/engine/layers/tensor_names.h"

/* An opened layer; immutable. */
typedef struct fr_mtp_layer {
    const float *enorm, *hnorm; /* [hidden] the norms of the token's embedding and of the hidden row */
    const float *norm;          /* [hidden] the weights of the final norm: the layer's own ones or the target's */
    fr_matrix eh_proj;          /* [hidden, 2 * hidden] makes the layer's input from the two normed rows */
    fr_matrix embedding;        /* [vocab, hidden] if the layer has its own; otherwise the target's is used */
    fr_matrix head;             /* [vocab, hidden] the layer's own or the target's */
    bool packed;                /* at least one matrix is packed */
    bool blank_first;           /* pair 0 uses zeros as its embedding, as in vLLM */
    bool hidden_first;          /* eh_proj's first columns multiply hnorm's output, its last columns enorm's output */
    fr_layer_spec spec;         /* the layer's spec; its K/V is layer 0 of its own cache */
    fr_layer layer;
} fr_mtp_layer;

/* The names of the tensors for fr_mtp_layer in GLM and DeepSeek. Embedding table, head and the head's norm may be the
 * model's, as in llama.cpp (src/models/glm4-moe.cpp, qwen35.cpp). */
extern const fr_tensor_name fr_mtp_names[];

/* The names of the tensors for fr_mtp_layer in Qwen3-Next and Qwen3.5, which store the norms of the MTP layer like
 * those of the model. K-EXAONE and Mellum 2 have the same names. */
extern const fr_tensor_name fr_qwen_mtp_names[];

/* Sets spec->mtp_layers to 0 if the files have no MTP layer although the configuration says so. The program that saved
 * them may have dropped it. */
void fr_mtp_keep(const fr_source *source, const fr_tensor_naming *naming, fr_model_spec *spec);

/* Writes the key of an fr_config_part that reads the number of MTP layers. */
fr_status fr_mtp_put(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer);

#endif
