/* Finds out which features a chat template supports, by rendering small conversations with it and reading the result.
 *
 * In: a tokenizer with its template. Out: {"supports_tools": true, ...}, with the names that llama.cpp's server
 * uses. */
#ifndef FR_TOOLS_SERVE_CAPS_H
#define FR_TOOLS_SERVE_CAPS_H

#include <jansson.h>

#include "forerun.h"

json_t *fr_caps_of(const fr_tokenizer *tokenizer);

/* Returns true if the template has marks of reasoning, so that replies may begin with reasoning. */
bool fr_caps_reasons(const fr_tokenizer *tokenizer);

#endif
