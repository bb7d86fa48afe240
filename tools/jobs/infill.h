/* Reads requests to /infill, which ask for the code between a prefix and a suffix, for models that were trained to fill
 * in code.
 *
 * In: {"input_prefix", "input_suffix", "input_extra": [{"filename", "text"}], "prompt"} and the members of /completion,
 * with the same names as in llama.cpp's server. Out: the body of a request to /completion whose prompt is ids. If the
 * request is refused, the result is false, and `error` has the reason. */
#ifndef FR_TOOLS_JOBS_INFILL_H
#define FR_TOOLS_JOBS_INFILL_H

#include <jansson.h>

#include "forerun.h"

enum { FR_INFILL_ERROR = 256 };

/* Returns true if the tokenizer has the tokens for filling in code. Returns false if the tokenizer is NULL. */
bool fr_infill_can(const fr_tokenizer *tokenizer);

/* Turns the body of a request to /infill into that of a request to /completion. tokenizer: NULL if the model has
 * none. */
bool fr_infill_read(const fr_tokenizer *tokenizer, json_t *body, char error[FR_INFILL_ERROR]);

/* Gives the ids of a prompt that asks for the text between `prompt` (a text or ids) and `suffix`. The result is a new
 * array. NULL: the ids could not be made, and `error` has the reason. */
json_t *fr_infill_around(const fr_tokenizer *tokenizer, const json_t *prompt, const json_t *suffix,
                         char error[FR_INFILL_ERROR]);

#endif
