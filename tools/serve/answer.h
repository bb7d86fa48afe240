/* Writes the answer to a request for text while its choices run: one JSON object, or a stream of server-sent events,
 * in the form that the request asked for.
 *
 * In: a request whose jobs are run. Out: bytes to its exchange. By the engine's thread alone. */
#ifndef FR_TOOLS_SERVE_ANSWER_H
#define FR_TOOLS_SERVE_ANSWER_H

#include "tools/serve/generation_request.h"

/* A dialect is the form of another API in which a request with one choice may be answered: OpenAI's /v1/responses,
 * Anthropic's /v1/messages, ollama's /api/chat and /api/generate. */
typedef struct fr_dialect fr_dialect;
extern const fr_dialect fr_dialect_responses, fr_dialect_messages, fr_dialect_ollama_chat, fr_dialect_ollama_generate;

/* Sets the dialect of the answer; call it before anything is answered. dialect_body is the body in that dialect, and
 * the request takes it over. */
void fr_answer_in(fr_generation_request *request, const fr_dialect *dialect, json_t *dialect_body);

/* A choice's session has begun, and no ids have come yet; parts of its prompt have been run; it has new ids, or has
 * ended: then its session is still open, and may be closed afterwards. A job that has failed has its error, which is
 * the answer, or ends the stream, and request->answered says so: the other choices are not wanted any more. */
void fr_answer_began(fr_generation_request *request, fr_choice *choice);
void fr_answer_progress(fr_generation_request *request, fr_choice *choice);
void fr_answer_step(fr_generation_request *request, fr_choice *choice);

/* All choices have ended: the whole answer, or the stream's end. */
void fr_answer_end(fr_generation_request *request);

/* Nothing was begun: request->error is the answer. */
void fr_answer_refuse(fr_generation_request *request);

/* A sign of life in a stream that has been silent. */
void fr_answer_ping(fr_generation_request *request);

/* Frees the state that the answer keeps for a choice. Called when the choice's request is freed. */
void fr_answer_forget(fr_choice *choice);

#endif
