/* Opening and closing a session: what it takes.
 *
 * In: an engine, or a model and perhaps a drafter; options. Out: a session (state.h) with all its memory. The
 * functions are those of forerun.h without the checks and the floating-point environment of src/api/. */
#ifndef FR_SRC_ENGINE_SESSION_SESSION_H
#define FR_SRC_ENGINE_SESSION_SESSION_H

#include "src/engine/session/state.h"

/* Bytes that an engine of so many sessions would take, found without taking any. 0 sessions: one session alone. */
typedef struct fr_session_bytes {
    size_t context;
    size_t target_kv;   /* pages of keys and values, states among them; */
    size_t states;      /* so much of it */
    size_t least_kv;    /* the fewest that an engine of several can do with; 0: one session */
    size_t foreign_kv;  /* more that pages would take with the heads that other ranks keep; least_kv is with those */
    size_t checkpoints; /* of sliding layers' caches and of states */
    size_t drafting;    /* what drafting works in, a drafter's own keys and values among it */
    size_t all;         /* with scratch */
} fr_session_bytes;

fr_status fr_session_measure(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                             size_t sessions, fr_session_bytes *bytes);

/* The same held against FR_OPT_MEMORY, the weights beside it: options get fewer pages of keys and values where that
 * makes it fit, FR_MEMORY if nothing does. */
fr_status fr_session_fit(const fr_model *model, const fr_drafter *drafter, size_t sessions, fr_options *options);

/* A timeline in an engine; or alone, with an engine of its own. */
fr_status fr_session_create(fr_engine *engine, const fr_options *options, fr_session **session);
fr_status fr_session_create_alone(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                                  fr_session **session);

/* fr_session_fork of forerun.h. */
fr_status fr_session_copy(const fr_session *session, const fr_options *options, fr_session **copy);
void fr_session_destroy(fr_session *session);

/* That fewest drafts and rejection go with what the session drafts. */
fr_status fr_session_check_n_min(const fr_session *session, const fr_options *options);

/* fr_session_set_mask, fr_session_set_grammar and fr_session_set_options of forerun.h. */
fr_status fr_session_constrain(fr_session *session, fr_grammar *grammar);
fr_status fr_session_begin_constraint(fr_session *session, size_t position);
fr_status fr_session_mask(fr_session *session, fr_mask_fn *mask, void *context);
fr_status fr_session_resample(fr_session *session, const fr_options *options);

/* Rank 0's session has a mask or a grammar from now on, or another place where its text begins: this one follows it. */
fr_status fr_session_decide(fr_session *session, uint8_t decisions);

/* Pictures run through the tower, for the next prompt; or, where another rank has run them, what came of that as
 * fr_shown_pack gives it. */
fr_status fr_session_look(fr_session *session, const fr_picture *const *pictures, size_t count);
fr_status fr_session_be_shown(fr_session *session, const void *bytes, size_t size);

/* Who is told of its rounds from now on. */
void fr_session_trace(fr_session *session, fr_trace_fn *line, void *context);

#endif
