/* Where a JSON pointer leads (RFC 6901).
 *
 * In: a value, and a URI of a fragment alone, "#/$defs/a~1b%20c". Out: the value there, which belongs to the first. */
#ifndef FR_FORMATS_JSON_POINTER_H
#define FR_FORMATS_JSON_POINTER_H

#include <jansson.h>

/* NULL: it leads nowhere, or out of the value. */
const json_t *fr_json_refer(const json_t *root, const char *reference);

#endif
