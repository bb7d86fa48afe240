/* Counts of what a server has done, for /metrics.
 *
 * In: rounds and texts, from engines' threads, and exchanges that have ended. Out: a page in Prometheus' text format,
 * with llama.cpp's names where it has one and vLLM's for the histograms, for any thread. */
#ifndef FR_TOOLS_SERVE_TALLY_H
#define FR_TOOLS_SERVE_TALLY_H

#include <stddef.h>
#include <time.h>

#include "forerun.h"
#include "tools/serve/http_exchange.h"

typedef struct fr_tally fr_tally;

fr_tally *fr_tally_new(void);
void fr_tally_free(fr_tally *tally);

/* The start of the server, in seconds since 1970. */
time_t fr_tally_since(const fr_tally *tally);

/* A round in which so many sessions took part. */
void fr_tally_round(fr_tally *tally, size_t busy);

/* A text has ended, whole or not: its session's figures, which count from the text's beginning. */
void fr_tally_text(fr_tally *tally, const fr_session *session);

/* Counts an exchange that has ended: its status and the times of its texts. */
void fr_tally_http_exchange(fr_tally *tally, const fr_http_exchange_report *report);

/* The page, where so many requests are under way and wait right now; free. */
char *fr_tally_page(fr_tally *tally, size_t running, size_t waiting, size_t *length);

/* The content type that goes with it. */
#define FR_TALLY_TYPE "text/plain; version=0.0.4"

#endif
