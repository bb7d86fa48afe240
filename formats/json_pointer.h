/* Follows a JSON pointer (RFC 6901) to a value.
 *
 * In: a value, and a URI that is only a fragment, such as "#/$defs/a~1b%20c". Out: the value to which the URI points,
 * which belongs to the given value. */
#ifndef FR_FORMATS_JSON_POINTER_H
#define FR_FORMATS_JSON_POINTER_H

#include <jansson.h>

/* Gives the value; NULL if the pointer names no value inside `root`. */
const json_t *fr_json_refer(const json_t *root, const char *reference);

#endif
