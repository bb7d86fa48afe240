/* Reads requests to /infill: code between a prefix and a suffix, for models that were trained to fill it in.
 *
 * In: {"input_prefix", "input_suffix", "input_extra": [{"filename", "text"}], "prompt"} and the members of
 * /completion, as llama.cpp's server has them. Out: the body of a request to /completion whose prompt is ids; false:
 * the request can't be expressed as one, and `error` has the reason. */
#ifndef FR_TOOLS_JOBS_INFILL_H
#define FR_TOOLS_JOBS_INFILL_H

#include <jansson.h>

#include "forerun.h"

enum { FR_INFILL_ERROR = 256 };

/* Returns true if the tokenizer (NULL: none) has the tokens for filling in code. */
bool fr_infill_can(const fr_tokenizer *tokenizer);

/* Reads a request and changes its body. tokenizer: the model's (NULL: it has none). */
bool fr_infill_read(const fr_tokenizer *tokenizer, json_t *body, char error[FR_INFILL_ERROR]);

/* Gives the ids of a prompt for filling in the text between `prompt` (a text or ids) and `suffix`, as a new array.
 * NULL: this failed, and `error` has the reason. */
json_t *fr_infill_around(const fr_tokenizer *tokenizer, const json_t *prompt, const json_t *suffix,
                         char error[FR_INFILL_ERROR]);

#endif
