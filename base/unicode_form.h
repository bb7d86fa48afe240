/* Unicode normalization forms (Unicode Standard Annex 15) over any bytes, and what characters are made of.
 *
 * In: text, of which invalid UTF-8 passes unchanged. Out: its NFC, NFD, NFKC or NFKD form, appended, in O(n) however
 * long a run of combining marks is. Characters: what they are to Hugging Face's tokenizers. */
#ifndef FR_BASE_UNICODE_FORM_H
#define FR_BASE_UNICODE_FORM_H

#include "base/text_buffer.h"

void fr_unicode_form(const char *text, size_t length, bool compose, bool compatible, fr_text_buffer *out);

/* What regular expressions call \s and \w: the property White_Space; letters, marks, digits and connectors. */
bool fr_is_space(int32_t codepoint);
bool fr_is_word(int32_t codepoint);

/* Of general category N; and, by older versions' tables: of any M; of Mn; of P, or in ASCII also S; of Cc, Cf, Co or
 * Cs. unicode_versions.h tells why. */
bool fr_is_numeric(int32_t codepoint);
bool fr_is_mark(int32_t codepoint);
bool fr_is_nonspacing(int32_t codepoint);
bool fr_is_punctuation(int32_t codepoint);
bool fr_is_control(int32_t codepoint);

/* The small letter of a capital that is one character. */
int32_t fr_lower(int32_t codepoint);

/* The character that ends, or begins, at a place of a text, and how long it is; -1 and 1 when that is no UTF-8, or
 * nothing. */
int32_t fr_character_before(const char *text, size_t end, size_t *length);
int32_t fr_character_at(const char *text, size_t at, size_t end, size_t *length);

/* Where white space that begins at `at` ends; where white space that ends there begins. None of it before or behind
 * the limit. */
size_t fr_skip_space(const char *text, size_t at, size_t limit);
size_t fr_skip_space_back(const char *text, size_t at, size_t limit);

/* The character that some bytes begin with, or begin to be. */
typedef struct fr_character_bytes {
    size_t there; /* how many of its bytes are; 0: no character begins so */
    size_t whole; /* how many it has */
} fr_character_bytes;

fr_character_bytes fr_first_character(const char *text, size_t length);

#endif
