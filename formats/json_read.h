/* JSON as jansson's values, read so that memory that runs out is told.
 *
 * In: a text. Out: what jansson's own reader makes of it; or nothing, where that has to say what is wrong, and for what
 * is seldom: integers of 19 digits and more, keys with a NUL. */
#ifndef FR_FORMATS_JSON_READ_H
#define FR_FORMATS_JSON_READ_H

#include <jansson.h>

#include "forerun.h"

#define FR_JSON_READ_DEPTH 512

/* flags: JSON_REJECT_DUPLICATES, JSON_ALLOW_NUL, JSON_DECODE_ANY. NULL: *lost tells whether for want of memory. */
json_t *fr_json_read_text(const char *text, size_t size, size_t flags, bool *lost);

#endif
