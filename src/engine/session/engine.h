/* What sessions of one model have in common: threads, pages of keys and values, and all that a forward works in.
 *
 * In: a model, perhaps a drafter, options that say how many timelines of how many positions there may be. Out:
 * fr_engine. Sessions are timelines in it (session.h): each has its own tables of pages, and in a forward its rows
 * stand beside those of others (rows.h). A session that was opened alone has an engine of its own. One thread at a
 * time. */
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
    pid_t process;    /* that opened it: its threads are there alone */
    size_t capacity;  /* sessions that there is room for */
    bool shares;      /* prompts reuse what other sessions have run; never in a session opened alone */
    size_t context;   /* positions that each may have */
    size_t chunk;     /* rows of prompts in a forward at most, which there is room for */
    size_t round_chunk; /* and that a round of several sessions takes */
    size_t rows;      /* of the largest batch */
    size_t head_rows; /* of those, that logits are made of at a time */
    size_t checkpoints;
    size_t kv_memory; /* bytes of pages with all heads; 0: what all sessions may need */
    bool swa_full;
    bool drafts; /* with the drafter's weights */
    fr_kv_types kv_types;

    fr_kv kv; /* holds no position: the pages of all sessions' caches, which are laid out like it */
    void *activations;
    void *draft_workspace; /* of the drafter's method */
    fr_row *batch;    /* [rows] of the forward that runs */
    struct fr_batch_slice *slices; /* [capacity] whose rows those are (batch.h) */
    fr_draft_depth draft_depth;       /* who drafts how much */
    fr_draft_depth_part *depth_parts; /* [capacity] of the sessions that it weighs */
    size_t weighing;              /* how many it weighed in the last round */
    fr_proposal *proposals;       /* [capacity] what methods are asked */
    fr_draft_view *views;         /* [capacity] what methods are shown */
    fr_kv **timelines; /* [capacity] their caches; NULL: of no session */
    struct fr_session **sessions; /* [capacity] whose those are */
    float *hidden;    /* [rows, hidden] */
    const fr_aux_layers *aux_layers; /* the drafter's; NULL: none */
    float *aux_hidden;               /* [rows, aux_layers, hidden] */
    /* [rows, seen_width] what a draft method sees of the rows: the hidden ones, or their aux_layers */
    const float *seen;
    size_t seen_width;
    size_t runs;      /* what has written to these so far: forwards, drafts that are scored */
    float *logits;    /* [head_rows, vocab] */
    int64_t *best;    /* [threads, head_rows] */

    fr_kv_prefixes prefixes; /* if `shares`: texts that were run before */
    fr_worker *drafting; /* the session's that drafts on the pool meanwhile (async_draft.h); NULL: none does */
    double files_checked; /* when its files were looked at last */
    size_t kv_bytes, spare_bytes; /* of the arena: pages, and those of them for checkpoints */
    size_t drafting_bytes;        /* of the arena: what drafting works in */
    struct fr_rank_leader
        *leader; /* who tells the other ranks what is asked of it (src/api/rank_leader.h); NULL: nobody */
};

/* Reads the options and lays the engine out without memory: arena.used is what it would take. sessions 0: the engine of
 * one session that was opened alone, which keeps no pages of texts that have gone. */
fr_status fr_engine_measure(fr_engine *engine, const fr_model *model, const fr_drafter *drafter,
                            const fr_options *options, size_t sessions);
fr_status fr_engine_create(const fr_model *model, const fr_drafter *drafter, const fr_options *options, size_t sessions,
                           fr_engine **engine);

/* FR_LOST if a file that a model or its drafter (NULL: it has none) is mapped from was cut or written to meanwhile. Any
 * thread. */
fr_status fr_files_check(const fr_model *model, const fr_drafter *drafter);

/* Checks the files of the engine's model and drafter, at most a hundred times a second, so that short forwards take no
 * longer for it. */
fr_status fr_engine_check_files(fr_engine *engine);

/* Its sessions are closed already. NULL is nothing. */
void fr_engine_destroy(fr_engine *engine);

/* FR_USAGE in another process than the one that opened it, a child that fork(2) made: no thread of it is there. */
fr_status fr_engine_check_process(const fr_engine *engine);

/* What a draft method has room for in it. */
fr_draft_sizes fr_engine_draft_sizes(const fr_engine *engine);

/* Waits for drafts that are under way; whose they are asks later how it went. */
void fr_engine_settle(fr_engine *engine);

#endif
