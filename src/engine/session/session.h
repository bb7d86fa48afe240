/* Opens and closes a session, and measures its memory.
 *
 * In: an engine, or a model and perhaps a drafter; options. Out: a session (state.h) with all its memory. The functions
 * do the work of calls of forerun.h. Checks of arguments and the floating-point environment are left to src/api/. */
#ifndef FR_SRC_ENGINE_SESSION_SESSION_H
#define FR_SRC_ENGINE_SESSION_SESSION_H

#include "src/engine/session/state.h"

/* The bytes that an engine for a number of sessions would take. They are computed without taking any memory. sessions
 * 0: one session alone. */
typedef struct fr_session_bytes {
    size_t context;
    size_t target_kv;   /* pages of keys and values, and of recurrent states */
    size_t states;      /* the part of target_kv that recurrent states take */
    size_t least_kv;    /* fewest bytes of pages with which an engine of several sessions can run; 0: one session */
    size_t foreign_kv;  /* bytes that the heads of other ranks would add to the pages; least_kv includes them */
    size_t checkpoints; /* checkpoints of sliding layers' caches and of recurrent states */
    size_t drafting;    /* memory in which drafting works, including a drafter's own keys and values */
    size_t all;         /* everything above, and scratch memory */
} fr_session_bytes;

fr_status fr_session_measure(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                             size_t sessions, fr_session_bytes *bytes);

/* Makes the session and the weights together fit FR_OPT_MEMORY. If necessary, the options get fewer pages of keys and
 * values. Fails with FR_MEMORY if no number of pages fits. */
fr_status fr_session_fit(const fr_model *model, const fr_drafter *drafter, size_t sessions, fr_options *options);

/* fr_session_create opens a session in an engine. fr_session_create_alone opens a session with an engine of its
 * own. */
fr_status fr_session_create(fr_engine *engine, const fr_options *options, fr_session **session);
fr_status fr_session_create_alone(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                                  fr_session **session);

/* Runs fr_session_fork of forerun.h. */
fr_status fr_session_copy(const fr_session *session, const fr_options *options, fr_session **copy);
void fr_session_destroy(fr_session *session);

/* Makes the session use these adapters, which must be opened on its model. The digest identifies the adapters and their
 * scales; without adapters the digest is all 0. If the adapters change, the timeline is emptied, because its caches
 * were computed with the old adapters. */
void fr_session_adapt(fr_session *session, const fr_adapter_set *adapters, const fr_kv_digest *digest);

/* Checks that FR_OPT_DRAFT_MIN and rejection sampling agree with the drafts that the session makes. */
fr_status fr_session_check_n_min(const fr_session *session, const fr_options *options);

/* These do the work of fr_session_set_mask, fr_session_set_grammar and fr_session_set_options of forerun.h. */
fr_status fr_session_constrain(fr_session *session, fr_grammar *grammar);
fr_status fr_session_begin_constraint(fr_session *session, size_t position);
fr_status fr_session_mask(fr_session *session, fr_mask_fn *mask, void *context);
fr_status fr_session_resample(fr_session *session, const fr_options *options);

/* Called on the other ranks when rank 0's session gets a mask or a grammar, and when the grammar's text begins at
 * another position. From then on the other ranks' sessions follow rank 0's decisions. */
fr_status fr_session_decide(fr_session *session, uint8_t decisions);

/* fr_session_look runs pictures through the tower for the next prompt. fr_session_be_shown takes the result, packed by
 * fr_shown_pack, from a rank that has run them. */
fr_status fr_session_look(fr_session *session, const fr_picture *const *pictures, size_t count);
fr_status fr_session_be_shown(fr_session *session, const void *bytes, size_t size);

/* Sets the function that gets the trace of the session's rounds from now on. */
void fr_session_trace(fr_session *session, fr_trace_fn *line, void *context);

#endif
