/* Holds a session between calls: its members by owner, and the phases that its timeline goes through.
 *
 *     EMPTY --extend--> PENDING --last slice--> PREDICTED --give_predicted--> BETWEEN --accept_drafts--> BETWEEN
 *
 *     EMPTY       length == 0                nothing is on the timeline
 *     PENDING     kv.length < length         ids from kv.length on wait to be run as a prompt's are
 *     PREDICTED   kv.length == length        all is run; `next`, the target's next token, has not been given yet
 *     BETWEEN     kv.length == length - 1    all is run but the last id, which a step gave
 *
 * The functions that make these transitions are fr_timeline_extend, fr_timeline_finish (timeline.h) and round.c's.
 * These lead back to PENDING, or to EMPTY if nothing is left: fr_timeline_truncate, fr_timeline_again,
 * fr_timeline_copy of a timeline whose last row is wanted, restoring, a change of the rotary frequencies
 * (fr_timeline_choose_rope), and a forward that failed after recurrent states moved on (fr_timeline_recover). An abort
 * leaves PENDING as it is.
 *
 * `ended` is independent of the phases: it is true after an end of sequence or a stop string, when steps give no more
 * ids. It stays true while the caches are run again, and becomes false with more ids or a truncation.
 *
 * In PREDICTED and BETWEEN, hidden[hidden_row] is the target's row of position kv.length - 1, with the rows of the
 * same round before it. fr_session_check_state checks the table at both ends of a round. */
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

/* Says where the answer to "abort?" comes from: the caller is asked before each forward, or the leading rank told it
 * with the round. */
typedef enum fr_abort_told { FR_ABORT_ASKED, FR_ABORT_NO, FR_ABORT_YES } fr_abort_told;

/* Bits: parts of rank 0's session that decide the text, which other ranks do not have. */
enum { FR_LEADER_HAS_MASK = 1, FR_LEADER_HAS_GRAMMAR = 2 };

/* Says how far the timeline is run; drawn above. */
typedef enum fr_phase { FR_PHASE_EMPTY, FR_PHASE_PENDING, FR_PHASE_PREDICTED, FR_PHASE_BETWEEN } fr_phase;

/* Says what the session does in the round that runs. */
typedef enum fr_stage { FR_STAGE_NOTHING, FR_STAGE_PROMPT, FR_STAGE_VERIFY } fr_stage;

/* Holds the sink of a prompt that is scored while it runs (prompt_score.h). */
typedef struct fr_prompt_score {
    fr_score_fn *sink; /* NULL: no prompt is scored */
    void *context;
    size_t next; /* index of the first id whose log-probability was not given yet */
} fr_prompt_score;

struct fr_session {
    /* -- What it was opened with. */
    const fr_model *model;
    const fr_drafter *drafter; /* NULL: none */
    fr_engine *engine;
    fr_engine *own_engine; /* closed with the session; NULL: the engine has several sessions */
    size_t number;         /* index of the session in the engine */
    size_t context;        /* positions that there is room for */
    fr_arena arena;
    fr_options options;
    fr_log log;
    bool ignore_eos;

    /* -- The timeline (timeline.c, round.c). */
    fr_phase phase;
    bool ended;
    int32_t *ids; /* [context] */
    size_t length;
    size_t ran;   /* in PENDING: ids before this index have been run, perhaps before the last truncation */
    int32_t next; /* in PREDICTED */
    fr_rope_position *rope_positions;      /* [context + FR_STEP_MAX] */
    fr_shown shown;                        /* pictures for the next prompt */
    const fr_input_embeddings *embeddings; /* rows of the pictures, while their prompt is run */

    /* -- Its caches, and what other sessions share of them (state.c, await.c, recurrent_points.c). */
    fr_kv kv;
    fr_kv_checkpoints kv_checkpoints;
    fr_kv_path path;       /* place of the timeline among shared prefixes, in an engine of several sessions */
    fr_kv_digest *digests; /* [blocks] of the pictures in each 64 positions; all 0: there are none */
    bool pictures_unknown; /* the digests no longer identify the pictures on the timeline: its pages are not shared */
    bool restored;         /* its pages came from a file: they are not shared */
    size_t branch;         /* position up to which its prompt was run before, where states are worth keeping; 0: none */
    size_t awaited[FR_RECURRENT_POINTS]; /* positions whose states other sessions wait for in this round */
    size_t awaited_count;

    /* -- Drafting (drafting.c, async_draft.c). */
    fr_draft_list methods;
    fr_draft *draft;
    size_t drafting_bytes; /* of the arena: the methods' */
    size_t draft_max;
    size_t draft_min;    /* a proposal with fewer drafts has none */
    double draft_p_min;  /* smallest probability of a draft, or FR_DRAFT_P_AUTO */
    bool adapts;         /* the number of drafts follows the clock */
    fr_draft_depth_timeline draft_depth; /* if `adapts`: what is known of its drafts */
    fr_async_draft async;
    size_t drafter_seen; /* ids before this index are those that the draft method was last shown */
    float *hidden;       /* [FR_STEP_MAX, seen_width] the target's rows as the method sees them */
    size_t hidden_row;

    /* -- The round that runs (round.c). */
    fr_stage stage;
    fr_draft_depth_part drafts; /* drafts asked for, made and accepted */
    double draft_seconds;       /* time that the drafts of all sessions took */
    fr_proposal *proposal;      /* its request for drafts; NULL: none */
    fr_failure draft_failure;   /* of its drafting */
    fr_failure failure;         /* of its part in the round */
    bool last_round_failed;     /* no other session waits for its pages then */

    /* -- The last forward's results. */
    const float *logits; /* [rows, vocab], valid while `run` is the engine's count of runs */
    size_t run;
    const int64_t *best; /* [rows] index of each row's largest logit */

    /* -- Sampling, and what ends a text (resample.c). */
    fr_sampler sampler;
    fr_arena sampler_arena; /* of a sampler that was set after opening; empty: the sampler lies in `arena` */
    fr_token_picker picker; /* the sampler, as draft methods see it */
    fr_logprobs logprobs;
    int64_t logprobs_best; /* FR_OPT_LOGPROBS */
    fr_stops stops;
    fr_prompt_score score;

    /* -- The caller's say: aborts, progress, trace, figures. */
    atomic_bool cancelled; /* set by another thread, for the next forward to see */
    fr_abort_fn *abort;    /* NULL: never asked */
    void *abort_context;
    fr_abort_told abort_told; /* of the round that runs */
    uint8_t leader_decides;   /* bits (leader_decisions.h); 0: nothing does, or no rank leads */
    fr_prompt_fn *progress;   /* NULL: none */
    void *progress_context;
    fr_trace trace;
    fr_stats stats;

    /* -- Saving (session_file.c). */
    void *attached; /* the caller's own bytes; NULL: none */
    size_t attached_size;
    void *swapped_out; /* the session as it was when it gave its pages up; NULL: it has them */
    size_t swapped_out_size;
};

/* Checks that the phase fits length and frontier. A failure is a fault of the library. */
fr_status fr_session_check_state(const fr_session *session);

/* Returns true if other sessions can find all of its pages, and those of its draft method, by ids and digests. */
bool fr_session_shares(const fr_session *session);

/* True if its prompts begin after the tokens that the engine has run before. */
bool fr_session_reuses(const fr_session *session);

/* Lets other sessions share what the frontier has moved over since the last call. */
void fr_session_share(fr_session *session, bool prompt_end);

/* Shares the rest of the timeline: its last block, which is not complete, and its present states. Called before the
 * timeline goes, and when another session's prompt begins alike. */
void fr_session_offer(fr_session *session);

/* Takes back, after the frontier moved back, what other sessions share beyond it and what the draft method has cached.
 */
void fr_session_retreat(fr_session *session);

/* Skips the leading tokens of the pending prompt that the engine has run before, in any session. asks: sessions that
 * begin alike first offer the blocks that they have not completed. */
void fr_session_reuse(fr_session *session, bool asks);

/* Returns the draft method's own cache if the method follows the target's rows, else NULL. */
fr_kv *fr_session_draft_kv(const fr_session *session);

/* Empties the timeline and all that belongs to it. */
void fr_session_clear(fr_session *session);

/* Begins a text: stop strings, the sampler's memory and a grammar start at the next token. */
void fr_session_begin_text(fr_session *session);

/* Gives the positions from `first` on consecutive rotary positions, as text has them, which begin with
 * `rope_position`. */
void fr_session_set_rope_positions(fr_session *session, size_t first, size_t rope_position);

/* Returns true if the caller aborts or has cancelled; a cancellation counts once. */
bool fr_session_wants_abort(fr_session *session);

/* FR_ABORTED once the caller asks to stop, FR_LOST if a model file has changed, FR_NUMERIC if logits were not
 * finite. */
fr_status fr_session_check_abort(fr_session *session);
fr_status fr_session_not_finite(const fr_session *session, size_t position);

/* Returns true if the session reads nothing of its next rows but the index of each row's largest logit. */
bool fr_session_wants_best(const fr_session *session);

/* Compares the drafts after the timeline with the target's rows: *stood are accepted, and *token is the target's own
 * after them. Rows after that token's have no influence. */
fr_status fr_session_choose(fr_session *session, size_t drafted, size_t *stood, int32_t *token);

/* Returns what a draft method sees of the session. */
fr_draft_view fr_session_view(fr_session *session);

/* Show a method that follows the target's rows those up to the frontier, before they are overwritten, and share what it
 * caches of them. fr_session_see: rows that end with `hidden`. fr_session_follow: those that the session keeps.
 * fr_session_follow_later: the same in a round without a proposal, where the method may run them later. */
fr_status fr_session_see(fr_session *session, const float *hidden);
fr_status fr_session_follow(fr_session *session);
fr_status fr_session_follow_later(fr_session *session);

/* Keeps copies of the hidden rows before the frontier, the last of up to FR_STEP_MAX. */
void fr_session_keep_hidden(fr_session *session, const float *rows, size_t count);

/* Returns true if the number of drafts follows the clock, and there is a method to draft. */
bool fr_session_adaptive(const fr_session *session);

/* Fills in a request for drafts after the timeline that a view shows. */
void fr_session_ask(fr_session *session, const fr_draft_view *view, size_t count, fr_proposal *proposal);

#endif
