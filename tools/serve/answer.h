/* The answer to a request for text, as its choices go on: one JSON object, or a stream of server-sent events, in the
 * form that was asked for.
 *
 * In: an ask whose jobs are run. Out: bytes to its call. By the engine's thread alone. */
#ifndef FR_TOOLS_SERVE_ANSWER_H
#define FR_TOOLS_SERVE_ANSWER_H

#include "tools/serve/ask.h"

/* Other APIs' words, in which an ask with one choice may be answered: OpenAI's /v1/responses,
 * Anthropic's /v1/messages, ollama's /api/chat and /api/generate. */
typedef struct fr_dialect fr_dialect;
extern const fr_dialect fr_dialect_responses, fr_dialect_messages, fr_dialect_ollama_chat, fr_dialect_ollama_generate;

/* Settles that, before anything is answered. asked: the body in that dialect, which is handed over. */
void fr_answer_in(fr_ask *ask, const fr_dialect *dialect, json_t *asked);

/* A choice's session has begun, and no ids have come yet; parts of its prompt have been run; it has new ids, or has
 * ended: then its session is still open, and may be closed afterwards. A job that has failed has its error, which is
 * the answer, or ends the stream, and ask->answered says so: the other choices are not wanted any more. */
void fr_answer_began(fr_ask *ask, fr_choice *choice);
void fr_answer_progress(fr_ask *ask, fr_choice *choice);
void fr_answer_step(fr_ask *ask, fr_choice *choice);

/* All choices have ended: the whole answer, or the stream's end. */
void fr_answer_end(fr_ask *ask);

/* Nothing was begun: ask->error is the answer. */
void fr_answer_refuse(fr_ask *ask);

/* A sign of life in a stream that has been silent. */
void fr_answer_ping(fr_ask *ask);

/* What answers keep of a choice, when its ask is freed. */
void fr_answer_forget(fr_choice *choice);

#endif
