/* Errors as a server's clients know them.
 *
 * In: an HTTP status, or a status of the library. Out: {"error": {"code", "message", "type"}} of OpenAI's and
 * llama.cpp's servers, or Anthropic's; which type goes with a status. */
#ifndef FR_TOOLS_SERVE_FAULT_H
#define FR_TOOLS_SERVE_FAULT_H

#include <jansson.h>

#include "forerun.h"

/* 401 authentication_error, 403 permission_error, 404 not_found_error, other 4.. invalid_request_error, 501
 * not_supported_error, 503 unavailable_error, else server_error. */
const char *fr_fault_type(unsigned http);

/* 400 for what the client can mend, 503 for memory, else 500. */
unsigned fr_fault_http(fr_status status);

/* The message may be any bytes: what is not UTF-8 becomes U+FFFD. */
json_t *fr_fault_json(unsigned http, const char *message);

/* Such an error, handed over, as Anthropic's clients know them: {"type": "error", "error": {"type", "message"}}. */
json_t *fr_fault_of_anthropic(json_t *fault);

/* And ollama's: {"error": message}. */
json_t *fr_fault_of_ollama(json_t *fault);

/* An error in the form of those who ask at a path (NULL: none is known yet). */
json_t *fr_fault_at(const char *path, unsigned http, const char *message);

#endif
