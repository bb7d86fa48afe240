/* Holds a session between calls: its members by owner, and the phases that its timeline goes through.
 *     EMPTY --extend--> PENDING --last slice--> PREDICTED --give_predicted--> BETWEEN --accept_drafts--> BETWEEN
 *     EMPTY       length == 0                nothing is on the timeline
 *     PENDING     kv.length < length         ids from kv.length on wait for a forward, as a prompt's do
 *     PREDICTED   kv.length == length        all ids are run, and `next` is the target's next id, not given yet
 *     BETWEEN     kv.length == length - 1    all ids are run but the last one, which a step gave
 * fr_timeline_extend, fr_timeline_finish (timeline.h) and functions of round.c make these transitions. Some calls go
 * back to PENDING, or to EMPTY if no id stays: fr_timeline_truncate, fr_timeline_again, and restoring from a file.
 * fr_timeline_copy does so if the last row's logits are wanted, fr_timeline_choose_rope if the rotary frequencies
 * change, and fr_timeline_recover if a forward failed after it moved recurrent states forward. An abort leaves PENDING
 * as it is.
 *
 * `ended` is independent of the phase: after an end of sequence or a stop string steps give no ids. `ended` stays set
 * if the caches are run again; further ids or a truncation clear it.
 *
 * In PREDICTED and BETWEEN, hidden[hidden_row] is the target's row of position kv.length - 1. The rows before it in
 * `hidden` are those of earlier positions, from the same round. fr_session_check_state checks the table at both ends of
 * a round. */
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
#include "src/engine/weights/low_rank.h"

/* Tells who decides whether to abort. With FR_ABORT_ASKED the caller is asked before each forward. FR_ABORT_NO and
 * FR_ABORT_YES are rank 0's decision, which rank 0 has sent together with the round. */
typedef enum fr_abort_told { FR_ABORT_ASKED, FR_ABORT_NO, FR_ABORT_YES } fr_abort_told;

/* Bits of `leader_decides`: rank 0's session has a mask or a grammar. The other ranks have neither, so rank 0
 * decides. */
enum { FR_LEADER_HAS_MASK = 1, FR_LEADER_HAS_GRAMMAR = 2 };

/* The phase of the timeline, as drawn above. */
typedef enum fr_phase { FR_PHASE_EMPTY, FR_PHASE_PENDING, FR_PHASE_PREDICTED, FR_PHASE_BETWEEN } fr_phase;

/* The work that the session does in the current round. */
typedef enum fr_stage { FR_STAGE_NOTHING, FR_STAGE_PROMPT, FR_STAGE_VERIFY } fr_stage;

/* Holds the sink of a prompt that is scored while it runs (prompt_score.h). */
typedef struct fr_prompt_score {
    fr_score_fn *sink; /* NULL: no prompt is scored */
    void *context;
    size_t next; /* index of the first id that still has to be scored */
} fr_prompt_score;

/* The timeline's caches, and what other sessions share of them (state.c, await.c, recurrent_points.c). */
typedef struct fr_session_cache {
    fr_kv kv;
    fr_kv_checkpoints checkpoints;
    fr_kv_path path;       /* the timeline's path in the tree of shared prefixes, in an engine of several sessions */
    fr_kv_digest *digests; /* [blocks] a digest for each 64 positions: of the adapters, and of the pictures in these
                            * positions */
    fr_kv_digest plain;    /* digest of a block without pictures, which is the digest of the adapters; all 0 without
                            * adapters */
    bool pictures_unknown; /* the digests no longer identify the pictures on the timeline, so the timeline's pages are
                            * not shared */
    bool restored;         /* the pages came from a file, so they are not shared */
    /* The ids before this position have been run before, by some session. So other texts may begin with them too, and
     * recurrent states are worth storing here; 0: there is no such position. */
    size_t branch;
    size_t awaited[FR_RECURRENT_POINTS]; /* positions whose states other sessions wait for in this round */
    size_t awaited_count;
} fr_session_cache;

/* The draft methods, and how many drafts they may make (drafting.c, async_draft.c). */
typedef struct fr_session_drafting {
    fr_draft_list methods;
    fr_draft *draft;
    size_t bytes;                  /* bytes of the arena that the draft methods use */
    size_t max;                    /* the most drafts of a round (FR_OPT_DRAFT_MAX) */
    size_t min;                    /* a proposal with fewer drafts is dropped */
    double p_min;                  /* smallest probability of a draft, or FR_DRAFT_P_AUTO */
    bool adapts;                   /* the depth controller chooses the number of drafts */
    fr_draft_depth_timeline depth; /* if `adapts`: the controller's counts of this session's drafts */
    fr_async_draft async;
    size_t seen; /* number of leading ids that have not changed since the draft method saw them */
    /* [FR_STEP_MAX, hidden_width] and [FR_STEP_MAX, aux_width]: the target's rows that methods read, as in fr_engine */
    float *hidden, *aux_hidden;
    size_t hidden_row;
} fr_session_drafting;

/* The session's part in the current round (round.c). */
typedef struct fr_session_round {
    fr_stage stage;
    fr_draft_depth_part drafts; /* numbers of drafts asked for, made and accepted */
    double draft_seconds;       /* time that the drafts of all sessions took */
    fr_proposal *proposal;      /* the request for the session's drafts; NULL: none */
    fr_failure draft_failure;   /* the reason why the session got no drafts */
    fr_failure failure;         /* the reason why the session's part in the round failed */
    bool last_failed;           /* the session's part in the last round failed, so no session waits for its pages */
    fr_abort_told abort_told;
} fr_session_round;

/* The results of the last forward. */
typedef struct fr_session_result {
    const float *logits; /* [rows, vocab], valid while `run` equals engine->runs */
    size_t run;          /* engine->runs when the results were made */
    const int64_t *best; /* [rows] index of each row's largest logit */
} fr_session_result;

/* Sampling, and the ends of a text; resample.c changes these settings. */
typedef struct fr_session_sampling {
    fr_sampler sampler;
    fr_arena arena; /* memory of a sampler that was set after the session was opened; if empty, the sampler's memory is
                     * in the session's arena */
    fr_token_picker picker; /* the sampler, as draft methods see it */
    fr_logprobs logprobs;
    int64_t logprobs_best; /* the value of FR_OPT_LOGPROBS */
    fr_stops stops;
    fr_prompt_score score;
} fr_session_sampling;

/* The caller's callbacks. */
typedef struct fr_session_caller {
    atomic_bool cancelled; /* set by another thread, read before the next forward */
    fr_abort_fn *abort;    /* NULL: none */
    void *abort_context;
    fr_prompt_fn *progress; /* NULL: none */
    void *progress_context;
} fr_session_caller;

/* The session's bytes outside its pages (session_file.c). */
typedef struct fr_session_saving {
    void *attached; /* the caller's own bytes; NULL: none */
    size_t attached_size;
    void *swapped_out; /* the saved session, while other sessions use its pages; NULL: the session has its pages */
    size_t swapped_out_size;
} fr_session_saving;

struct fr_session {
    /* -- The arguments with which the session was opened. */
    const fr_model *model;
    const fr_drafter *drafter; /* NULL: none */
    fr_engine *engine;
    fr_engine *own_engine; /* closed with the session; NULL: the engine has several sessions */
    size_t number;         /* index of the session in the engine */
    size_t context;        /* number of positions that the session has room for */
    fr_arena arena;
    fr_options options;
    fr_log log;
    bool ignore_eos;

    /* -- The timeline (timeline.c, round.c). */
    fr_phase phase;
    bool ended;
    int32_t *ids; /* [context] the timeline's ids, and after them a round's drafts */
    size_t length;
    size_t ran;   /* in PENDING: ids before this index have been run once, even if their caches were dropped since */
    int32_t next; /* in PREDICTED: the target's next id, which was not given yet */
    fr_rope_position *rope_positions;      /* [context + FR_STEP_MAX] the rotary position of each position */
    fr_shown shown;                        /* pictures for the next prompt */
    const fr_input_embeddings *embeddings; /* the pictures' rows, while their prompt is run */

    fr_adapter_set adapters; /* the adapters that change the target's products (fr_session_adapt) */
    fr_session_cache cache;
    fr_session_drafting drafting;
    fr_session_round round;
    fr_session_result result;
    fr_session_sampling sampling;
    fr_session_caller caller;
    fr_session_saving saving;
    /* FR_LEADER_HAS_... (leader_decisions.h); 0: no mask or grammar decides, or no rank leads */
    uint8_t leader_decides;
    fr_trace trace;
    fr_stats stats;
};

/* Checks that the phase agrees with the length and the frontier. If it does not, the library has a bug. */
fr_status fr_session_check_state(const fr_session *session);

/* Returns true if other sessions may share the session's pages and those of its draft method, because ids and digests
 * identify their contents. */
bool fr_session_shares(const fr_session *session);

/* Returns true if the session's prompts skip leading tokens that the engine has run before. */
bool fr_session_reuses(const fr_session *session);

/* Lets other sessions share the pages that the frontier has completed since the last call. */
void fr_session_share(fr_session *session, bool prompt_end);

/* Shares the rest of the timeline: its last, incomplete block and its present recurrent states. Called before the
 * timeline is dropped, and when another session has a prompt with the same first ids. */
void fr_session_offer(fr_session *session);

/* Called after the frontier moved back. The timeline no longer shares the blocks after the frontier, and the draft
 * method drops what its own cache has after the frontier. */
void fr_session_retreat(fr_session *session);

/* Skips the leading tokens of the pending prompt that the engine has run before, in any session. If asks is true, other
 * sessions whose texts begin with the same ids first offer their last, incomplete block (fr_session_offer). */
void fr_session_reuse(fr_session *session, bool asks);

/* Fills in the caches of the drafters that follow the target's rows. A drafter that does not follow them, or has no
 * cache, gets NULL. Returns the set of the drafters whose caches were filled in; bit i stands for drafter i. */
unsigned fr_session_draft_kv(const fr_session *session, fr_kv *drafters[FR_DRAFTERS_MAX]);

/* Resets the digests of the blocks from `first` on to the digest of a block without pictures, which depends on the
 * adapters alone. */
void fr_session_plain_digests(fr_session *session, size_t first);

/* Empties the timeline and all that belongs to it. */
void fr_session_clear(fr_session *session);

/* Begins a text: stop strings, the sampler's memory and a grammar start at the next token. */
void fr_session_begin_text(fr_session *session);

/* Assigns consecutive rotary positions, as text has them. Position `first` of the timeline gets `rope_position`, and
 * each later position gets the next number. */
void fr_session_set_rope_positions(fr_session *session, size_t first, size_t rope_position);

/* Returns true if the caller aborts or has cancelled. A cancellation takes effect only once. */
bool fr_session_wants_abort(fr_session *session);

/* Fails with FR_ABORTED if the caller asks to stop, and with FR_LOST if a model file has changed. */
fr_status fr_session_check_abort(fr_session *session);

/* Fails with FR_NUMERIC, because the logits of a position are not finite. If a rank has failed, fails with that rank's
 * failure instead, because then the logits were never computed. */
fr_status fr_session_not_finite(const fr_session *session, size_t position);

/* Returns true if the session needs only the index of the largest logit in each of its next rows. */
bool fr_session_wants_best(const fr_session *session);

/* Decides which drafts are accepted. *stood gets the number of drafts that agree with the target's rows, and *token
 * gets the target's own token after them. Later rows have no influence. */
fr_status fr_session_choose(fr_session *session, size_t drafted, size_t *stood, int32_t *token);

/* Returns the session as a draft method sees it. */
fr_draft_view fr_session_view(fr_session *session);

/* A draft method that follows the target must read the target's rows before the next forward overwrites them. These
 * three functions show the method the rows up to the frontier. They also share the pages of the method's own cache that
 * become full in this way. If the method does not follow the target, they do nothing. fr_session_see shows rows of the
 * batch, the last of which is `row`. fr_session_follow shows the rows that the session has kept.
 * fr_session_follow_later is for a round in which the method proposes nothing: here the method may put the work off to
 * a later call. */
fr_status fr_session_see(fr_session *session, size_t row);
fr_status fr_session_follow(fr_session *session);
fr_status fr_session_follow_later(fr_session *session);

/* fr_session_keep_rows copies those values of the `count` rows before the frontier that methods read. count is at most
 * FR_STEP_MAX. The first of these rows is row `row` of the batch. fr_session_keep_rows_of copies the values that
 * another session has kept. */
void fr_session_keep_rows(fr_session *session, size_t row, size_t count);
void fr_session_keep_rows_of(fr_session *session, const fr_session *other);

/* Returns true if there is a method to draft, and the depth controller chooses the number of drafts. */
bool fr_session_adaptive(const fr_session *session);

/* Fills in a request for `count` drafts after the timeline that the view shows. */
void fr_session_ask(fr_session *session, const fr_draft_view *view, size_t count, fr_proposal *proposal);

#endif
