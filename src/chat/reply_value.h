/* Arguments that a model writes as plain text, as JSON of the type that the tool's schema gives them.
 *
 * In: a text, and the types that it may have (reply_schema.h). Out: JSON text, appended. */
#ifndef FR_SRC_REPLY_VALUE_H
#define FR_SRC_REPLY_VALUE_H

#include "base/text_buffer.h"
#include "src/chat/reply_schema.h"

/* The inside of a JSON string, which may be put piece by piece. Bytes that are not UTF-8 stay what they are. */
void fr_value_put_escaped(fr_text_buffer *out, const char *text, size_t length);

/* A value that is the text as JSON where its type allows that, also as Python writes True, False and None; or else a
 * string. */
void fr_value_put(fr_text_buffer *out, const char *text, size_t length, fr_value_types types);

#endif
