/* Handles characters and parts of texts as Python's str does.
 *
 * Any bytes are accepted. A byte that belongs to no UTF-8 character counts as a character of its own, which is a
 * surrogate without its other half (U+DC80 to U+DCFF). Such a character is no letter and no space, and can't be
 * printed. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_TEXT_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_TEXT_H

#include "forerun.h"

/* Decodes the character at `bytes`; there must be at least one byte. Gives the character's length in bytes. */
size_t fr_jinja_decode(const char *bytes, size_t length, int32_t *codepoint);

/* Writes a character as UTF-8, in up to 4 bytes. If the character is a surrogate in place of a byte, writes that
 * byte. */
size_t fr_jinja_encode(int32_t codepoint, char *bytes);

/* fr_jinja_count_characters counts the characters of a text. fr_jinja_character_offset gives the byte offset of
 * character `number`, or the text's length if the text has no such character. */
size_t fr_jinja_count_characters(const char *bytes, size_t length);
size_t fr_jinja_character_offset(const char *bytes, size_t length, size_t number);

bool fr_jinja_all_ascii(const char *bytes, size_t length);

/* Does str.isspace() for one character. */
bool fr_jinja_is_python_space(int32_t codepoint);

/* Give the number of bytes of white space at the beginning and at the end of a text. */
size_t fr_jinja_space_prefix(const char *bytes, size_t length);
size_t fr_jinja_space_suffix(const char *bytes, size_t length);

/* Finds the first occurrence of the needle in the text; SIZE_MAX: there is none. */
size_t fr_jinja_find(const char *bytes, size_t length, const char *needle, size_t needle_length);

/* These functions test properties of a character, as str.isalpha() and similar functions do. */
bool fr_jinja_is_alphabetic(int32_t codepoint);
bool fr_jinja_is_decimal(int32_t codepoint);
bool fr_jinja_is_digit(int32_t codepoint);
bool fr_jinja_is_numeric_character(int32_t codepoint);
bool fr_jinja_is_upper(int32_t codepoint);
bool fr_jinja_is_lower(int32_t codepoint);
bool fr_jinja_is_titlecase(int32_t codepoint);
bool fr_jinja_is_printable(int32_t codepoint);

/* Converts a character to upper, lower, title or folded case. The result has up to three characters, and its length is
 * returned. */
typedef enum fr_jinja_case { FR_CASE_UPPER, FR_CASE_LOWER, FR_CASE_TITLE, FR_CASE_FOLDED } fr_jinja_case;
size_t fr_jinja_change_case(int32_t codepoint, fr_jinja_case to, int32_t changed[3]);

/* Reads a whole text as a number, as Python's float() does, but without inf and nan. Returns false if the text is not a
 * number. */
bool fr_jinja_read_real(const char *bytes, size_t length, double *real);

/* Writes repr() of a float, followed by a NUL: "1.5", "1e-05", "inf". */
#define FR_REAL_SIZE 64
void fr_jinja_print_real(double real, char text[FR_REAL_SIZE]);

#endif
