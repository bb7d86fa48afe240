/* Opening and closing a session: what it takes.
 *
 * In: an engine, or a model and perhaps a drafter; options. Out: a session (state.h) with all its memory. The
 * functions are those of forerun.h without the checks and the floating-point environment of api.c. */
#ifndef FR_SRC_SESSION_H
#define FR_SRC_SESSION_H

#include "src/session/state.h"

/* What a session would take, in bytes: nothing is taken. */
typedef struct fr_session_bytes {
    size_t context;
    size_t target_kv;
    size_t all; /* with the target's KV, the drafter's, checkpoints and scratch */
} fr_session_bytes;

fr_status fr_session_measure(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                             fr_session_bytes *bytes);

/* A timeline in an engine; or alone, with an engine of its own. */
fr_status fr_session_create(fr_engine *engine, const fr_options *options, fr_session **session);
fr_status fr_session_create_alone(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                                  fr_session **session);

/* fr_session_fork of forerun.h. */
fr_status fr_session_copy(const fr_session *session, const fr_options *options, fr_session **copy);
void fr_session_destroy(fr_session *session);

/* Pictures run through the tower, for the next prompt. */
fr_status fr_session_look(fr_session *session, const fr_picture *const *pictures, size_t count);

/* Who is told of its rounds from now on. */
void fr_session_trace(fr_session *session, fr_trace_fn *line, void *context);

#endif
