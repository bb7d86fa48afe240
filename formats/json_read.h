/* Reads JSON as jansson's values, and reports when memory runs out, which jansson's own reader may not.
 *
 * In: a text. Out: the value that jansson's own reader makes of it; or none, if that has to report an error, or for
 * rare values: integers beyond int64 (unless FR_JSON_PYTHON_NUMBERS), keys with a NUL. */
#ifndef FR_FORMATS_JSON_READ_H
#define FR_FORMATS_JSON_READ_H

#include <jansson.h>

#include "forerun.h"

#define FR_JSON_READ_DEPTH 512

/* A flag beside jansson's: numbers are read as Python's json reads and writes them in configurations. NaN, Infinity and
 * -Infinity, and reals too large for a double, become strings of FR_JSON_WIDE and that word (fr_json_not_finite);
 * integers beyond int64 become reals. */
#define FR_JSON_PYTHON_NUMBERS ((size_t)1 << 16)

/* flags: JSON_REJECT_DUPLICATES, JSON_ALLOW_NUL, JSON_DECODE_ANY, FR_JSON_PYTHON_NUMBERS. NULL: *lost tells if
 * memory ran out. */
json_t *fr_json_read_text(const char *text, size_t size, size_t flags, bool *lost);

#endif
