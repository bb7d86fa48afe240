/* Attention of a batch of rows over one layer of their timelines' caches, by a team of threads.
 *
 * In: rows of queries, the caches. Out: rows of attention's output. The threads divide either queries or positions.
 * Both ways give the same bits:
 *
 *     queries     Queries are ordered by KV head, then by row, then by head of the group. Queries that follow each
 *                 other share a KV head, so a block of a timeline's cache is read once for up to FR_ATTEND_BATCH of
 *                 them.
 *     positions   A thread gets blocks of positions, and runs each block for all queries that see the block. The result
 *                 of a block is partial. After a barrier, the partial results of a query are joined in the order of the
 *                 blocks: split-KV (Dao et al. 2023, "Flash-Decoding"). This is used for decoding if there are about as
 *                 many threads as heads, or more, because dividing queries would leave threads idle. */
#ifndef FR_SRC_ENGINE_LAYERS_ATTEND_H
#define FR_SRC_ENGINE_LAYERS_ATTEND_H

#include "base/pool.h"
#include "src/engine/layers/forward.h"

/* The most queries that the attention kernel gets in one call. The kernel decodes and transposes a block of the cache
 * once for all queries of a call. So the more queries there are, the less this costs for each of them. */
#define FR_ATTEND_BATCH 256

/* Memory for the threads. The team shares one workspace for each set of rows that is run at the same time. */
typedef struct fr_attend_workspace {
    fr_attn_query *queries; /* [threads][FR_ATTEND_BATCH] the queries that a thread gives to the kernel */
    float *plain;           /* [threads][FR_ATTEND_BATCH][head_dim] queries without the rotation (fr_attn_query) */
    size_t head_dim;        /* number of values of the widest heads */
    float *scratch;         /* [threads][scratch_size] the kernel's scratch */
    size_t scratch_size;
    float *partials;      /* partial results of blocks; NULL: there is only one thread */
    size_t partials_size; /* number of floats in `partials` */
    float *sums;          /* [2 * threads][2] m and l (kernels.h) of each query, while splits are joined one after the
                           * other */
} fr_attend_workspace;

/* Takes a workspace for heads of up to head_dim from the arena, which may be a measuring one (base/arena.h). */
void fr_attend_layout(fr_attend_workspace *workspace, fr_arena *arena, size_t head_dim, size_t threads);

typedef struct fr_attend_rows {
    const fr_kernels *kernels;
    const fr_attend_workspace *workspace;
    const fr_batch *batch;
    /* [rows] the positions that each row sees on its own timeline; NULL: a row sees all positions up to its own. Within
     * a timeline, first and last positions ascend from row to row. If there are sights, `span` has no effect. */
    const fr_sight *sights;
    size_t layer;   /* layer of the caches */
    const float *q; /* [rows, stride] for each row `heads` queries, which have the cache's head_dim values each */
    size_t q_step;  /* number of values between the beginnings of two queries */
    float *out;     /* [rows, stride] for each row `heads` outputs, which have the cache's value_dim values each */
    size_t stride, heads;
    size_t kv_first, kv_heads; /* kv_first: number of the first KV head that the queries read, among the heads that the
                                * cache keeps; kv_heads: number of these heads */
    size_t span;     /* the most positions that a row without a sight sees, counted back from the row's own position; 0:
                      * all positions */
    bool chunked;    /* a row without a sight sees only positions of its own chunk; a chunk has `span` positions */
    bool sees_block; /* a row without a sight also sees the later rows of its picture (fr_row.block_last) */
    float scale, softcap; /* scale and softcap of the scores; softcap 0: scores are not capped */
    const float *sinks;   /* [heads] the scores of attention sinks, which are additional positions without a value;
                           * NULL: there are none */
    const float *slopes;  /* [heads] the slopes of ALiBi (fr_attn_query.slope); NULL: there is no ALiBi */
    bool slopes_stepped;  /* the slopes are Falcon's (fr_attn.slopes_stepped) */
} fr_attend_rows;

/* Gives the row and the head of a query by its number. Queries are numbered by KV head, then by row, then by head of
 * the KV head's group. Code that prepares queries divides them in the same order. So each thread reads queries that it
 * wrote itself. */
void fr_attend_place(size_t number, size_t rows, size_t heads, size_t kv_heads, size_t *row, size_t *head);

/* Runs attention. The whole team calls this; a barrier is needed before and after the call. */
void fr_attend_run(const fr_team *team, const fr_attend_rows *rows);

#endif
