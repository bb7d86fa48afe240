/* Makes texts from texts (template_strings.h). */
#include "src/language/jinja/template_strings.h"

#include <utf8proc.h>

/* The number of bytes whose copying takes as long as looking up a character's properties. So a lookup costs as many
 * steps as these bytes. */
#define PROPERTY_BYTES 8

/* A walk over the characters of a text. */
typedef struct walk {
    const fr_jinja_string *string;
    size_t begin, at; /* begin: offset of the current character; at: offset of the next character */
    int32_t codepoint;
} walk;

static bool next_character(walk *w) {
    w->begin = w->at;
    if (w->at >= w->string->length) return false;
    w->at += fr_jinja_decode(w->string->bytes + w->at, w->string->length - w->at, &w->codepoint);
    return true;
}

static const fr_jinja_string *end_like(fr_jinja_render *render, const fr_jinja_string *string, size_t begin) {
    return fr_jinja_string_as_markup(render, fr_jinja_text_end(render, begin), string->markup);
}

/* ------------------------------------------------------------------------------------------------------------- case */

/* Returns true for apostrophes, dots and marks, which do not end a word. */
static bool is_ignorable(int32_t codepoint) {
    switch (utf8proc_category(codepoint)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: break;
    }
    static const int32_t others[] = {'\'',   '.',    ':',    0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                     0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i] == codepoint) return true;
    return false;
}

static bool is_cased(int32_t codepoint) {
    return fr_jinja_is_upper(codepoint) || fr_jinja_is_lower(codepoint) || fr_jinja_is_titlecase(codepoint);
}

/* Gives the lower case of the Greek letter sigma. At the end of a word it is another letter than elsewhere. */
static int32_t lower_sigma(const walk *w, bool behind_letter) {
    walk ahead = *w;
    while (next_character(&ahead))
        if (!is_ignorable(ahead.codepoint)) return behind_letter && !is_cased(ahead.codepoint) ? 0x3C2 : 0x3C3;
    return behind_letter ? 0x3C2 : 0x3C3;
}

static void put_in_case(fr_jinja_render *render, const walk *w, fr_jinja_case to, bool behind_letter) {
    int32_t changed[3];
    size_t count = fr_jinja_change_case(w->codepoint, to, changed);
    bool foreign = fr_jinja_string_foreign_at(w->string, w->begin);
    if (to == FR_CASE_LOWER && w->codepoint == 0x3A3) changed[0] = lower_sigma(w, behind_letter);
    for (size_t i = 0; i < count; i++) fr_jinja_put_character(render, changed[i], foreign);
}

/* Converts a string of ASCII characters all at once. Most strings have only such characters. */
static bool put_ascii_in_case(fr_jinja_render *render, const fr_jinja_string *string, fr_jinja_case to) {
    if (!string->ascii) return false;
    size_t begin = render->length;
    fr_jinja_put_string(render, string);
    if (fr_jinja_render_failed(render)) return true;
    for (size_t i = begin; i < render->length; i++) {
        char *c = &render->bytes[i];
        if (to == FR_CASE_UPPER && *c >= 'a' && *c <= 'z') *c -= 'a' - 'A';
        if (to != FR_CASE_UPPER && *c >= 'A' && *c <= 'Z') *c += 'a' - 'A';
    }
    return true;
}

static void put_case(fr_jinja_render *render, const fr_jinja_string *string, fr_jinja_case to) {
    if (to != FR_CASE_TITLE && put_ascii_in_case(render, string, to)) return;
    bool behind_letter = false;
    for (walk w = {.string = string}; next_character(&w) && !fr_jinja_render_failed(render);) {
        put_in_case(render, &w, to, behind_letter);
        if (!is_ignorable(w.codepoint)) behind_letter = is_cased(w.codepoint);
    }
}

const fr_jinja_string *fr_jinja_string_in_case(fr_jinja_render *render, const fr_jinja_string *string,
                                               fr_jinja_case to) {
    size_t begin = fr_jinja_text_begin(render);
    put_case(render, string, to);
    return end_like(render, string, begin);
}

/* Writes the first character in title case and the others in lower case. behind_letter: a letter came before. A sigma
 * that follows a letter may end its word, and the lower-case sigma at the end of a word is another letter. */
const fr_jinja_string *fr_jinja_string_capitalize(fr_jinja_render *render, const fr_jinja_string *string) {
    size_t begin = fr_jinja_text_begin(render);
    bool behind_letter = false;
    for (walk w = {.string = string}; next_character(&w) && !fr_jinja_render_failed(render);) {
        put_in_case(render, &w, w.begin == 0 ? FR_CASE_TITLE : FR_CASE_LOWER, behind_letter);
        if (!is_ignorable(w.codepoint)) behind_letter = is_cased(w.codepoint);
    }
    return end_like(render, string, begin);
}

const fr_jinja_string *fr_jinja_string_swapcase(fr_jinja_render *render, const fr_jinja_string *string) {
    size_t begin = fr_jinja_text_begin(render);
    bool behind_letter = false;
    for (walk w = {.string = string}; next_character(&w) && !fr_jinja_render_failed(render);) {
        if (fr_jinja_is_upper(w.codepoint) || fr_jinja_is_lower(w.codepoint))
            put_in_case(render, &w, fr_jinja_is_upper(w.codepoint) ? FR_CASE_LOWER : FR_CASE_UPPER, behind_letter);
        else
            fr_jinja_put_part(render, string, w.begin, w.at);
        if (!is_ignorable(w.codepoint)) behind_letter = is_cased(w.codepoint);
    }
    return end_like(render, string, begin);
}

const fr_jinja_string *fr_jinja_string_title(fr_jinja_render *render, const fr_jinja_string *string) {
    size_t begin = fr_jinja_text_begin(render);
    bool behind_letter = false;
    for (walk w = {.string = string}; next_character(&w) && !fr_jinja_render_failed(render);) {
        put_in_case(render, &w, behind_letter ? FR_CASE_LOWER : FR_CASE_TITLE, behind_letter);
        behind_letter = is_cased(w.codepoint);
    }
    return end_like(render, string, begin);
}

/* --------------------------------------------------------------------------------------------------------- the ends */

static bool has_character(fr_jinja_render *render, const fr_jinja_string *characters, int32_t codepoint) {
    if (!fr_jinja_render_step(render, characters->length)) return false;
    for (walk w = {.string = characters}; next_character(&w);)
        if (w.codepoint == codepoint) return true;
    return false;
}

static size_t begin_without(fr_jinja_render *render, const fr_jinja_string *string, const fr_jinja_string *characters) {
    walk w = {.string = string};
    while (next_character(&w) && has_character(render, characters, w.codepoint)) {}
    return w.begin;
}

/* Gives the offset after the last character that is not in `characters`. */
static size_t end_without(fr_jinja_render *render, const fr_jinja_string *string, const fr_jinja_string *characters) {
    size_t end = 0;
    for (walk w = {.string = string}; next_character(&w) && !fr_jinja_render_failed(render);)
        if (!has_character(render, characters, w.codepoint)) end = w.at;
    return end;
}

const fr_jinja_string *fr_jinja_string_strip(fr_jinja_render *render, const fr_jinja_string *string,
                                             const fr_jinja_string *characters, fr_jinja_side sides) {
    size_t begin = 0, end = string->length;
    if (sides & FR_SIDE_LEFT)
        begin = characters ? begin_without(render, string, characters) : fr_jinja_space_prefix(string->bytes, end);
    if (sides & FR_SIDE_RIGHT)
        end = characters ? end_without(render, string, characters) : end - fr_jinja_space_suffix(string->bytes, end);
    if (!fr_jinja_render_step(render, string->length - (end > begin ? end - begin : 0))) return string;
    return fr_jinja_string_part(render, string, begin, end > begin ? end : begin);
}

/* -------------------------------------------------------------------------------------------------------- searching */

size_t fr_jinja_string_find(fr_jinja_render *render, const fr_jinja_string *string, const fr_jinja_string *needle,
                            size_t begin, size_t end) {
    if (begin > end) return SIZE_MAX;
    size_t at = fr_jinja_find(string->bytes + begin, end - begin, needle->bytes, needle->length);
    if (!fr_jinja_render_step(render, needle->length + (at == SIZE_MAX ? end - begin : at))) return SIZE_MAX;
    return at == SIZE_MAX ? at : begin + at;
}

size_t fr_jinja_string_find_last(fr_jinja_render *render, const fr_jinja_string *string, const fr_jinja_string *needle,
                                 size_t begin, size_t end) {
    if (begin > end || needle->length > end - begin) return SIZE_MAX;
    for (size_t at = end - needle->length + 1; at-- > begin;) {
        bool begins = needle->length == 0 || string->bytes[at] == needle->bytes[0];
        if (at % FR_RENDER_STEP_BYTES == 0 && !fr_jinja_render_step(render, 0)) return SIZE_MAX;
        if (!begins) continue;
        if (!fr_jinja_render_step(render, needle->length)) return SIZE_MAX;
        if (needle->length == 0 || memcmp(string->bytes + at, needle->bytes, needle->length) == 0) return at;
    }
    return SIZE_MAX;
}

/* Writes a string with the text `with` before each of its characters and at its end. Writes `with` at most `count`
 * times. */
static void put_between(fr_jinja_render *render, const fr_jinja_string *string, const fr_jinja_string *with,
                        int64_t count) {
    walk w = {.string = string};
    for (; count != 0 && !fr_jinja_render_failed(render); count--) {
        fr_jinja_put_string(render, with);
        if (!next_character(&w)) return;
        fr_jinja_put_part(render, string, w.begin, w.at);
    }
    fr_jinja_put_part(render, string, w.at, string->length);
}

static void put_replaced(fr_jinja_render *render, const fr_jinja_string *string, const fr_jinja_string *old,
                         const fr_jinja_string *with, int64_t count) {
    size_t at = 0;
    for (; count != 0 && !fr_jinja_render_failed(render); count--) {
        size_t found = fr_jinja_string_find(render, string, old, at, string->length);
        if (found == SIZE_MAX) break;
        fr_jinja_put_part(render, string, at, found);
        fr_jinja_put_string(render, with);
        at = found + old->length;
    }
    fr_jinja_put_part(render, string, at, string->length);
}

const fr_jinja_string *fr_jinja_string_replace(fr_jinja_render *render, const fr_jinja_string *string,
                                               const fr_jinja_string *old, const fr_jinja_string *with, int64_t count) {
    size_t begin = fr_jinja_text_begin(render);
    if (old->length == 0)
        put_between(render, string, with, count);
    else
        put_replaced(render, string, old, with, count);
    return end_like(render, string, begin);
}

/* -------------------------------------------------------------------------------------------------------- splitting */

static void append_part(fr_jinja_render *render, fr_jinja_list *list, const fr_jinja_string *string, size_t begin,
                        size_t end) {
    fr_jinja_list_append(render, list, fr_jinja_of_string(fr_jinja_string_part(render, string, begin, end)));
}

static void split_at_spaces(fr_jinja_render *render, fr_jinja_list *list, const fr_jinja_string *string, int64_t most) {
    size_t at = fr_jinja_space_prefix(string->bytes, string->length);
    for (; at < string->length && most != 0 && !fr_jinja_render_failed(render); most--) {
        walk w = {.string = string, .at = at};
        while (next_character(&w) && !fr_jinja_is_python_space(w.codepoint)) {}
        append_part(render, list, string, at, w.begin);
        fr_jinja_render_step(render, w.begin - at);
        at = w.begin + fr_jinja_space_prefix(string->bytes + w.begin, string->length - w.begin);
    }
    if (at < string->length) append_part(render, list, string, at, string->length);
}

fr_jinja_list *fr_jinja_string_split(fr_jinja_render *render, const fr_jinja_string *string,
                                     const fr_jinja_string *separator, int64_t most) {
    fr_jinja_list *list = fr_jinja_list_new(render, 0);
    if (!separator) {
        split_at_spaces(render, list, string, most);
        return list;
    }
    if (separator->length == 0) fr_jinja_render_fail(render, "an empty separator");
    size_t at = 0;
    for (; most != 0 && !fr_jinja_render_failed(render); most--) {
        size_t found = fr_jinja_string_find(render, string, separator, at, string->length);
        if (found == SIZE_MAX) break;
        append_part(render, list, string, at, found);
        at = found + separator->length;
    }
    append_part(render, list, string, at, string->length);
    return list;
}

static void reverse(fr_jinja_list *list) {
    for (size_t i = 0; i < list->count / 2; i++) {
        fr_jinja_value first = list->items[i];
        list->items[i] = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = first;
    }
}

static void split_right_at_spaces(fr_jinja_render *render, fr_jinja_list *list, const fr_jinja_string *string,
                                  int64_t most) {
    size_t end = string->length - fr_jinja_space_suffix(string->bytes, string->length);
    for (; end > 0 && most != 0 && fr_jinja_render_step(render, 0); most--) {
        size_t begin = end;
        while (begin > 0 && fr_jinja_space_suffix(string->bytes, begin) == 0) begin--;
        append_part(render, list, string, begin, end);
        fr_jinja_render_step(render, end - begin);
        end = begin - fr_jinja_space_suffix(string->bytes, begin);
    }
    if (end > 0) append_part(render, list, string, 0, end);
}

fr_jinja_list *fr_jinja_string_split_right(fr_jinja_render *render, const fr_jinja_string *string,
                                           const fr_jinja_string *separator, int64_t most) {
    fr_jinja_list *list = fr_jinja_list_new(render, 0);
    if (!separator) {
        split_right_at_spaces(render, list, string, most);
        reverse(list);
        return list;
    }
    if (separator->length == 0) fr_jinja_render_fail(render, "an empty separator");
    size_t end = string->length;
    for (; most != 0 && !fr_jinja_render_failed(render); most--) {
        size_t found = fr_jinja_string_find_last(render, string, separator, 0, end);
        if (found == SIZE_MAX) break;
        append_part(render, list, string, found + separator->length, end);
        end = found;
    }
    append_part(render, list, string, 0, end);
    reverse(list);
    return list;
}

static bool ends_line(int32_t codepoint) {
    return (codepoint >= '\n' && codepoint <= '\r') || (codepoint >= 0x1C && codepoint <= 0x1E) || codepoint == 0x85 ||
           codepoint == 0x2028 || codepoint == 0x2029;
}

fr_jinja_list *fr_jinja_string_lines(fr_jinja_render *render, const fr_jinja_string *string, bool keep_ends) {
    fr_jinja_list *list = fr_jinja_list_new(render, 0);
    size_t line = 0;
    for (walk w = {.string = string}; next_character(&w) && !fr_jinja_render_failed(render);) {
        if (!ends_line(w.codepoint)) continue;
        if (w.codepoint == '\r' && w.at < string->length && string->bytes[w.at] == '\n') w.at++;
        append_part(render, list, string, line, keep_ends ? w.at : w.begin);
        fr_jinja_render_step(render, w.at - line);
        line = w.at;
    }
    if (line < string->length) append_part(render, list, string, line, string->length);
    return list;
}

/* ------------------------------------------------------------------------------------------------------- properties */

bool fr_jinja_string_all(fr_jinja_render *render, const fr_jinja_string *string, bool is(int32_t codepoint)) {
    if (!fr_jinja_render_step(render, PROPERTY_BYTES * string->length)) return false;
    for (walk w = {.string = string}; next_character(&w);)
        if (!is(w.codepoint)) return false;
    return string->length > 0;
}

static bool all_cased(fr_jinja_render *render, const fr_jinja_string *string, bool wanted(int32_t),
                      bool other(int32_t)) {
    bool any = false;
    if (!fr_jinja_render_step(render, PROPERTY_BYTES * string->length)) return false;
    for (walk w = {.string = string}; next_character(&w);) {
        if (other(w.codepoint) || fr_jinja_is_titlecase(w.codepoint)) return false;
        any = any || wanted(w.codepoint);
    }
    return any;
}

bool fr_jinja_string_is_upper(fr_jinja_render *render, const fr_jinja_string *string) {
    return all_cased(render, string, fr_jinja_is_upper, fr_jinja_is_lower);
}

bool fr_jinja_string_is_lower(fr_jinja_render *render, const fr_jinja_string *string) {
    return all_cased(render, string, fr_jinja_is_lower, fr_jinja_is_upper);
}

bool fr_jinja_string_is_title(fr_jinja_render *render, const fr_jinja_string *string) {
    bool any = false, behind_letter = false;
    if (!fr_jinja_render_step(render, PROPERTY_BYTES * string->length)) return false;
    for (walk w = {.string = string}; next_character(&w); behind_letter = is_cased(w.codepoint)) {
        bool upper = fr_jinja_is_upper(w.codepoint) || fr_jinja_is_titlecase(w.codepoint);
        if (upper ? behind_letter : fr_jinja_is_lower(w.codepoint) && !behind_letter) return false;
        any = any || is_cased(w.codepoint);
    }
    return any;
}

/* ------------------------------------------------------------------------------------------------ padding, escaping */

void fr_jinja_put_aligned(fr_jinja_render *render, const fr_jinja_string *string, int64_t width,
                          const fr_jinja_string *fill, char align) {
    int64_t count = (int64_t)fr_jinja_length(render, fr_jinja_of_string(string)),
            padding = width > count ? width - count : 0;
    int64_t left = align == '<' ? 0 : align == '>' ? padding : padding / 2;
    if (align == 'c') left += padding & width & 1;
    fr_jinja_put_times(render, fill, left);
    fr_jinja_put_string(render, string);
    fr_jinja_put_times(render, fill, padding - left);
}

void fr_jinja_put_escaped(fr_jinja_render *render, const fr_jinja_string *string) {
    static const char characters[] = "&<>\"'";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    size_t plain = 0;
    for (size_t at = 0; at < string->length && !fr_jinja_render_failed(render); at++) {
        const char *found = string->bytes[at] ? strchr(characters, string->bytes[at]) : NULL;
        if (!found) continue;
        fr_jinja_put_part(render, string, plain, at);
        fr_jinja_put_text(render, entities[found - characters], fr_jinja_string_foreign_at(string, at));
        plain = at + 1;
    }
    fr_jinja_put_part(render, string, plain, string->length);
}
