/* Characters and stretches of text, as Python's str sees them.
 *
 * Any bytes are borne: one that belongs to no UTF-8 character counts as a character of its own, a lone surrogate
 * (U+DC80 to U+DCFF), which is neither letter nor space and can't be printed. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_TEXT_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_TEXT_H

#include "forerun.h"

/* The character at `bytes`, of which there is at least one: how many bytes it has. */
size_t fr_jinja_decode(const char *bytes, size_t length, int32_t *codepoint);

/* Its UTF-8, up to 4 bytes; of the surrogate of a byte that byte. */
size_t fr_jinja_encode(int32_t codepoint, char *bytes);

/* How many characters; and where the character of that number begins, the length if there are fewer. */
size_t fr_jinja_count_characters(const char *bytes, size_t length);
size_t fr_jinja_character_offset(const char *bytes, size_t length, size_t number);

bool fr_jinja_all_ascii(const char *bytes, size_t length);

/* str.isspace() of one character. */
bool fr_jinja_is_python_space(int32_t codepoint);

/* How many bytes of white space it begins or ends with. */
size_t fr_jinja_space_prefix(const char *bytes, size_t length);
size_t fr_jinja_space_suffix(const char *bytes, size_t length);

/* Where the needle first lies in the text; SIZE_MAX if nowhere. */
size_t fr_jinja_find(const char *bytes, size_t length, const char *needle, size_t needle_length);

/* What str.isalpha() and its like ask of each character. */
bool fr_jinja_is_alphabetic(int32_t codepoint);
bool fr_jinja_is_decimal(int32_t codepoint);
bool fr_jinja_is_digit(int32_t codepoint);
bool fr_jinja_is_numeric_character(int32_t codepoint);
bool fr_jinja_is_upper(int32_t codepoint);
bool fr_jinja_is_lower(int32_t codepoint);
bool fr_jinja_is_titlecase(int32_t codepoint);
bool fr_jinja_is_printable(int32_t codepoint);

/* What a character becomes in upper, lower, title or folded case: up to three characters. */
typedef enum fr_jinja_case { FR_CASE_UPPER, FR_CASE_LOWER, FR_CASE_TITLE, FR_CASE_FOLDED } fr_jinja_case;
size_t fr_jinja_change_case(int32_t codepoint, fr_jinja_case to, int32_t changed[3]);

/* A number as Python's float() reads it (without inf and nan), whole; false if it isn't one. */
bool fr_jinja_read_real(const char *bytes, size_t length, double *real);

/* "1.5", "1e-05", "inf": repr() of a float, NUL-terminated. */
#define FR_REAL_SIZE 64
void fr_jinja_print_real(double real, char text[FR_REAL_SIZE]);

#endif
