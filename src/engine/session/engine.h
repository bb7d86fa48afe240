/* Holds what all sessions of one model share: threads, pages of keys and values, and the memory in which a forward
 * works.
 *
 * In: a model, perhaps a drafter, and options that say how many timelines of how many positions there may be. Out:
 * fr_engine. Sessions are timelines in it (session.h): each has its own tables of pages, and in a forward its rows are
 * in one batch with those of other sessions (batch.h). A session that was opened alone has an engine of its own. Only
 * one thread at a time may use an engine. */
#ifndef FR_SRC_ENGINE_SESSION_ENGINE_H
#define FR_SRC_ENGINE_SESSION_ENGINE_H

#include <sys/types.h>

#include "base/worker.h"
#include "src/engine/cache/kv_prefixes.h"
#include "src/engine/draft/draft.h"
#include "src/engine/session/draft_depth.h"
#include "src/engine/vision/picture.h"

struct fr_engine {
    const fr_model *model;
    const fr_drafter *drafter; /* NULL: none */
    fr_arena arena;
    fr_plan plan; /* the placement of threads; there are no threads until the plan is claimed (cores.h) */
    fr_pool *pool;
    pid_t process;      /* the process that opened the engine; a child process has none of its threads */
    size_t capacity;    /* the most sessions that the engine can have */
    bool shares;        /* prompts reuse ids that other sessions have run; never true for a session opened alone */
    size_t context;     /* the most positions of a session */
    size_t chunk;       /* the most prompt rows in a forward, apart from a single picture with more rows */
    size_t prompt_rows; /* the most prompt rows in a forward, including a picture with more than `chunk` */
    size_t round_chunk; /* the most prompt rows in a round of several sessions */
    size_t rows;        /* the most rows of a batch */
    size_t head_rows;   /* the most rows whose logits are computed at a time */
    size_t checkpoints; /* checkpoints for each session (FR_OPT_CTX_CHECKPOINTS) */
    size_t kv_memory;   /* bytes for pages, counted with the heads of all ranks; 0: enough for all sessions */
    bool swa_full;      /* sliding layers keep all positions */
    /* the drafters with whose weights sessions draft, by their index (fr_drafter_at); NULL: none */
    const fr_drafter *drafters[FR_DRAFTERS_MAX];
    fr_kv_types kv_types;

    fr_kv kv; /* the pages of all sessions' caches, and the layout of these caches; this cache itself has no
               * positions */
    void *activations;
    void *draft_workspaces[FR_DRAFTERS_MAX]; /* memory of each drafter's method */
    fr_row *batch;                           /* [rows] the rows of the running forward */
    struct fr_batch_slice *slices;           /* [capacity] the sessions' slices of the batch (batch.h) */
    fr_draft_depth draft_depth;              /* chooses the number of drafts */
    fr_draft_depth_part *depth_parts;        /* [capacity] one part for each session whose number of drafts is chosen by
                                              * draft_depth */
    size_t weighing;                         /* number of sessions that depth_parts had in the last round */
    fr_proposal *proposals;                  /* [capacity] requests to draft methods */
    fr_draft_view *views;                    /* [capacity] the sessions as draft methods see them */
    fr_kv **timelines;                       /* [capacity] caches of the sessions; NULL: no session */
    const fr_adapter_set **adapters;         /* [capacity] adapters of the sessions in the running forward */
    struct fr_session **sessions;            /* [capacity] the sessions */
    float *hidden;                           /* [rows, hidden] the hidden rows of the last forward */
    const fr_aux_layers *aux_layers;         /* the layers whose inputs the drafter reads; NULL: none */
    float *aux_hidden;              /* [rows, aux_width], where aux_width is the width of all aux_layers side by
                                     * side */
    size_t hidden_width, aux_width; /* number of values that draft methods read in each row of `hidden` and of
                                     * `aux_hidden` */
    size_t runs;   /* number of times that `logits` and `hidden` were written, by forwards and by scored drafts */
    float *logits; /* [head_rows, vocab] the logits of the last forward */
    int64_t *best; /* [threads, head_rows] like fr_forward.best: the first head_rows entries are the ids of the rows'
                    * largest logits */

    fr_kv_prefixes prefixes; /* if `shares`: tree of the texts that were run before */
    fr_kept_pictures pictures;
    fr_worker *drafting;  /* a session's worker that is drafting on the pool (async_draft.h); NULL: none */
    char *draft_times;    /* malloc'd: the folder in which measured times are stored (draft_times.h); NULL: none */
    double files_checked; /* time of the last check of the model's and drafter's files */
    /* kv_bytes: bytes of the arena for all pages; spare_bytes: the part of kv_bytes for pages of checkpoints */
    size_t kv_bytes, spare_bytes;
    size_t drafting_bytes; /* bytes of the arena in which drafting works */
    struct fr_rank_leader
        *leader; /* sends this engine's calls to the other ranks (src/api/rank_leader.h); NULL: this rank does not
                  * lead */
};

/* fr_engine_measure reads the options and computes the layout without taking memory; arena.used is then the memory that
 * the engine would take. If sessions is 0, that is the engine of a session that is opened alone, which stores no pages
 * of earlier texts. fr_engine_create opens an engine. */
fr_status fr_engine_measure(fr_engine *engine, const fr_model *model, const fr_drafter *drafter,
                            const fr_options *options, size_t sessions);
fr_status fr_engine_create(const fr_model *model, const fr_drafter *drafter, const fr_options *options, size_t sessions,
                           fr_engine **engine);

/* Fails with FR_LOST if a mapped file of the model or of its drafter (NULL: none) was truncated or written to since it
 * was opened. */
fr_status fr_files_check(const fr_model *model, const fr_drafter *drafter);

/* Checks the files of the engine's model and drafter, at most a hundred times a second, so that the checks don't slow
 * short forwards down. */
fr_status fr_engine_check_files(fr_engine *engine);

/* Closes an engine whose sessions are all closed. NULL does nothing. */
void fr_engine_destroy(fr_engine *engine);

/* Fails with FR_USAGE in any process except the one that opened the engine. A child made by fork(2), for example, has
 * none of the engine's threads. */
fr_status fr_engine_check_process(const fr_engine *engine);

/* Gives the sizes for which a draft method must take memory in this engine. */
fr_draft_sizes fr_engine_draft_sizes(const fr_engine *engine);

/* Waits for drafts that are being made. The session that submitted the drafts reads their status later. */
void fr_engine_settle(fr_engine *engine);

#endif
