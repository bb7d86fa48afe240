/* A prompt as the beginning of its answer: "echo" of /v1/completions, with the log-probabilities of the prompt's tokens
 * where the request has "logprobs". Choices of one prompt share what was computed for the first of them.
 *
 * In: a request of that form. Out: JSON values, each new. */
#ifndef FR_TOOLS_SERVE_ANSWER_ECHO_H
#define FR_TOOLS_SERVE_ANSWER_ECHO_H

#include "tools/serve/generation_request.h"

/* Says if the choice has a session and its prompt's log-probabilities are still to be computed. */
bool fr_echo_is_due(const fr_generation_request *request, const fr_choice *choice);

/* Computes them by the choice's session, which is then as it was: its prompt waits. FR_MEMORY: other sessions have the
 * pages; this one has given its own back, and it may be tried again. FR_ABORTED: the client has gone. */
fr_status fr_echo_score(const fr_generation_request *request, fr_choice *choice);

/* The prompt as a text. */
json_t *fr_echo_text(const fr_choice *choice);

/* "logprobs" of its tokens as /v1/completions has them, null where none were asked for. *offset: the characters of the
 * prompt, which those of the reply stand behind. */
json_t *fr_echo_logprobs(const fr_generation_request *request, const fr_choice *choice, size_t *offset);

/* Puts both in front of what a choice of a whole answer has. */
void fr_echo_put(const fr_generation_request *request, const fr_choice *choice, json_t *answer);

#endif
