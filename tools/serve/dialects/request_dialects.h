/* Converts requests in other APIs' forms to the body of a chat.
 *
 * In: a body, which is a JSON object. Out: a new body of a request to /v1/chat/completions with one choice. If the
 * request is refused, the result is NULL, and `error` has the reason. Fields that are known but not implemented are
 * refused, and the error names them. Unknown fields are ignored. Items that another service has run are ignored too,
 * because the model can't read them. Tools that another service would run are also ignored. Each kind of ignored thing
 * is noted once (notes.h). */
#ifndef FR_TOOLS_SERVE_DIALECTS_REQUEST_DIALECTS_H
#define FR_TOOLS_SERVE_DIALECTS_REQUEST_DIALECTS_H

#include <jansson.h>

enum { FR_DIALECT_ERROR = 320 };

/* Reads OpenAI's /v1/responses. The given body keeps only the fields that the answer repeats. It gets a new member,
 * "called", which maps the names of functions to the tools that the client offered (tool_kinds.h). */
json_t *fr_responses_read(json_t *body, char error[FR_DIALECT_ERROR]);

/* Reads Anthropic's /v1/messages. */
json_t *fr_messages_read(json_t *body, char error[FR_DIALECT_ERROR]);

/* These functions read ollama's /api/chat and /api/generate. A request to /api/generate for plain text becomes the body
 * of a completion. */
json_t *fr_ollama_read_chat(json_t *body, char error[FR_DIALECT_ERROR]);
json_t *fr_ollama_read_generate(json_t *body, char error[FR_DIALECT_ERROR]);

#endif
