/* Chained MTP: one decoder layer that drafts, applied again and again. What a family gives the method.
 *
 * Pair p is (the target's hidden row of position p after its final norm, the embedding of token p + 1):
 *     x = eh_proj([enorm(embedding) ; hnorm(hidden)]); x through the layer; n = norm(x); logits = head(n)
 * which predict token p + 2. The layer has a KV cache of its own, pair p at slot p, and stands at the rotary position
 * of token p + 1. In a chain the next pair is (n, the draft).
 *
 * A family with such a layer in its checkpoints (GLM, DeepSeek, Qwen3.5) has an fr_chained_family; draft_chained.c does
 * the rest. */
#ifndef FR_SRC_CHAINED_H
#define FR_SRC_CHAINED_H

#include "src/families/model.h"

/* An opened layer; immutable. */
typedef struct fr_chained {
    const float *enorm, *hnorm, *norm; /* [hidden] */
    float eps;
    fr_matrix eh_proj;   /* [hidden, 2 * hidden] */
    fr_matrix embedding; /* [vocab, hidden], where the layer has one of its own; else the target's is asked */
    fr_matrix head;      /* [vocab, hidden]: its own or the target's */
    bool packed;         /* some matrix is */
    bool blank_first;    /* pair 0 takes zeros for its embedding, as vLLM's does */
    fr_kv_shape kv;
    void *layer; /* the family's own */
} fr_chained;

/* Rows for the layer: consecutive pairs. */
typedef struct fr_chained_rows {
    float *x; /* [count, hidden] in: what eh_proj gave; out: the layer's output before norm */
    size_t count;
    fr_kv *kv;   /* of one layer */
    size_t slot; /* of the first row: each sees slots 0 to its own */
    const fr_place *places; /* [count] */
} fr_chained_rows;

struct fr_chained_family {
    /* Binds the layer's tensors; head and embedding may be left empty. */
    fr_status (*open)(fr_chained *chained, const fr_model *target, fr_weights *weights);
    void (*close)(fr_chained *chained);

    /* Takes the layer's working rows from the arena (NULL while measuring). */
    void *(*layout)(const fr_chained *chained, const fr_model *target, fr_arena *arena, size_t max_rows,
                    size_t threads);

    /* By the whole team, synchronized before: the layer, in place. A row is complete for its owner (fr_rows_part). */
    void (*run)(const fr_team *team, const fr_chained *chained, void *pass, const fr_chained_rows *rows);
};

#endif
