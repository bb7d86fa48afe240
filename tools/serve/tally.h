/* Counts of what a server has done, for /metrics.
 *
 * In: rounds and answers, from the engine's thread. Out: Prometheus' text, for any thread. */
#ifndef FR_TOOLS_SERVE_TALLY_H
#define FR_TOOLS_SERVE_TALLY_H

#include <stddef.h>

#include "forerun.h"

typedef struct fr_tally fr_tally;

fr_tally *fr_tally_new(void);
void fr_tally_free(fr_tally *tally);

/* A round of so many rows' owners (`busy`: sessions that took part); what is under way and waits behind it. */
void fr_tally_round(fr_tally *tally, size_t busy, size_t running, size_t waiting);

/* A text has ended: its session's figures. */
void fr_tally_text(fr_tally *tally, const fr_session *session);

/* The page; free. */
char *fr_tally_page(fr_tally *tally, size_t *length);

#endif
