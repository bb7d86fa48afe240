/* Arguments that a model writes as plain text, as JSON of the type that the tool's schema gives them.
 *
 * In: a text, and the types that it may have (reply_schema.h). Out: JSON text, appended. */
#ifndef FR_SRC_REPLY_VALUE_H
#define FR_SRC_REPLY_VALUE_H

#include "base/text_buffer.h"
#include "src/chat/json_scan.h"
#include "src/chat/reply_schema.h"

/* The inside of a JSON string, which may be put piece by piece. Bytes that are not UTF-8 stay what they are. */
void fr_value_put_escaped(fr_text_buffer *out, const char *text, size_t length);

/* Escaped UTF-16 units of a JSON string, one by one: a surrogate without its other half becomes U+FFFD. *half: 0 at
 * first; a half that waits for the other. What isn't a unit ends it, which changes nothing where none waits. */
void fr_value_put_unit(fr_text_buffer *out, unsigned *half, unsigned unit);
void fr_value_end_unit(fr_text_buffer *out, unsigned *half);

/* Bytes that a loose scan takes, written as JSON. Zeroed at first; a comma goes out once something follows it. */
typedef struct fr_json_writer {
    unsigned half; /* of a surrogate pair */
    char escape[6];
    uint8_t escaped; /* bytes of an escape under way */
    bool none;       /* Python's word for null is under way */
    bool comma;
    uint8_t gap; /* white space behind the comma */
    char blanks[32];
} fr_json_writer;

/* The next byte, before which the scan was as it is here. */
void fr_value_put_json(fr_text_buffer *out, fr_json_writer *writer, const fr_json_scan *before, char byte);

unsigned fr_value_hex_digit(char byte);

/* Whether a JSON number is none that double holds. Integers may have any number of digits. */
bool fr_value_is_too_big(const char *number, size_t length);

/* A value that is the text as JSON where its type allows that, also as a loose scan has it; or else a string. What is
 * put can be read back: no number in it is too big, and no surrogate is alone. */
void fr_value_put(fr_text_buffer *out, const char *text, size_t length, fr_value_types types);

#endif
