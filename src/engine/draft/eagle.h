/* EAGLE drafters: reads their configuration and binds their weights.
 *
 * In: a checkpoint of EAGLE-3 or EAGLE-1, and the target for which it drafts. The checkpoint is a folder in one of the
 * published forms, or llama.cpp's GGUF. Out: fr_eagle. Its layers, width, vocabulary and architecture are checked
 * against the target.
 *
 * EAGLE-3 (Li et al. 2025, arXiv:2503.01840; llama.cpp src/models/eagle3.cpp) reads t_p, the inputs of some of the
 * target's layers at position p, and works by pairs (pairs.h). Pair p begins with g = fc(t_p); EAGLE-3.1 first applies
 * a norm to t_p. Within a chain of drafts, g is the output x of the pair before. The first layer then computes
 *     x = g + attention([embedding_norm(embedding of token p + 1) ; hidden_norm(g)]); x += feed-forward(x)
 * and head(norm(x)) scores a vocabulary of the drafter's own. The layer is like one of Llama's or of Qwen3's. In the
 * second case it applies a norm to the heads of queries and keys, and its attention may slide. In folders of the
 * speculators library, more layers may follow; they are layers of that family and have its names (speculators 0.9.0,
 * models/eagle3; vLLM llama_eagle3.py).
 *
 * EAGLE-1 (Li et al. 2024, arXiv:2401.15077; SafeAILab/EAGLE cnets1) reads h_p, the target's hidden row after the final
 * norm at position p. It runs x = fc([embedding of token p + 1 ; h_p]) + bias through a layer without input norm. The
 * target's head scores the result without a norm. */
#ifndef FR_SRC_ENGINE_DRAFT_EAGLE_H
#define FR_SRC_ENGINE_DRAFT_EAGLE_H

#include "src/engine/draft/pairs.h"
#include "src/engine/families/family.h"

typedef struct fr_eagle_config {
    fr_model_spec spec; /* the drafter's layers, whose memory the opened drafter takes over; vocab: the number of the
                         * target's ids */
    size_t draft_vocab; /* number of ids that the drafter's own head scores */
    size_t target_hidden;
    const char *width_key, *vocab_key; /* the keys from which the target's width and number of ids were read */
    fr_aux_layers aux_layers;
    bool norm_before_residual; /* attention's output is added to hidden_norm(g), not to g itself */
    bool norm_before_fc;       /* EAGLE-3.1: one norm is applied to the inputs of all aux layers together, before fc */
    /* a separate norm is applied to the input of each aux layer, before fc */
    bool fc_norm;
    bool norm_output;        /* the next pair gets norm(x) instead of x */
    const char *target;      /* the architecture of the target for which the drafter was made; NULL: its files don't
                              * name it */
    bool default_aux_layers; /* the files list no aux layers, so these are chosen by the target's number of layers */
} fr_eagle_config;

/* Reads EAGLE-3's configuration and checks it against the target. If `target` is NULL, checks only what needs no
 * target. On success the caller owns config->spec.trunk.layer, which opening the drafter takes over. */
fr_status fr_eagle3_config_read(fr_eagle_config *config, fr_weights *weights, const fr_model *target);

/* Does the same for EAGLE-1. */
fr_status fr_eagle1_config_read(fr_eagle_config *config, fr_weights *weights, const fr_model *target);

/* The properties that the drafter's files require of a target. */
typedef struct fr_eagle_needs {
    /* hidden: the target's width; layers: the smallest number of layers that the target may have */
    size_t hidden, layers;
    const char *architecture; /* the target's architecture; NULL: the files don't name it */
    bool default_aux_layers;
} fr_eagle_needs;

/* An opened drafter; immutable. */
typedef struct fr_eagle {
    fr_pair_net pairs;
    /* the drafter's layers. The trunk's head scores the drafter's ids, and the trunk's embedding table has rows for the
     * target's ids */
    fr_trunk trunk;
    /* fc is [hidden, aux_layers * target_hidden] in EAGLE-3, and [hidden, 2 * hidden] in EAGLE-1 */
    fr_matrix fc;
    const float *fc_bias;                      /* [hidden]; NULL: none */
    const float *fc_norms[FR_AUX_LAYERS];      /* norms of fc's input. The input has one equal part for each norm, in
                                                * order */
    size_t fc_norm_count;                      /* number of norms; 0: fc reads the rows without a norm */
    const float *embedding_norm, *hidden_norm; /* [hidden] the norms of the token's embedding and of the hidden row */
    /* [draft_vocab] the target's id for each of the drafter's ids; NULL: the drafter has the target's ids */
    const int32_t *ids;
    bool own_head, norm_before_residual;
    fr_eagle_needs needs;
} fr_eagle;

/* Binds all tensors. drafter->weights and drafter->target must be set. */
fr_status fr_eagle3_open(fr_eagle *eagle, const fr_eagle_config *config, fr_drafter *drafter);
fr_status fr_eagle1_open(fr_eagle *eagle, const fr_eagle_config *config, fr_drafter *drafter);
void fr_eagle_close(fr_eagle *eagle);

/* EAGLE-3 in GGUF, as llama.cpp's converter writes it. fr_eagle3_name gives the GGUF name of a published tensor and the
 * order of its rows; for a tensor of the layer it gives the name after "blk.0.". It returns false if GGUF has no place
 * for the tensor. fr_eagle_names lists the tensors that are not read. fr_eagle3_put_keys writes the keys of a drafter
 * that was opened from a folder. GGUF can only have drafters of one layer. The tensor d2t has the target's ids in GGUF,
 * and the differences to the drafter's ids in folders. */
bool fr_eagle3_name(const char *published, const char **gguf, fr_tensor_name_found *found);
extern const fr_tensor_naming fr_eagle_names;
extern const fr_tensor_name *const fr_eagle3_layer_names[]; /* tables of the layer's names; NULL ends them */
fr_status fr_eagle3_put_keys(const fr_drafter *drafter, fr_gguf_writer *writer);

/* Writes the input embedding of a pair's token. It comes from the drafter's own table, or from the target's if the
 * drafter has none. */
void fr_eagle_embed(const fr_eagle *eagle, const fr_model *target, const fr_pair *pair, float *out);

#endif
