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

/* Gives the HTTP status for a status of the library. An error that the client can correct gives 400, lack of memory
 * gives 503, and any other error gives 500. */
unsigned fr_fault_http(fr_status status);

/* Makes an error. The message may have any bytes. Bytes that are not UTF-8 become U+FFFD. */
json_t *fr_fault_json(unsigned http, const char *message);

/* Turns an error of fr_fault_json into Anthropic's form, {"type": "error", "error": {"type", "message"}}. Takes
 * ownership of the error. */
json_t *fr_fault_of_anthropic(json_t *fault);

/* Turns an error of fr_fault_json into ollama's form, {"error": message}. Takes ownership of the error. */
json_t *fr_fault_of_ollama(json_t *fault);

/* Makes an error in the form of the API to which the path belongs. path: NULL if it is not known yet. */
json_t *fr_fault_at(const char *path, unsigned http, const char *message);

#endif
