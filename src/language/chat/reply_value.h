/* Converts arguments that a model wrote as plain text to JSON of the types that the tool's schema allows.
 *
 * In: a text, and the types that it may have (reply_schema.h). Out: JSON text, appended. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_VALUE_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_VALUE_H

#include "base/text_buffer.h"
#include "src/language/chat/json_scan.h"
#include "src/language/chat/reply_schema.h"

/* Appends a text, escaped, within a JSON string. Bytes that are not UTF-8 stay unchanged. */
void fr_value_put_escaped(fr_text_buffer *out, const char *text, size_t length);

/* fr_value_put_unit appends an escaped UTF-16 unit to a JSON string. *half, 0 at first, keeps the first half of a
 * surrogate pair until the second half comes. A surrogate without its other half becomes U+FFFD. fr_value_end_unit must
 * be called before anything else is appended. If a half is still kept, it writes that half. */
void fr_value_put_unit(fr_text_buffer *out, unsigned *half, unsigned unit);
void fr_value_end_unit(fr_text_buffer *out, unsigned *half);

/* Rewrites as JSON the bytes that a loose scan accepts. Set the struct to zero before the first byte. A comma is held
 * back until something follows it, because models write a comma after the last item. */
typedef struct fr_json_writer {
    unsigned half; /* the first half of a surrogate pair, kept until the second half comes; 0: none is kept */
    char escape[6];
    uint8_t escaped; /* number of bytes in `escape`, which holds an unfinished escape */
    bool none;       /* inside the word None, which is Python's null */
    bool comma;
    uint8_t gap; /* number of bytes of white space after the comma; they are kept in `blanks` */
    char blanks[32];
} fr_json_writer;

/* Writes the next byte. before: the scan's state before that byte. */
void fr_value_put_json(fr_text_buffer *out, fr_json_writer *writer, const fr_json_scan *before, char byte);

unsigned fr_value_hex_digit(char byte);

/* Returns true if a JSON number is too large for a double. Integers may have any number of digits. */
bool fr_value_is_too_big(const char *number, size_t length);

/* Writes the text as a value. If a loose scan accepts the text, and the value's type is one of `types`, it is written
 * as JSON; otherwise as a string. The value can be read back: no number is too large, and no surrogate is alone. */
void fr_value_put(fr_text_buffer *out, const char *text, size_t length, fr_value_types types);

#endif
