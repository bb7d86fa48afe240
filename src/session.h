/* The cycle: prompt -> (draft -> verify -> accept -> commit) again and again. All branching is here; drafting,
 * forwards and acceptance are told what to do.
 *
 * Invariants between calls, once a prompt has run:
 *     kv.length == length - (fresh ? 0 : 1)   every id but the last one given has been run
 *     fresh: `next` is what the target says after the timeline, and has not been given yet
 *     hidden[hidden_row] is the target's row of position kv.length - 1
 *
 * The functions are those of forerun.h without the checks and the floating-point environment of api.c. */
#ifndef FR_SRC_SESSION_H
#define FR_SRC_SESSION_H

#include "src/draft.h"
#include "src/picture.h"
#include "src/stats.h"

struct fr_session {
    const fr_model *model;
    const fr_drafter *drafter; /* NULL: none */
    fr_arena arena;
    fr_pool *pool;
    size_t context, chunk, draft_max;
    bool ignore_eos;
    fr_kv_types kv_types;

    fr_kv kv;
    void *pass;
    fr_draft *draft;
    int32_t *ids;   /* [context] the timeline */
    fr_place *places; /* [context + FR_STEP_MAX] */
    fr_shown shown;        /* pictures for the next prompt */
    const fr_given *given; /* their rows, while it runs */
    size_t length;
    float *hidden;  /* [rows of the largest batch, hidden] */
    size_t hidden_row;
    float *logits;  /* [FR_STEP_MAX, vocab] */
    int64_t best[FR_STEP_MAX];
    int32_t next;
    bool fresh, ended;

    fr_stats stats;
};

fr_status fr_session_create(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                            fr_session **session);
void fr_session_destroy(fr_session *session);
fr_status fr_session_look(fr_session *session, const fr_picture *const *pictures, size_t count);
fr_status fr_session_append(fr_session *session, const int32_t *ids, size_t count);
fr_status fr_session_round(fr_session *session, int32_t *ids, size_t limit, size_t *count, size_t *accepted);
void fr_session_clear(fr_session *session);
fr_status fr_session_score(fr_session *session, const int32_t *ids, size_t count, size_t first_row, fr_logits_fn *sink,
                           void *context);
fr_status fr_session_score_drafts(fr_session *session, const int32_t *ids, size_t count, size_t steps,
                                  fr_logits_fn *sink, void *context);

#endif
