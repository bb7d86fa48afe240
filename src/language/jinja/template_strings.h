/* What Python's str does to make texts of texts: shared by filters and methods. Each character of a result is of the
 * hand of that it was made from. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_STRINGS_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_STRINGS_H

#include "src/language/jinja/template_render.h"
#include "src/language/jinja/template_text.h"

const fr_jinja_string *fr_jinja_string_in_case(fr_jinja_render *render, const fr_jinja_string *string,
                                               fr_jinja_case to);
const fr_jinja_string *fr_jinja_string_capitalize(fr_jinja_render *render, const fr_jinja_string *string);
const fr_jinja_string *fr_jinja_string_swapcase(fr_jinja_render *render, const fr_jinja_string *string);

/* str.title(): letters behind what is no letter are in title case. */
const fr_jinja_string *fr_jinja_string_title(fr_jinja_render *render, const fr_jinja_string *string);

typedef enum fr_jinja_side { FR_SIDE_LEFT = 1, FR_SIDE_RIGHT = 2, FR_SIDE_BOTH = 3 } fr_jinja_side;

/* Without those characters at the ends; NULL: without white space. */
const fr_jinja_string *fr_jinja_string_strip(fr_jinja_render *render, const fr_jinja_string *string,
                                             const fr_jinja_string *characters, fr_jinja_side sides);

/* count: how many at most, negative for all. */
const fr_jinja_string *fr_jinja_string_replace(fr_jinja_render *render, const fr_jinja_string *string,
                                               const fr_jinja_string *old, const fr_jinja_string *with, int64_t count);

/* separator NULL: white space. most: how many splits, negative for all. */
fr_jinja_list *fr_jinja_string_split(fr_jinja_render *render, const fr_jinja_string *string,
                                     const fr_jinja_string *separator, int64_t most);
fr_jinja_list *fr_jinja_string_split_right(fr_jinja_render *render, const fr_jinja_string *string,
                                           const fr_jinja_string *separator, int64_t most);
fr_jinja_list *fr_jinja_string_lines(fr_jinja_render *render, const fr_jinja_string *string, bool keep_ends);

/* Where it lies between two offsets; SIZE_MAX if nowhere. */
size_t fr_jinja_string_find(fr_jinja_render *render, const fr_jinja_string *string, const fr_jinja_string *needle,
                            size_t begin, size_t end);
size_t fr_jinja_string_find_last(fr_jinja_render *render, const fr_jinja_string *string, const fr_jinja_string *needle,
                                 size_t begin, size_t end);

/* With the characters that mean something in HTML as entities. */
void fr_jinja_put_escaped(fr_jinja_render *render, const fr_jinja_string *string);

/* Text so that it is `width` characters wide, filled with this character to the right ('<'), left ('>') or on both
 * sides ('^' as Python's format(), 'c' as its center()). */
void fr_jinja_put_aligned(fr_jinja_render *render, const fr_jinja_string *string, int64_t width,
                          const fr_jinja_string *fill, char align);

/* Whether every character, and at least one, is of a kind. */
bool fr_jinja_string_all(fr_jinja_render *render, const fr_jinja_string *string, bool is(int32_t codepoint));

/* str.isupper(), islower(), istitle() */
bool fr_jinja_string_is_upper(fr_jinja_render *render, const fr_jinja_string *string);
bool fr_jinja_string_is_lower(fr_jinja_render *render, const fr_jinja_string *string);
bool fr_jinja_string_is_title(fr_jinja_render *render, const fr_jinja_string *string);

#endif
