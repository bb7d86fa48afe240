/* Converts requests in other APIs' forms to the body of a chat.
 *
 * In: a body, a JSON object. Out: a new body of a request to /v1/chat/completions with one choice; NULL if the request
 * is refused, with the reason in `error`. Fields that are known and not built are refused by name; unknown fields are
 * ignored. The model can't read items that another service has run, so these are ignored, and so are tools that
 * another service would run. Each kind is noted once (notes.h). */
#ifndef FR_TOOLS_SERVE_DIALECTS_REQUEST_DIALECTS_H
#define FR_TOOLS_SERVE_DIALECTS_REQUEST_DIALECTS_H

#include <jansson.h>

enum { FR_DIALECT_ERROR = 320 };

/* Reads OpenAI's /v1/responses. The old body keeps only the fields that the answer repeats. It gets a new member,
 * "called", which maps the names of functions to the tools that the client offered (tool_kinds.h). */
json_t *fr_responses_read(json_t *body, char error[FR_DIALECT_ERROR]);

/* Reads Anthropic's /v1/messages. */
json_t *fr_messages_read(json_t *body, char error[FR_DIALECT_ERROR]);

/* Read ollama's /api/chat and /api/generate. A request to /api/generate for plain text becomes the body of a
 * completion. */
json_t *fr_ollama_read_chat(json_t *body, char error[FR_DIALECT_ERROR]);
json_t *fr_ollama_read_generate(json_t *body, char error[FR_DIALECT_ERROR]);

#endif
