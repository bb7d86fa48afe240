/* Makes texts from texts as Python's str does, for filters and methods. Each character of a result is trusted or
 * foreign like the character from which it was made. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_STRINGS_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_STRINGS_H

#include "src/language/jinja/template_render.h"
#include "src/language/jinja/template_text.h"

const fr_jinja_string *fr_jinja_string_in_case(fr_jinja_render *render, const fr_jinja_string *string,
                                               fr_jinja_case to);
const fr_jinja_string *fr_jinja_string_capitalize(fr_jinja_render *render, const fr_jinja_string *string);
const fr_jinja_string *fr_jinja_string_swapcase(fr_jinja_render *render, const fr_jinja_string *string);

/* Does Python's str.title(): a letter after another letter becomes lower case, and any other letter gets title case. */
const fr_jinja_string *fr_jinja_string_title(fr_jinja_render *render, const fr_jinja_string *string);

typedef enum fr_jinja_side { FR_SIDE_LEFT = 1, FR_SIDE_RIGHT = 2, FR_SIDE_BOTH = 3 } fr_jinja_side;

/* Removes `characters` from the ends of a string. If `characters` is NULL, removes white space. */
const fr_jinja_string *fr_jinja_string_strip(fr_jinja_render *render, const fr_jinja_string *string,
                                             const fr_jinja_string *characters, fr_jinja_side sides);

/* Replaces the first `count` occurrences, or all if count is negative. */
const fr_jinja_string *fr_jinja_string_replace(fr_jinja_render *render, const fr_jinja_string *string,
                                               const fr_jinja_string *old, const fr_jinja_string *with, int64_t count);

/* Split a string at each separator. If the separator is NULL, they split at white space. most: limit on the number of
 * splits; a negative number means no limit. */
fr_jinja_list *fr_jinja_string_split(fr_jinja_render *render, const fr_jinja_string *string,
                                     const fr_jinja_string *separator, int64_t most);
fr_jinja_list *fr_jinja_string_split_right(fr_jinja_render *render, const fr_jinja_string *string,
                                           const fr_jinja_string *separator, int64_t most);
fr_jinja_list *fr_jinja_string_lines(fr_jinja_render *render, const fr_jinja_string *string, bool keep_ends);

/* Find the first and the last occurrence of a text between two offsets; SIZE_MAX: there is none. */
size_t fr_jinja_string_find(fr_jinja_render *render, const fr_jinja_string *string, const fr_jinja_string *needle,
                            size_t begin, size_t end);
size_t fr_jinja_string_find_last(fr_jinja_render *render, const fr_jinja_string *string, const fr_jinja_string *needle,
                                 size_t begin, size_t end);

/* Writes a string with the special characters of HTML as entities. */
void fr_jinja_put_escaped(fr_jinja_render *render, const fr_jinja_string *string);

/* Writes a text, padded to `width` characters with the character `fill`. align: the side of the padding. '<': to the
 * right of the text; '>': to its left; '^': on both sides, as in Python's format(); 'c': on both sides, as in Python's
 * center(). */
void fr_jinja_put_aligned(fr_jinja_render *render, const fr_jinja_string *string, int64_t width,
                          const fr_jinja_string *fill, char align);

/* Returns true if the string is not empty and all its characters have the property. */
bool fr_jinja_string_all(fr_jinja_render *render, const fr_jinja_string *string, bool is(int32_t codepoint));

/* Do Python's str.isupper(), str.islower() and str.istitle(). */
bool fr_jinja_string_is_upper(fr_jinja_render *render, const fr_jinja_string *string);
bool fr_jinja_string_is_lower(fr_jinja_render *render, const fr_jinja_string *string);
bool fr_jinja_string_is_title(fr_jinja_render *render, const fr_jinja_string *string);

#endif
