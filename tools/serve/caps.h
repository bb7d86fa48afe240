/* Finds out which features a chat template supports, by rendering small conversations with it and reading the result.
 *
 * In: a tokenizer with its template. Out: {"supports_tools": true, ...}, by the names of llama.cpp's server. */
#ifndef FR_TOOLS_SERVE_CAPS_H
#define FR_TOOLS_SERVE_CAPS_H

#include <jansson.h>

#include "forerun.h"

json_t *fr_caps_of(const fr_tokenizer *tokenizer);

/* Returns true if replies may begin with reasoning: the template has marks for it. */
bool fr_caps_reasons(const fr_tokenizer *tokenizer);

#endif
