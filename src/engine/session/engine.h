/* Holds what all sessions of one model share: threads, pages of keys and values, and the memory that a forward works
 * in.
 *
 * In: a model, perhaps a drafter, and options that say how many timelines of how many positions there may be. Out:
 * fr_engine. Sessions are timelines in it (session.h): each has its own tables of pages, and in a forward its rows
 * stand beside those of other sessions (batch.h). A session that was opened alone has an engine of its own. One thread
 * at a time. */
#ifndef FR_SRC_ENGINE_SESSION_ENGINE_H
#define FR_SRC_ENGINE_SESSION_ENGINE_H

#include <sys/types.h>

#include "base/worker.h"
#include "src/engine/cache/kv_prefixes.h"
#include "src/engine/draft/draft.h"
#include "src/engine/session/draft_depth.h"

struct fr_engine {
    const fr_model *model;
    const fr_drafter *drafter; /* NULL: none */
    fr_arena arena;
    fr_plan plan; /* no thread until it is claimed (cores.h) */
    fr_pool *pool;
    pid_t process;      /* process that opened it; a child process has none of its threads */
    size_t capacity;    /* sessions that there is room for */
    bool shares;        /* prompts reuse what other sessions have run; never in a session opened alone */
    size_t context;     /* positions that each session may have */
    size_t chunk;       /* largest number of prompt rows in a forward, for which there is room */
    size_t round_chunk; /* the same in a round of several sessions */
    size_t rows;        /* rows of the largest batch */
    size_t head_rows;   /* rows whose logits are computed at a time */
    size_t checkpoints;
    size_t kv_memory; /* bytes of pages with all heads; 0: what all sessions may need */
    bool swa_full;
    bool drafts; /* sessions draft with the drafter's weights */
    fr_kv_types kv_types;

    fr_kv kv; /* holds no position itself: the pages of all sessions' caches, which have its layout */
    void *activations;
    void *draft_workspace;            /* memory of the drafter's method */
    fr_row *batch;                    /* [rows] of the running forward */
    struct fr_batch_slice *slices;    /* [capacity] the sessions' slices of these rows (batch.h) */
    fr_draft_depth draft_depth;       /* chooses the number of drafts */
    fr_draft_depth_part *depth_parts; /* [capacity] of the sessions that draft_depth chooses for */
    size_t weighing;                  /* number of these in the last round */
    fr_proposal *proposals;           /* [capacity] requests to draft methods */
    fr_draft_view *views;             /* [capacity] what draft methods see of the sessions */
    fr_kv **timelines;                /* [capacity] caches of the sessions; NULL: no session */
    struct fr_session **sessions;     /* [capacity] the sessions */
    float *hidden;                    /* [rows, hidden] */
    const fr_aux_layers *aux_layers;  /* the drafter's; NULL: none */
    float *aux_hidden;                /* [rows, aux_layers, hidden] */
    /* [rows, seen_width] what a draft method sees of the rows: the hidden rows, or their aux_layers */
    const float *seen;
    size_t seen_width;
    size_t runs;   /* number of times that these were written: forwards, scored drafts */
    float *logits; /* [head_rows, vocab] */
    int64_t *best; /* [threads, head_rows] */

    fr_kv_prefixes prefixes;      /* if `shares`: texts that were run before */
    fr_worker *drafting;          /* a session's worker that is drafting on the pool (async_draft.h); NULL: none */
    double files_checked;         /* time when its files were checked last */
    size_t kv_bytes, spare_bytes; /* of the arena: pages, and those of them for checkpoints */
    size_t drafting_bytes;        /* of the arena: what drafting works in */
    struct fr_rank_leader
        *leader; /* tells the other ranks what the engine is asked for (src/api/rank_leader.h); NULL: none */
};

/* Measures an engine: reads the options and lays it out without memory; arena.used is what it would take. sessions 0:
 * the engine of a session that was opened alone, which keeps no pages of earlier texts. fr_engine_create opens it. */
fr_status fr_engine_measure(fr_engine *engine, const fr_model *model, const fr_drafter *drafter,
                            const fr_options *options, size_t sessions);
fr_status fr_engine_create(const fr_model *model, const fr_drafter *drafter, const fr_options *options, size_t sessions,
                           fr_engine **engine);

/* Fails with FR_LOST if a file that the model or its drafter (NULL: none) is mapped from was cut or written to since
 * it was opened. May be called from any thread. */
fr_status fr_files_check(const fr_model *model, const fr_drafter *drafter);

/* Checks the files of the engine's model and drafter, at most a hundred times a second, so that short forwards take no
 * longer for it. */
fr_status fr_engine_check_files(fr_engine *engine);

/* Closes an engine whose sessions are all closed. NULL does nothing. */
void fr_engine_destroy(fr_engine *engine);

/* Fails with FR_USAGE in another process than the one that opened the engine, such as a child made by fork(2), which
 * has none of its threads. */
fr_status fr_engine_check_process(const fr_engine *engine);

/* Gives the sizes that a draft method must have room for in this engine. */
fr_draft_sizes fr_engine_draft_sizes(const fr_engine *engine);

/* Waits for drafts that are under way; their session asks for their status later. */
void fr_engine_settle(fr_engine *engine);

#endif
