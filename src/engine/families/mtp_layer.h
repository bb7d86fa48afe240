/* The tensors of a chained MTP layer, which is one decoder layer that is applied again and again to make drafts.
 *
 * Pair p consists of the target's hidden row of position p after its final norm, and of the embedding of the token at
 * position p + 1. The layer computes
 *
 *     x = eh_proj([enorm(embedding) ; hnorm(hidden)]); x through the layer; n = norm(x); logits = head(n)
 *
 * and the logits predict the token at position p + 2. The layer has a cache of keys and values of its own, in which
 * pair p is at slot p. The rotary position of pair p is p + 1. In a chain of drafts, the next pair consists of n and
 * the draft.
 *
 * A family with such a layer in its checkpoints (GLM, DeepSeek, Qwen3.5) lists the names of the layer's tensors
 * (fr_tensor_naming.mtp, and the names of a layer after the last one). draft_mtp.c does the rest. */
#ifndef FR_SRC_ENGINE_FAMILIES_MTP_LAYER_H
#define FR_SRC_ENGINE_FAMILIES_MTP_LAYER_H

#include "src/engine/families/family.h"
#include "src/engine/layers/tensor_names.h"

/* An opened layer; immutable. */
typedef struct fr_mtp_layer {
    const float *enorm, *hnorm; /* [hidden] the norms of the token's embedding and of the hidden row */
    const float *norm;          /* [hidden] the weights of the final norm, which is the layer's own or the target's */
    fr_matrix eh_proj;          /* [hidden, 2 * hidden] makes the layer's input from the embedding and the hidden row
                                 * after their norms */
    fr_matrix embedding;        /* [vocab, hidden] the layer's own embedding table; if it has none, the target's
                                 * table */
    fr_matrix head;             /* [vocab, hidden] the layer's own head or the target's */
    bool packed;                /* at least one matrix is packed */
    bool blank_first;           /* pair 0 has zeros in place of its embedding, as in vLLM */
    bool hidden_first;          /* the first columns of eh_proj multiply the output of hnorm, and the last columns that
                                 * of enorm */
    fr_layer_spec spec;         /* the layer's spec; its keys and values are layer 0 of its own cache */
    fr_layer layer;
} fr_mtp_layer;

/* The names of the tensors for fr_mtp_layer in GLM and DeepSeek. The embedding table, the head and the norm before the
 * head may be the model's, as in llama.cpp (src/models/glm4-moe.cpp, qwen35.cpp). */
extern const fr_tensor_name fr_mtp_names[];

/* The names of the tensors for fr_mtp_layer in Qwen3-Next and Qwen3.5. The norms of their MTP layers are stored in the
 * same form as the model's norms. K-EXAONE and Mellum 2 have the same names. */
extern const fr_tensor_name fr_qwen_mtp_names[];

/* Sets spec->mtp_layers to 0 if the files lack the MTP layer that the configuration names. The program that saved the
 * files may have dropped it. */
void fr_mtp_keep(const fr_source *source, const fr_tensor_naming *naming, fr_model_spec *spec);

/* The `put` function of an fr_config_part that reads the number of MTP layers: writes the key for this number. */
fr_status fr_mtp_put(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer);

#endif
