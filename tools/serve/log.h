/* A server's lines on standard error: one for each request for text that has ended.
 *
 * In: the ask. Out: "forerun: POST /v1/completions: 7 + 128 tokens, 2.10 s, length"; with --log-contents its body and
 * texts behind that, as JSON on lines of their own; with --quiet nothing. */
#ifndef FR_TOOLS_SERVE_LOG_H
#define FR_TOOLS_SERVE_LOG_H

#include "tools/serve/ask.h"

void fr_log_ask(const fr_ask *ask);

#endif
