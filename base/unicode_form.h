/* Normalizes text to a Unicode form (Unicode Standard Annex 15), and classifies characters.
 *
 * In: text, in which invalid UTF-8 passes unchanged. Out: its NFC, NFD, NFKC or NFKD form, appended to a buffer. The
 * time is O(n) even for long runs of combining marks. Characters are classified as in Hugging Face's tokenizers. */
#ifndef FR_BASE_UNICODE_FORM_H
#define FR_BASE_UNICODE_FORM_H

#include "base/text_buffer.h"

void fr_unicode_form(const char *text, size_t length, bool compose, bool compatible, fr_text_buffer *out);

/* fr_is_space returns true for the characters that \s of a regular expression matches: those with the property
 * White_Space. fr_is_word returns true for those that \w matches: letters, marks, digits and connectors. */
bool fr_is_space(int32_t codepoint);
bool fr_is_word(int32_t codepoint);

/* Each returns true if the character's general category is: N for fr_is_numeric; M for fr_is_mark; Mn for
 * fr_is_nonspacing; P, and in ASCII also S, for fr_is_punctuation; Cc, Cf, Co or Cs for fr_is_control. All but
 * fr_is_numeric use the tables of older Unicode versions; unicode_versions.h gives the reason. */
bool fr_is_numeric(int32_t codepoint);
bool fr_is_mark(int32_t codepoint);
bool fr_is_nonspacing(int32_t codepoint);
bool fr_is_punctuation(int32_t codepoint);
bool fr_is_control(int32_t codepoint);

/* Gives the lower-case form of a capital letter, if that form is one character. Any other character is returned
 * unchanged. */
int32_t fr_lower(int32_t codepoint);

/* Each decodes a character and gives its length in bytes: fr_character_before the one that ends at `end`, and
 * fr_character_at the one that begins at `at`. If the bytes there are not UTF-8, or there are none, the functions
 * return -1, and the length is 1. */
int32_t fr_character_before(const char *text, size_t end, size_t *length);
int32_t fr_character_at(const char *text, size_t at, size_t end, size_t *length);

/* fr_skip_space gives the end of the white space that begins at `at`, and fr_skip_space_back the beginning of the white
 * space that ends at `at`. They stop at `limit`. */
size_t fr_skip_space(const char *text, size_t at, size_t limit);
size_t fr_skip_space_back(const char *text, size_t at, size_t limit);

/* Describes the first character of some bytes. The bytes may end before the character does. */
typedef struct fr_character_bytes {
    size_t there; /* number of the character's bytes that are present; 0 if no character begins with these bytes */
    size_t whole; /* number of bytes of the complete character */
} fr_character_bytes;

fr_character_bytes fr_first_character(const char *text, size_t length);

#endif
