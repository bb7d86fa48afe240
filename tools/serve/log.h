/* Writes the log of a server: a line on standard error for each exchange that has ended.
 *
 * In: the command line, and reports of exchanges. Out, as text,
 *     2026-11-29T13:41:07Z 127.0.0.1 POST /v1/completions 200 37 + 128 tokens (12 cached) 2.10 s (first 0.21) length
 *     2026-11-29T13:41:09Z 127.0.0.1 POST /v1/completions 400 0.00 s: "temperature" must be a number
 * or the same as a JSON object. Unprintable bytes from the client are escaped, so that each line stays a single
 * line. */
#ifndef FR_TOOLS_SERVE_LOG_H
#define FR_TOOLS_SERVE_LOG_H

#include "tools/serve/generation_request.h"

enum { FR_LOG_OF_WARNINGS = 2 };

typedef struct fr_request_log {
    int level; /* 0: nothing is written. 1 to 4: the levels error, warn, info and debug of --log-level */
    bool json;
} fr_request_log;

/* Sets up the log from --log-level, --log-format and --quiet. */
fr_request_log fr_log_of(const fr_arguments *args);

/* Writes the line of an exchange that has ended. The function may be called from any thread. */
void fr_log_http_exchange(const fr_request_log *log, const fr_http_exchange_report *report);

/* Stores the figures of a request for text in its exchange. When the exchange ends, its line in the log
 * has them. With --log-contents this function also writes the body and the texts. */
void fr_log_generation_request(const fr_generation_request *request);

#endif
