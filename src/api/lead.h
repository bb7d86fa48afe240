/* An engine that all ranks of a job have and rank 0 alone is asked of, as a server is: it leads, the others follow.
 *
 * In: what a caller asks of rank 0's engine and its sessions. Out: told to the other ranks, before it is done: they do
 * the same with theirs (fr_lab_engine_follow), draw and draft for themselves, and so come to the same forwards. What
 * isn't told is refused (fr_lead_refuse). Of an engine that doesn't lead all of these are nothing. */
#ifndef FR_SRC_API_LEAD_H
#define FR_SRC_API_LEAD_H

#include "src/session/session.h"

typedef struct fr_lead fr_lead;

/* A session is about to be opened; it has been. */
void fr_lead_open(const fr_engine *engine, const fr_options *options);
void fr_lead_opened(const fr_engine *engine, fr_session *session);

/* It is about to be closed, reset, given ids. */
void fr_lead_close(const fr_session *session);
void fr_lead_reset(const fr_session *session);
void fr_lead_put(const fr_session *session, const int32_t *ids, size_t count);

/* A round is about to be run; the engine is about to be closed. */
void fr_lead_step(const fr_engine *engine, const fr_round *rounds, size_t count);
void fr_lead_end(fr_engine *engine);

/* FR_UNBUILT where it leads. */
fr_status fr_lead_refuse(const fr_engine *engine, const char *call);

#endif
