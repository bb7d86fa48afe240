/* The weights of a Gemma 4 assistant: a few layers that have only queries and read keys and values from the target's
 * cache.
 *
 * In: a checkpoint of Gemma4AssistantForCausalLM (or one of its GGUF forms), and the target for which it drafts. Out:
 * fr_assistant. Its backbone width, its vocabulary, the sizes of its heads and the layers whose keys and values it
 * reads are checked against the target. */
#ifndef FR_SRC_ENGINE_DRAFT_ASSISTANT_GEMMA4_H
#define FR_SRC_ENGINE_DRAFT_ASSISTANT_GEMMA4_H

#include "src/engine/draft/draft.h"

typedef struct fr_assistant {
    fr_trunk trunk;          /* the assistant's layers; their kv indices point into the target's cache */
    fr_matrix pre, post;     /* pre [hidden, 2 * backbone] makes the layers' input; post [backbone, hidden] makes the
                              * next hidden row from the layers' output. backbone is the width of the target's hidden
                              * rows */
    size_t clusters;         /* number of clusters; 0: the head has no centroids */
    size_t cluster_size;     /* vocab / clusters */
    size_t top;              /* clusters that a step scores */
    fr_matrix centroids;     /* [clusters, hidden] one row for each cluster; the product with this row is the cluster's
                              * score */
    const int32_t *ordering; /* [vocab] the ids, ordered by clusters; the ids of cluster c begin at index c *
                              * cluster_size */
    int32_t *inverted;       /* the memory of `ordering`, if the file stores the cluster of each id and the ordering had
                              * to be computed */
} fr_assistant;

/* Opens an assistant and checks that it fits its target. If `target` is NULL, checks only what needs no target; such an
 * assistant can be described, but it cannot be run. */
fr_status fr_assistant_open(fr_assistant *assistant, const fr_model *target, const fr_checkpoint *files,
                            fr_weights *weights);
void fr_assistant_close(fr_assistant *assistant);

/* The form of an assistant in GGUF. A head without centroids is written as llama.cpp's converter writes it. A head with
 * centroids is written as AtomicChat's fork of llama.cpp writes it. fr_assistant_gguf gives the architecture.
 * fr_assistant_name gives the GGUF name of a published tensor that is not part of the trunk, or NULL if the tensor has
 * no such name. fr_assistant_put_keys writes the keys; the trunk's spec, post.features, clusters and top must be set
 * before. */
const char *fr_assistant_gguf(const fr_assistant *assistant);
const char *fr_assistant_name(const fr_assistant *assistant, const char *published);
fr_status fr_assistant_put_keys(const fr_assistant *assistant, const char *where, fr_gguf_writer *writer);

#endif
