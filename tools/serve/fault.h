/* Makes errors in the form that a server's clients expect.
 *
 * In: an HTTP status, or a status of the library. Out: {"error": {"code", "message", "type"}} as in OpenAI's and
 * llama.cpp's servers, or an error in the form of Anthropic or ollama. */
#ifndef FR_TOOLS_SERVE_FAULT_H
#define FR_TOOLS_SERVE_FAULT_H

#include <jansson.h>

#include "forerun.h"

/* Gives the error's type for an HTTP status: 401 authentication_error, 403 permission_error, 404 not_found_error,
 * other 4xx invalid_request_error, 501 not_supported_error, 503 unavailable_error, any other status server_error. */
const char *fr_fault_type(unsigned http);

/* Gives the HTTP status for a status of the library: 400 for an error that the client can correct, 503 for lack of
 * memory, else 500. */
unsigned fr_fault_http(fr_status status);

/* Makes an error. The message may have any bytes; those that are not UTF-8 become U+FFFD. */
json_t *fr_fault_json(unsigned http, const char *message);

/* Turns an error of fr_fault_json into Anthropic's form, {"type": "error", "error": {"type", "message"}}, and takes it
 * over. */
json_t *fr_fault_of_anthropic(json_t *fault);

/* Turns an error of fr_fault_json into ollama's form, {"error": message}, and takes it over. */
json_t *fr_fault_of_ollama(json_t *fault);

/* Makes an error in the form of the API to which the path belongs. NULL: the path is not known yet. */
json_t *fr_fault_at(const char *path, unsigned http, const char *message);

#endif
