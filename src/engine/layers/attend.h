/* Attention of a batch of rows over one layer of their timelines' caches, by a team of threads.
 *
 * In: rows of queries, the caches. Out: rows of attention's output. The work is partitioned in one of two ways, which
 * give the same bits:
 *
 *     queries     in the order KV head, row, head of the group: neighbours share a KV head, so a block of a timeline's
 *                 cache is read once for up to FR_ATTEND_BATCH of them.
 *     positions   in blocks, each for all queries that see it. A block's result stays partial, and after a barrier the
 *                 queries' blocks are joined in their order: split-KV (Dao et al. 2023, "Flash-Decoding"). This is for
 *                 decoding with at least about as many threads as heads, where partitioning queries would leave
 *                 threads idle. */
#ifndef FR_SRC_ENGINE_LAYERS_ATTEND_H
#define FR_SRC_ENGINE_LAYERS_ATTEND_H

#include "base/pool.h"
#include "src/engine/layers/forward.h"

/* The most queries that are given to the attention kernel at once. The kernel decodes and transposes a block of the
 * cache once for all of them, so with more queries this costs less for each. */
#define FR_ATTEND_BATCH 256

/* Memory for the threads; the team shares one workspace for each stream of rows that runs at a time. */
typedef struct fr_attend_workspace {
    fr_attn_query *queries; /* [threads][FR_ATTEND_BATCH] the queries that a thread gives to the kernel */
    float *plain;           /* [threads][FR_ATTEND_BATCH][head_dim] queries before their rotation (fr_attn_query) */
    size_t head_dim;        /* number of values of the widest heads */
    float *scratch;         /* [threads][scratch_size] the kernel's scratch */
    size_t scratch_size;
    float *partials;      /* results of single blocks; NULL: there is only one thread */
    size_t partials_size; /* number of floats in `partials` */
    float *sums;          /* [2 * threads][2] m and l (kernels.h) of each query whose blocks are joined split by
                           * split */
} fr_attend_workspace;

/* Takes a workspace for heads of up to head_dim from the arena, which may be a measuring one (base/arena.h). */
void fr_attend_layout(fr_attend_workspace *workspace, fr_arena *arena, size_t head_dim, size_t threads);

typedef struct fr_attend_rows {
    const fr_kernels *kernels;
    const fr_attend_workspace *workspace;
    const fr_batch *batch;
    /* [rows] the positions that each row sees on its own timeline; NULL: a row sees all positions up to its own. Within
     * a timeline, the first and the last positions ascend from row to row. With sights, `span` has no effect. */
    const fr_sight *sights;
    size_t layer;   /* layer of the caches */
    const float *q; /* [rows, stride]: `heads` queries of the cache's head_dim each */
    size_t q_step;  /* number of values from one query to the next */
    float *out;     /* [rows, stride]: `heads` outputs of the cache's value_dim each */
    size_t stride, heads;
    size_t kv_first, kv_heads; /* the KV heads that the queries read, counted among the heads that the cache keeps */
    size_t span;     /* the most positions that a row without a sight sees, counted back from the row's own; 0: all */
    bool chunked;    /* a row without a sight sees only positions of its own chunk, of `span` positions */
    bool sees_block; /* a row without a sight also sees the later rows of its picture (fr_row.block_last) */
    float scale, softcap; /* scale and softcap of the scores; softcap 0: none */
    const float *sinks;   /* [heads] the scores of attention sinks, extra positions without a value; NULL: none */
    const float *slopes;  /* [heads] the slopes of ALiBi (fr_attn_query.slope); NULL: none */
    bool slopes_stepped;  /* the slopes are Falcon's (fr_attn.slopes_stepped) */
} fr_attend_rows;

/* Gives the row and the head of a query by its number. Queries are numbered by KV head, then by row, then by head of
 * the KV head's group. Code that prepares queries divides them in the same order, so that each thread reads queries
 * that it wrote itself. */
void fr_attend_place(size_t number, size_t rows, size_t heads, size_t kv_heads, size_t *row, size_t *head);

/* Runs attention. The whole team calls this; a barrier is needed before and after the call. */
void fr_attend_run(const fr_team *team, const fr_attend_rows *rows);

#endif
