/* What a chat template shows a model, found out by what it makes of small conversations.
 *
 * In: a tokenizer with its template. Out: {"supports_tools": true, ...}, by the names of llama.cpp's server. */
#ifndef FR_TOOLS_SERVE_CAPS_H
#define FR_TOOLS_SERVE_CAPS_H

#include <jansson.h>

#include "forerun.h"

json_t *fr_caps_of(const fr_tokenizer *tokenizer);

/* Says if replies may begin with reasoning, which needs a template that has marks for it. */
bool fr_caps_reasons(const fr_tokenizer *tokenizer);

#endif
