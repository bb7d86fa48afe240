/* A session as it is between calls, and what whoever changes it shares: timeline.c, async_draft.c, cycle.c.
 *
 * Invariants between calls, once a prompt has run:
 *     kv.length == length - (fresh ? 0 : 1)   every id but the last one given has been run
 *     fresh: `next` is what the target says after the timeline, and has not been given yet
 *     hidden[hidden_row] is the target's row of position kv.length - 1; before it those of the same round
 * While `pending`, after a truncation or an abort, the ids from kv.length < length on wait to be run as a prompt's are
 * (timeline.h), and none of the above holds yet; the next prompt or step begins with it. */
#ifndef FR_SRC_ENGINE_SESSION_STATE_H
#define FR_SRC_ENGINE_SESSION_STATE_H

#include <stdatomic.h>

#include "base/error.h"
#include "src/engine/draft/draft_list.h"
#include "src/engine/session/async_draft.h"
#include "src/engine/session/engine.h"
#include "src/engine/session/kv_checkpoints.h"
#include "src/engine/session/logprobs.h"
#include "src/engine/session/sampler.h"
#include "src/engine/session/stats.h"
#include "src/engine/session/stops.h"
#include "src/engine/session/trace.h"
#include "src/engine/vision/picture.h"

/* Whether a forward is given up: asked before each, or, where one rank leads others, told with the round. */
typedef enum fr_abort_told { FR_ABORT_ASKED, FR_ABORT_NO, FR_ABORT_YES } fr_abort_told;

/* Bits: what of rank 0's decides a text. */
enum { FR_LEADER_HAS_MASK = 1, FR_LEADER_HAS_GRAMMAR = 2 };

/* What a session does in a round. */
typedef enum fr_stage { FR_STAGE_NOTHING, FR_STAGE_PROMPT, FR_STAGE_VERIFY } fr_stage;

/* The caller of a prompt that is scored while it runs (prompt_score.h). */
typedef struct fr_prompt_score {
    fr_score_fn *sink; /* NULL: no prompt is scored */
    void *context;
    size_t next; /* index of the first id whose log-probability was not given yet */
} fr_prompt_score;

struct fr_session {
    const fr_model *model;
    const fr_drafter *drafter; /* NULL: none */
    fr_engine *engine;
    size_t number; /* of its timeline there */
    fr_engine *own_engine; /* that is closed with it; NULL: it is one of several in an engine */
    fr_arena arena;
    size_t context, draft_max;
    bool ignore_eos, adapts;
    size_t draft_min;    /* drafts of a proposal; fewer are none */
    double draft_p_min;  /* the least chance of a draft, or FR_DRAFT_P_AUTO */

    fr_log log;
    fr_options options; /* it was opened with */
    atomic_bool cancelled; /* by another thread, for the next forward to see */
    fr_abort_told abort_told; /* of the round that runs */
    uint8_t leader_decides;   /* bits (leader_decisions.h); 0: nothing does, or no rank leads */
    fr_abort_fn *abort; /* NULL: never asked */
    void *abort_context;
    fr_prompt_fn *progress; /* NULL: nobody is told */
    void *progress_context;

    fr_kv kv;
    fr_kv_checkpoints kv_checkpoints;
    fr_kv_path path;   /* where the timeline stands among shared prefixes, in an engine of several */
    fr_kv_digest *digests; /* [blocks] of its pictures in each 64 positions; all 0: there are none */
    bool pictures_unknown; /* it has had pictures that the digests can't tell of any more */
    bool restored;         /* its pages are as a file said: nobody else's */
    size_t awaited[FR_RECURRENT_POINTS]; /* positions whose states others wait for in this round (await.h) */
    size_t awaited_count;
    size_t branch; /* position up to which its prompt was run before, and at which states are worth keeping; 0: none */
    bool last_round_failed; /* its last forward came to nothing: nobody waits for it */
    fr_draft_list methods;
    fr_draft *draft;
    size_t drafting_bytes; /* of the arena: the methods' */
    fr_async_draft async;
    fr_draft_depth_timeline draft_depth; /* if `adapts`: what is known of its drafts */
    fr_stage stage;            /* of the round that runs */
    fr_draft_depth_part drafts; /* the round's drafts */
    double draft_seconds;      /* how long all sessions' drafts took */
    fr_proposal *proposal;     /* how its drafts were asked for */
    fr_failure draft_failure;  /* what of the drafting failed */
    fr_failure failure;        /* what of the whole round failed */
    int32_t *ids;   /* [context] the timeline */
    fr_rope_position *rope_positions;      /* [context + FR_STEP_MAX] */
    fr_shown shown;                        /* pictures for the next prompt */
    const fr_input_embeddings *embeddings; /* their rows, while it runs */
    size_t length;
    size_t ran;     /* while `pending`: ids before it have been run, though maybe before the last truncation */
    size_t drafter_seen; /* ids before it are those that the draft method was last shown */
    float *hidden;  /* [FR_STEP_MAX, seen_width] the target's rows as the method sees them */
    size_t hidden_row;
    const float *logits; /* [rows, vocab] of the last forward, while they stand in the engine: */
    size_t run;          /* while this is the engine's count of runs */
    const int64_t *best; /* [rows] the id of each row's largest logit */
    int32_t next;
    bool fresh, pending, ended;

    fr_arena sampler_arena; /* of a sampler that was set since it was opened; empty: its memory is the session's */
    fr_sampler sampler;
    fr_token_picker picker; /* the sampler, as draft methods see it */
    fr_logprobs logprobs;
    int64_t logprobs_best; /* FR_OPT_LOGPROBS */
    fr_stats stats;
    fr_trace trace;
    fr_stops stops;

    fr_prompt_score score;

    void *attached; /* the caller's own bytes, NULL: none */
    size_t attached_size;
    void *swapped_out; /* the session as it was when it gave its pages up (session_file.h); NULL: it has them */
    size_t swapped_out_size;
};

/* Whether all of it can be found by its ids and digests, and its method's cache with it. */
bool fr_session_shares(const fr_session *session);

/* True if its prompts begin after the tokens that the engine has run before. */
bool fr_session_reuses(const fr_session *session);

/* The cache's frontier has moved on over accepted ids: what others can share of it. */
void fr_session_share(fr_session *session, bool prompt_end);

/* Shares the rest of the timeline: its last block, which is not complete, and its present states. Called before the
 * timeline goes, and when another session's prompt begins alike. */
void fr_session_offer(fr_session *session);

/* It has moved back: with it go what others share of it and its method's cache. */
void fr_session_retreat(fr_session *session);

/* Skips the leading tokens of the pending prompt that the engine has run before, in whichever session. asks: sessions
 * that begin alike first offer the blocks that they have not completed. */
void fr_session_reuse(fr_session *session, bool asks);

/* The cache that its method has of its own, where that follows the target's rows; NULL: none. */
fr_kv *fr_session_draft_kv(const fr_session *session);

/* Nothing has been run. */
void fr_session_clear(fr_session *session);

/* What is said from here on is a text of its own: for stop strings, and for what a sampler remembers. */
void fr_session_begin_text(fr_session *session);

/* Gives the positions from `first` on consecutive rotary positions, as text has them, which begin with
 * `rope_position`. */
void fr_session_set_rope_positions(fr_session *session, size_t first, size_t rope_position);

/* Whether its caller wants no more: a cancellation counts once. */
bool fr_session_wants_abort(fr_session *session);

/* FR_ABORTED once the caller asks to stop, FR_LOST if a model file has changed, FR_NUMERIC if logits were not
 * finite. */
fr_status fr_session_check_abort(fr_session *session);
fr_status fr_session_not_finite(const fr_session *session, size_t position);

/* Whether of its next rows the ids of the largest logits are all that it reads. */
bool fr_session_wants_best(const fr_session *session);

/* What the target says about the drafts behind the timeline: how many stand, and the token after them (of the rows'
 * logits only those up to that token count). */
fr_status fr_session_choose(fr_session *session, size_t drafted, size_t *stood, int32_t *token);

/* What a draft method is shown. */
fr_draft_view fr_session_view(fr_session *session);

/* A method that follows sees the target's rows up to the frontier, before they are overwritten, and what it has seen is
 * shared. hidden: the last one, behind those still to be seen; fr_session_follow: as the session keeps them;
 * fr_session_follow_later: those, of a round without a proposal, which the method may keep for a later one. */
fr_status fr_session_see(fr_session *session, const float *hidden);
fr_status fr_session_follow(fr_session *session);
fr_status fr_session_follow_later(fr_session *session);

/* The cache's frontier is behind these hidden rows, of which the session keeps the last ones: FR_STEP_MAX at most. */
void fr_session_keep_hidden(fr_session *session, const float *rows, size_t count);

/* Whether the number of drafts adapts. */
bool fr_session_adaptive(const fr_session *session);

/* Asks its method for drafts behind the timeline that a view shows. */
void fr_session_ask(fr_session *session, const fr_draft_view *view, size_t count, fr_proposal *proposal);

#endif
