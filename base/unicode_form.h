/* Unicode normalization forms (Unicode Standard Annex 15) over any bytes, and what characters are made of.
 *
 * In: text, of which invalid UTF-8 passes unchanged. Out: its NFC, NFD, NFKC or NFKD form, appended, in O(n) however
 * long a run of combining marks is. Characters: those of utf8proc's Unicode version. */
#ifndef FR_BASE_UNICODE_FORM_H
#define FR_BASE_UNICODE_FORM_H

#include "base/text_buffer.h"

void fr_unicode_form(const char *text, size_t length, bool compose, bool compatible, fr_text_buffer *out);

/* What regular expressions call \s and \w: the property White_Space; letters, marks, digits and connectors. */
bool fr_is_space(int32_t codepoint);
bool fr_is_word(int32_t codepoint);

/* The character that some bytes begin with, or begin to be. */
typedef struct fr_character_bytes {
    size_t there; /* how many of its bytes are; 0: no character begins so */
    size_t whole; /* how many it has */
} fr_character_bytes;

fr_character_bytes fr_first_character(const char *text, size_t length);

#endif
