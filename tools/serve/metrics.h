/* Counts what a server has done, for /metrics.
 *
 * In: rounds and texts from the engines' threads, and exchanges that have ended. Out: a page in Prometheus' text
 * format. If llama.cpp's server has the same figure, the figure gets the name that it has there. The histograms get the
 * names that vLLM uses. Any thread may call these functions. */
#ifndef FR_TOOLS_SERVE_METRICS_H
#define FR_TOOLS_SERVE_METRICS_H

#include <stddef.h>
#include <time.h>

#include "forerun.h"
#include "tools/serve/http_exchange.h"

typedef struct fr_metrics fr_metrics;

fr_metrics *fr_metrics_new(void);
void fr_metrics_free(fr_metrics *metrics);

/* Gives the time at which the server started, in seconds since 1970. */
time_t fr_metrics_since(const fr_metrics *metrics);

/* Counts a round in which this many sessions took part. */
void fr_metrics_add_round(fr_metrics *metrics, size_t busy);

/* Counts tokens that an embedder has read, and the seconds that this took. */
void fr_metrics_add_prompt(fr_metrics *metrics, size_t tokens, double seconds);

/* Counts a text that has ended. The text may be complete or cut off. session: its figures since the text began are
 * added. */
void fr_metrics_add_text(fr_metrics *metrics, const fr_session *session);

/* Counts an exchange that has ended. Counts the status of its answer and the times of its texts. */
void fr_metrics_add_http_exchange(fr_metrics *metrics, const fr_http_exchange_report *report);

/* Gives the page, which the caller frees. running: number of requests that are being run. waiting: number of requests
 * in the queue. */
char *fr_metrics_page(fr_metrics *metrics, size_t running, size_t waiting, size_t *length);

/* The content type of the page. */
#define FR_METRICS_TYPE "text/plain; version=0.0.4"

#endif
