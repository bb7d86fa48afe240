/* Requests to /infill: code between a prefix and a suffix, as models that were trained on that write it.
 *
 * In: {"input_prefix", "input_suffix", "input_extra": [{"filename", "text"}], "prompt"} and the members of /completion,
 * as llama.cpp's server has them. Out: the body of a request to /completion, whose prompt is ids; False: it can't be
 * one, and `error` says why. */
#ifndef FR_TOOLS_JOBS_INFILL_H
#define FR_TOOLS_JOBS_INFILL_H

#include <jansson.h>

#include "forerun.h"

enum { FR_INFILL_ERROR = 256 };

/* Says if the tokenizer (NULL: none) has the tokens for filling in code. */
bool fr_infill_can(const fr_tokenizer *tokenizer);

/* The model's tokenizer (NULL: it has none); the body is changed. */
bool fr_infill_read(const fr_tokenizer *tokenizer, json_t *body, char error[FR_INFILL_ERROR]);

/* Gives the ids of a prompt for the text between `prompt` (a text or ids) and `suffix`, a new array. NULL: failed, for
 * the reason in `error`. */
json_t *fr_infill_around(const fr_tokenizer *tokenizer, const json_t *prompt, const json_t *suffix,
                         char error[FR_INFILL_ERROR]);

#endif
