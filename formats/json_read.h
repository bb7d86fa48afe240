/* Reads JSON into jansson's values and always reports a lack of memory, while jansson's own reader sometimes does not.
 *
 * In: a text. Out: the same value as from jansson's own reader. NULL is returned for a text that jansson refuses, and
 * for two rare kinds of text that it accepts: those with integers beyond int64 (unless FR_JSON_PYTHON_NUMBERS is set),
 * and those with keys that contain a NUL. */
#ifndef FR_FORMATS_JSON_READ_H
#define FR_FORMATS_JSON_READ_H

#include <jansson.h>

#include "forerun.h"

#define FR_JSON_READ_DEPTH 512

/* A flag that may be added to jansson's flags: numbers are read as Python's json reads them. NaN, Infinity and
 * -Infinity, and reals too large for a double, become strings: the byte FR_JSON_WIDE and then the word
 * (fr_json_not_finite). Integers beyond int64 become reals. */
#define FR_JSON_PYTHON_NUMBERS ((size_t)1 << 16)

/* Reads a text. `flags` may have JSON_REJECT_DUPLICATES, JSON_ALLOW_NUL, JSON_DECODE_ANY and FR_JSON_PYTHON_NUMBERS. If
 * NULL is returned, *lost says whether memory ran out. */
json_t *fr_json_read_text(const char *text, size_t size, size_t flags, bool *lost);

#endif
