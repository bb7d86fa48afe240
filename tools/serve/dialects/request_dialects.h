/* Requests in other APIs' words, read into a chat's body (ask.h).
 *
 * In: a body, a JSON object. Out: the body of a request to /v1/chat/completions, new, which has one choice; NULL: the
 * request can't be one, and `error` has the line. Members are as ask.h has it: what is known and not built is refused
 * by its name, what nobody knows is passed over. So are tools and items of a conversation that another service runs or
 * has run, and that no model could read; each kind is told once (notes.h). */
#ifndef FR_TOOLS_SERVE_DIALECTS_REQUEST_DIALECTS_H
#define FR_TOOLS_SERVE_DIALECTS_REQUEST_DIALECTS_H

#include <jansson.h>

enum { FR_DIALECT_ERROR = 320 };

/* OpenAI's /v1/responses: what an answer repeats is left in the body, the rest is no longer there; "called" is what
 * answers are to call tools (tool_kinds.h). */
json_t *fr_responses_read(json_t *body, char error[FR_DIALECT_ERROR]);

/* Anthropic's /v1/messages. */
json_t *fr_messages_read(json_t *body, char error[FR_DIALECT_ERROR]);

/* ollama's /api/chat and /api/generate; of the latter a text without turns becomes the body of a completion. */
json_t *fr_ollama_read_chat(json_t *body, char error[FR_DIALECT_ERROR]);
json_t *fr_ollama_read_generate(json_t *body, char error[FR_DIALECT_ERROR]);

#endif
