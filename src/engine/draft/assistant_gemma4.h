/* The Gemma 4 assistant's weights: a few layers of queries only, which read the target's KV.
 *
 * In: a checkpoint of Gemma4AssistantForCausalLM (or one of its GGUF forms) and the target it drafts for. Out:
 * fr_assistant, checked against the target: backbone width, vocabulary, head sizes, the KV layers it reads. */
#ifndef FR_SRC_ENGINE_DRAFT_ASSISTANT_GEMMA4_H
#define FR_SRC_ENGINE_DRAFT_ASSISTANT_GEMMA4_H

#include "src/engine/draft/draft.h"

typedef struct fr_assistant {
    fr_trunk trunk;          /* the assistant's layers; their kv indices point into the target's cache */
    fr_matrix pre, post;     /* pre [hidden, 2 * backbone] makes the layers' input; post [backbone, hidden] makes the
                              * next hidden row from the layers' output */
    size_t clusters;         /* 0: the head has no centroids */
    size_t cluster_size;     /* vocab / clusters */
    size_t top;              /* clusters that a step scores */
    fr_matrix centroids;     /* [clusters, hidden] a row for each cluster, whose product scores the cluster */
    const int32_t *ordering; /* [vocab] the ids cluster by cluster: cluster c has those from ordering[c * cluster_size]
                              * on */
    int32_t *inverted;       /* the memory of `ordering`, if the file stores each id's cluster and the ordering had to
                              * be computed from that */
} fr_assistant;

/* Opens an assistant and checks that it fits its target. If target is NULL, checks only what can be checked without a
 * target; such an assistant can be described, but not run. */
fr_status fr_assistant_open(fr_assistant *assistant, const fr_model *target, const fr_checkpoint *files,
                            fr_weights *weights);
void fr_assistant_close(fr_assistant *assistant);

/* The form of an assistant in GGUF. A plain head is written as llama.cpp's converter writes it, which drops centroids;
 * a head with centroids is written as AtomicChat's fork writes it. fr_assistant_gguf gives the architecture.
 * fr_assistant_name gives the name in GGUF of a published tensor that is not the trunk's, or NULL if it has none.
 * fr_assistant_put_keys writes the keys; the trunk's spec, post.features, clusters and top must be set before. */
const char *fr_assistant_gguf(const fr_assistant *assistant);
const char *fr_assistant_name(const fr_assistant *assistant, const char *published);
fr_status fr_assistant_put_keys(const fr_assistant *assistant, const char *where, fr_gguf_writer *writer);

#endif
