/* The cycle: prompt -> (draft -> verify -> accept -> commit) again and again. All branching is here; drafting,
 * forwards and acceptance are told what to do.
 *
 * Invariants between calls, once a prompt has run:
 *     kv.length == length - (fresh ? 0 : 1)   every id but the last one given has been run
 *     fresh: `next` is what the target says after the timeline, and has not been given yet
 *     hidden[hidden_row] is the target's row of position kv.length - 1
 * While `pending`, after a truncation or an abort, the ids from kv.length < length on wait to be run as a prompt's are
 * (timeline.h), and none of the above holds yet; the next prompt or step begins with it.
 *
 * The functions are those of forerun.h without the checks and the floating-point environment of api.c. */
#ifndef FR_SRC_SESSION_H
#define FR_SRC_SESSION_H

#include "src/draft/draft_list.h"
#include "src/session/ahead.h"
#include "src/session/depth.h"
#include "src/session/logprobs.h"
#include "src/session/snapshots.h"
#include "src/session/stats.h"
#include "src/session/trace.h"
#include "src/vision/picture.h"

struct fr_session {
    const fr_model *model;
    const fr_drafter *drafter; /* NULL: none */
    fr_arena arena;
    fr_plan plan; /* no thread until it is claimed (cores.h) */
    fr_pool *pool;
    size_t context, chunk, draft_max, checkpoints;
    bool ignore_eos, swa_full, adapts;
    fr_kv_types kv_types;

    fr_log log;
    fr_abort_fn *abort; /* NULL: never asked */
    void *abort_context;

    fr_kv kv;
    fr_snapshots snapshots;
    void *pass;
    fr_draft_list methods;
    fr_draft *draft;
    fr_ahead ahead;
    fr_depth depth; /* if `adapts`: how many drafts a round asks for */
    int32_t *ids;   /* [context] the timeline */
    fr_place *places; /* [context + FR_STEP_MAX] */
    fr_shown shown;        /* pictures for the next prompt */
    const fr_given *given; /* their rows, while it runs */
    size_t length;
    size_t told;    /* ids before it are those that the draft method was last shown */
    float *hidden;  /* [rows of the largest batch, hidden] */
    size_t hidden_row;
    float *logits;  /* [FR_STEP_MAX, vocab] */
    int64_t *best;  /* [threads, FR_STEP_MAX] */
    int32_t next;
    bool fresh, pending, ended;

    fr_sampler sampler;
    fr_logprobs logprobs;
    int64_t logprobs_best; /* FR_OPT_LOGPROBS */
    fr_stats stats;
    fr_trace trace;

    void *attached; /* the caller's own bytes, NULL: none */
    size_t attached_size;
};

/* What a session would take, in bytes: nothing is taken. */
typedef struct fr_session_bytes {
    size_t context;
    size_t target_kv;
    size_t all; /* with the target's KV, the drafter's, snapshots and scratch */
} fr_session_bytes;

fr_status fr_session_measure(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                             fr_session_bytes *bytes);
fr_status fr_session_create(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                            fr_session **session);
void fr_session_destroy(fr_session *session);
fr_status fr_session_look(fr_session *session, const fr_picture *const *pictures, size_t count);

/* Tells the draft method of the target's rows, before they are overwritten. */
void fr_session_follow(fr_session *session);

/* Text stands at consecutive places: those of positions from `first` on begin with `place`. */
void fr_session_place(fr_session *session, size_t first, size_t place);
bool fr_session_adaptive(const fr_session *session);
fr_status fr_session_round(fr_session *session, int32_t *ids, size_t limit, size_t *count, size_t *accepted);
void fr_session_clear(fr_session *session);
fr_status fr_session_score(fr_session *session, const int32_t *ids, size_t count, size_t first_row, fr_logits_fn *sink,
                           void *context);
fr_status fr_session_score_drafts(fr_session *session, const int32_t *ids, size_t count, size_t steps,
                                  fr_logits_fn *sink, void *context);

/* What timeline.c shares of the cycle: the batch of the next `rows` ids that have not been run, and are about to be;
 * the view for a draft method; FR_ABORTED once the caller wants no more; what the target says about the drafts behind
 * the timeline: how many stand, and the token after them (of the rows' logits only those up to that token count). */
fr_forward fr_session_batch(fr_session *session, size_t rows);
fr_draft_view fr_session_view(fr_session *session);
fr_status fr_session_check_abort(const fr_session *session);
fr_status fr_session_choose(fr_session *session, size_t drafted, size_t *stood, int32_t *token);

/* What ahead.c shares of it: how many drafts a round that has room for `limit` asks for; as many ids as the round asks
 * for, proposed behind the timeline. */
size_t fr_session_depth(fr_session *session, size_t limit);
fr_status fr_session_draft(fr_session *session, const fr_draft_view *view, fr_depth_round *round);

#endif
