/* Writes the answer to a request for text while its choices run. The answer is one JSON object or a stream of
 * server-sent events, in the form that the request asked for.
 *
 * In: a request whose jobs are run. Out: bytes for its exchange. Only the engine's thread calls these functions. */
#ifndef FR_TOOLS_SERVE_ANSWER_H
#define FR_TOOLS_SERVE_ANSWER_H

#include "tools/serve/generation_request.h"

/* A dialect is the form of requests and answers in another API: OpenAI's /v1/responses, Anthropic's /v1/messages,
 * ollama's /api/chat and /api/generate. A request in a dialect has one choice. */
typedef struct fr_dialect fr_dialect;
extern const fr_dialect fr_dialect_responses, fr_dialect_messages, fr_dialect_ollama_chat, fr_dialect_ollama_generate;

/* Sets the dialect of the answer. Call it before any part of the answer is sent. dialect_body: the request's body as
 * the client sent it; the request takes ownership of it. */
void fr_answer_in(fr_generation_request *request, const fr_dialect *dialect, json_t *dialect_body);

/* These functions report the progress of a choice. fr_answer_began: its session has begun and has no ids yet.
 * fr_answer_progress: a part of its prompt has been run. fr_answer_step: it has new ids or has ended, and its session
 * is still open. If the job has failed, its error becomes the answer, or the last event of the stream. Then
 * request->answered is set, and the request's other choices are no longer needed. */
void fr_answer_began(fr_generation_request *request, fr_choice *choice);
void fr_answer_progress(fr_generation_request *request, fr_choice *choice);
void fr_answer_step(fr_generation_request *request, fr_choice *choice);

/* Reports that all choices have ended. Sends the whole answer, or the end of the stream. */
void fr_answer_end(fr_generation_request *request);

/* Answers with request->error. Call it only if no choice of the request has begun. */
void fr_answer_refuse(fr_generation_request *request);

/* Sends a ping in a stream. It is called when the stream has been silent for some time. */
void fr_answer_ping(fr_generation_request *request);

/* Frees the state that the answer keeps for a choice. It is called when the request is freed. */
void fr_answer_forget(fr_choice *choice);

#endif
