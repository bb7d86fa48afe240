/* Implements the methods of str. */
#include "src/language/jinja/template_filters.h"
#include "src/language/jinja/template_format.h"
#include "src/language/jinja/template_methods.h"
#include "src/language/jinja/template_strings.h"

static const fr_jinja_string *self_of(const fr_jinja_value *arguments) {
    return arguments[0].string;
}

/* Reads an argument that must be a string. */
static const fr_jinja_string *string_of(fr_jinja_render *render, fr_jinja_value argument, const char *what) {
    static const fr_jinja_string empty = {.bytes = "", .ascii = true};
    if (argument.kind == FR_KIND_STRING) return argument.string;
    if (argument.kind == FR_KIND_UNDEFINED)
        fr_jinja_render_fail_undefined(render, argument);
    else
        fr_jinja_render_fail(render, "%s: a '%s', and a string is needed", what, fr_jinja_kind_name(argument.kind));
    return &empty;
}

/* Reads an argument that must be a string or none. Gives NULL for none. */
static const fr_jinja_string *string_or_none(fr_jinja_render *render, fr_jinja_value argument, const char *what) {
    return !fr_jinja_is_given(argument) || argument.kind == FR_KIND_NONE ? NULL : string_of(render, argument, what);
}

/* ------------------------------------------------------------------------------------------------------------- case */

static fr_jinja_value string_upper(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_string(fr_jinja_string_in_case(render, self_of(arguments), FR_CASE_UPPER));
}

static fr_jinja_value string_lower(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_string(fr_jinja_string_in_case(render, self_of(arguments), FR_CASE_LOWER));
}

static fr_jinja_value string_casefold(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_string(fr_jinja_string_in_case(render, self_of(arguments), FR_CASE_FOLDED));
}

static fr_jinja_value string_capitalize(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_string(fr_jinja_string_capitalize(render, self_of(arguments)));
}

static fr_jinja_value string_swapcase(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_string(fr_jinja_string_swapcase(render, self_of(arguments)));
}

static fr_jinja_value string_title(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_string(fr_jinja_string_title(render, self_of(arguments)));
}

/* ------------------------------------------------------------------------------------------------------------- ends */

static fr_jinja_value strip(fr_jinja_render *render, const fr_jinja_value *arguments, fr_jinja_side sides) {
    const fr_jinja_string *characters = string_or_none(render, arguments[1], "strip");
    return fr_jinja_of_string(fr_jinja_string_strip(render, self_of(arguments), characters, sides));
}

static fr_jinja_value string_strip(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return strip(render, arguments, FR_SIDE_BOTH);
}

static fr_jinja_value string_lstrip(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return strip(render, arguments, FR_SIDE_LEFT);
}

static fr_jinja_value string_rstrip(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return strip(render, arguments, FR_SIDE_RIGHT);
}

static bool has_prefix(const fr_jinja_string *string, const fr_jinja_string *prefix) {
    return prefix->length <= string->length && memcmp(string->bytes, prefix->bytes, prefix->length) == 0;
}

static bool has_suffix(const fr_jinja_string *string, const fr_jinja_string *suffix) {
    if (suffix->length > string->length) return false;
    return memcmp(string->bytes + string->length - suffix->length, suffix->bytes, suffix->length) == 0;
}

static fr_jinja_value string_removeprefix(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *string = self_of(arguments), *prefix = string_of(render, arguments[1], "removeprefix");
    size_t begin = has_prefix(string, prefix) ? prefix->length : 0;
    return fr_jinja_of_string(fr_jinja_string_part(render, string, begin, string->length));
}

static fr_jinja_value string_removesuffix(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *string = self_of(arguments), *suffix = string_of(render, arguments[1], "removesuffix");
    size_t end = string->length - (has_suffix(string, suffix) ? suffix->length : 0);
    return fr_jinja_of_string(fr_jinja_string_part(render, string, 0, end));
}

/* -------------------------------------------------------------------------------------------------------- searching */

/* A part of a string between two byte offsets. any: false if begin is above end; Python then finds nothing there, not
 * even an empty string. */
typedef struct stretch {
    size_t begin, end;
    bool any;
} stretch;

static int64_t bound(fr_jinja_render *render, fr_jinja_value argument, int64_t missing, int64_t count) {
    if (argument.kind == FR_KIND_NONE) return missing;
    int64_t at = fr_jinja_argument_int(render, argument, missing, "a bound");
    if (at < 0) at += count;
    return at < 0 ? 0 : at;
}

static stretch stretch_of(fr_jinja_render *render, const fr_jinja_string *string, fr_jinja_value first,
                          fr_jinja_value last) {
    if (!fr_jinja_is_given(first) && !fr_jinja_is_given(last)) return (stretch){0, string->length, true};
    int64_t count = (int64_t)fr_jinja_length(render, fr_jinja_of_string(string));
    int64_t begin = bound(render, first, 0, count), end = bound(render, last, count, count);
    if (end > count) end = count;
    if (begin > end || !fr_jinja_render_step(render, string->length)) return (stretch){0, 0, false};
    if (string->ascii) return (stretch){(size_t)begin, (size_t)end, true};
    size_t begin_byte = fr_jinja_character_offset(string->bytes, string->length, (size_t)begin);
    return (stretch){begin_byte, fr_jinja_character_offset(string->bytes, string->length, (size_t)end), true};
}

/* Gives the index of the character that begins at a byte offset; -1 if the offset is SIZE_MAX. */
static int64_t character_number(fr_jinja_render *render, const fr_jinja_string *string, size_t at) {
    if (at == SIZE_MAX) return -1;
    if (string->ascii) return (int64_t)at;
    return fr_jinja_render_step(render, at) ? (int64_t)fr_jinja_count_characters(string->bytes, at) : -1;
}

typedef size_t finder(fr_jinja_render *, const fr_jinja_string *, const fr_jinja_string *, size_t, size_t);

static int64_t find(fr_jinja_render *render, const fr_jinja_value *arguments, finder *locate) {
    const fr_jinja_string *string = self_of(arguments), *needle = string_of(render, arguments[1], "find");
    stretch s = stretch_of(render, string, arguments[2], arguments[3]);
    return s.any ? character_number(render, string, locate(render, string, needle, s.begin, s.end)) : -1;
}

static fr_jinja_value string_find(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_int(find(render, arguments, fr_jinja_string_find), false);
}

static fr_jinja_value string_rfind(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_int(find(render, arguments, fr_jinja_string_find_last), false);
}

static fr_jinja_value found_or_fail(fr_jinja_render *render, int64_t at) {
    return at < 0 ? fr_jinja_render_fail(render, "index: the substring is not there") : fr_jinja_of_int(at, false);
}

static fr_jinja_value string_index(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return found_or_fail(render, find(render, arguments, fr_jinja_string_find));
}

static fr_jinja_value string_rindex(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return found_or_fail(render, find(render, arguments, fr_jinja_string_find_last));
}

static fr_jinja_value string_count(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *string = self_of(arguments), *needle = string_of(render, arguments[1], "count");
    stretch s = stretch_of(render, string, arguments[2], arguments[3]);
    int64_t count = 0;
    if (!s.any) return fr_jinja_of_int(0, false);
    if (needle->length == 0)
        return fr_jinja_of_size(fr_jinja_count_characters(string->bytes + s.begin, s.end - s.begin) + 1);
    for (size_t at = s.begin; !fr_jinja_render_failed(render); count++) {
        size_t found = fr_jinja_string_find(render, string, needle, at, s.end);
        if (found == SIZE_MAX) break;
        at = found + needle->length;
    }
    return fr_jinja_of_int(count, false);
}

typedef bool matcher(const fr_jinja_string *string, const fr_jinja_string *part);

/* Returns true if the prefix or suffix matches. If the argument is a tuple, one of its items must match. */
static fr_jinja_value matches(fr_jinja_render *render, const fr_jinja_value *arguments, matcher *match) {
    stretch s = stretch_of(render, self_of(arguments), arguments[2], arguments[3]);
    if (!s.any) return fr_jinja_of_truth(false);
    const fr_jinja_string *string = fr_jinja_string_part(render, self_of(arguments), s.begin, s.end);
    if (arguments[1].kind != FR_KIND_TUPLE)
        return fr_jinja_of_truth(match(string, string_of(render, arguments[1], "startswith, endswith")));
    bool any = false;
    const fr_jinja_list *list = arguments[1].list;
    for (size_t i = 0; i < list->count && !any && fr_jinja_render_step(render, 0); i++)
        any = match(string, string_of(render, list->items[i], "startswith, endswith"));
    return fr_jinja_of_truth(any);
}

static fr_jinja_value string_startswith(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return matches(render, arguments, has_prefix);
}

static fr_jinja_value string_endswith(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return matches(render, arguments, has_suffix);
}

static fr_jinja_value string_replace(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *old = string_of(render, arguments[1], "replace"),
                          *with = string_of(render, arguments[2], "replace");
    if (self_of(arguments)->markup && !with->markup) {
        size_t begin = fr_jinja_text_begin(render);
        fr_jinja_put_escaped(render, with);
        with = fr_jinja_text_end(render, begin);
    }
    int64_t most = fr_jinja_argument_int(render, arguments[3], -1, "replace: count");
    return fr_jinja_of_string(fr_jinja_string_replace(render, self_of(arguments), old, with, most));
}

/* -------------------------------------------------------------------------------------------------------- splitting */

static fr_jinja_value string_split(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *separator = string_or_none(render, arguments[1], "split");
    int64_t most = fr_jinja_argument_int(render, arguments[2], -1, "split: maxsplit");
    return fr_jinja_of_list(fr_jinja_string_split(render, self_of(arguments), separator, most),
                            self_of(arguments)->foreign);
}

static fr_jinja_value string_rsplit(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *separator = string_or_none(render, arguments[1], "rsplit");
    int64_t most = fr_jinja_argument_int(render, arguments[2], -1, "rsplit: maxsplit");
    return fr_jinja_of_list(fr_jinja_string_split_right(render, self_of(arguments), separator, most),
                            self_of(arguments)->foreign);
}

static fr_jinja_value string_splitlines(fr_jinja_render *render, const fr_jinja_value *arguments) {
    bool keep_ends = fr_jinja_argument_truth(render, arguments[1]);
    return fr_jinja_of_list(fr_jinja_string_lines(render, self_of(arguments), keep_ends), self_of(arguments)->foreign);
}

static void append_part(fr_jinja_render *render, fr_jinja_list *list, const fr_jinja_string *string, size_t begin,
                        size_t end) {
    fr_jinja_list_append(render, list, fr_jinja_of_string(fr_jinja_string_part(render, string, begin, end)));
}

/* Splits a text into the text before the separator, the separator, and the text after it. If the separator is not
 * found, partition gives the whole text as the first part, and rpartition gives it as the last part; the other two
 * parts are empty. */
static fr_jinja_value partition(fr_jinja_render *render, const fr_jinja_value *arguments, finder *locate, bool right) {
    const fr_jinja_string *string = self_of(arguments), *separator = string_of(render, arguments[1], "partition");
    fr_jinja_list *list = fr_jinja_list_new(render, 3);
    if (separator->length == 0) return fr_jinja_render_fail(render, "an empty separator");
    size_t found = locate(render, string, separator, 0, string->length), length = string->length;
    if (found == SIZE_MAX) {
        append_part(render, list, string, 0, right ? 0 : length);
        append_part(render, list, string, 0, 0);
        append_part(render, list, string, 0, right ? length : 0);
    } else {
        append_part(render, list, string, 0, found);
        append_part(render, list, string, found, found + separator->length);
        append_part(render, list, string, found + separator->length, length);
    }
    return fr_jinja_of_tuple(list, string->foreign);
}

static fr_jinja_value string_partition(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return partition(render, arguments, fr_jinja_string_find, false);
}

static fr_jinja_value string_rpartition(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return partition(render, arguments, fr_jinja_string_find_last, true);
}

/* ---------------------------------------------------------------------------------------------------------- joining */

static fr_jinja_value string_join(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *separator = self_of(arguments);
    fr_jinja_cursor cursor = fr_jinja_cursor_new(render, arguments[1]);
    size_t begin = fr_jinja_text_begin(render);
    bool first = true;
    for (fr_jinja_value item; fr_jinja_cursor_next(render, &cursor, &item); first = false) {
        const fr_jinja_string *string = string_of(render, item, "join");
        if (!first) fr_jinja_put_string(render, separator);
        if (separator->markup && !string->markup)
            fr_jinja_put_escaped(render, string);
        else
            fr_jinja_put_string(render, string);
    }
    return fr_jinja_of_string(fr_jinja_string_as_markup(render, fr_jinja_text_end(render, begin), separator->markup));
}

static fr_jinja_value align(fr_jinja_render *render, const fr_jinja_value *arguments, char side) {
    static const fr_jinja_string blank = {.bytes = " ", .length = 1, .ascii = true};
    const fr_jinja_string *fill =
        fr_jinja_is_given(arguments[2]) ? string_of(render, arguments[2], "the filling") : &blank;
    int64_t width = fr_jinja_argument_int(render, arguments[1], 0, "the width");
    if (fr_jinja_length(render, fr_jinja_of_string(fill)) != 1)
        return fr_jinja_render_fail(render, "the filling must be one character");
    size_t begin = fr_jinja_text_begin(render);
    fr_jinja_put_aligned(render, self_of(arguments), width, fill, side);
    return fr_jinja_of_string(
        fr_jinja_string_as_markup(render, fr_jinja_text_end(render, begin), self_of(arguments)->markup));
}

static fr_jinja_value string_center(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return align(render, arguments, 'c');
}

static fr_jinja_value string_ljust(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return align(render, arguments, '<');
}

static fr_jinja_value string_rjust(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return align(render, arguments, '>');
}

/* Pads a number's text with zeros between its sign and the rest. */
static fr_jinja_value string_zfill(fr_jinja_render *render, const fr_jinja_value *arguments) {
    static const fr_jinja_string zero = {.bytes = "0", .length = 1, .ascii = true};
    const fr_jinja_string *string = self_of(arguments);
    size_t sign = string->length > 0 && (*string->bytes == '-' || *string->bytes == '+');
    int64_t width = fr_jinja_argument_int(render, arguments[1], 0, "zfill: the width");
    size_t begin = fr_jinja_text_begin(render);
    fr_jinja_put_part(render, string, 0, sign);
    const fr_jinja_string *rest = fr_jinja_string_part(render, string, sign, string->length);
    fr_jinja_put_aligned(render, rest, width > 0 ? width - (int64_t)sign : 0, &zero, '>');
    return fr_jinja_of_string(fr_jinja_string_as_markup(render, fr_jinja_text_end(render, begin), string->markup));
}

static fr_jinja_value string_expandtabs(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *string = self_of(arguments);
    int64_t size = fr_jinja_argument_int(render, arguments[1], 8, "expandtabs: the size"), column = 0;
    size_t begin = fr_jinja_text_begin(render);
    for (size_t at = 0, step; at < string->length && !fr_jinja_render_failed(render); at += step) {
        int32_t codepoint;
        step = fr_jinja_decode(string->bytes + at, string->length - at, &codepoint);
        if (codepoint != '\t') {
            fr_jinja_put_part(render, string, at, at + step);
            column = codepoint == '\n' || codepoint == '\r' ? 0 : column + 1;
            continue;
        }
        for (int64_t left = size > 0 ? size - column % size : 0; left > 0 && !fr_jinja_render_failed(render);
             left--, column++)
            fr_jinja_put(render, " ", 1, fr_jinja_string_foreign_at(string, at));
    }
    return fr_jinja_of_string(fr_jinja_string_as_markup(render, fr_jinja_text_end(render, begin), string->markup));
}

static fr_jinja_value string_format(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_string(fr_jinja_format_braces(render, self_of(arguments), arguments[1].list, arguments[2].dict));
}

static fr_jinja_value string_format_map(fr_jinja_render *render, const fr_jinja_value *arguments) {
    if (arguments[1].kind != FR_KIND_DICT)
        return fr_jinja_render_fail(render, "format_map: the argument is not a mapping");
    return fr_jinja_of_string(
        fr_jinja_format_braces(render, self_of(arguments), fr_jinja_list_new(render, 0), arguments[1].dict));
}

/* ------------------------------------------------------------------------------------------------------- properties */

static bool is_alphanumeric(int32_t codepoint) {
    return fr_jinja_is_alphabetic(codepoint) || fr_jinja_is_numeric_character(codepoint);
}

static fr_jinja_value all(fr_jinja_render *render, const fr_jinja_value *arguments, bool is(int32_t codepoint)) {
    return fr_jinja_of_truth(fr_jinja_string_all(render, self_of(arguments), is));
}

static fr_jinja_value string_isalnum(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return all(render, arguments, is_alphanumeric);
}

static fr_jinja_value string_isalpha(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return all(render, arguments, fr_jinja_is_alphabetic);
}

static fr_jinja_value string_isdecimal(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return all(render, arguments, fr_jinja_is_decimal);
}

static fr_jinja_value string_isdigit(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return all(render, arguments, fr_jinja_is_digit);
}

static fr_jinja_value string_isnumeric(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return all(render, arguments, fr_jinja_is_numeric_character);
}

static fr_jinja_value string_isspace(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return all(render, arguments, fr_jinja_is_python_space);
}

static fr_jinja_value string_isascii(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return fr_jinja_of_truth(self_of(arguments)->ascii);
}

/* An empty string counts as printable, as it does in Python. */
static fr_jinja_value string_isprintable(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_truth(self_of(arguments)->length == 0 ||
                             fr_jinja_string_all(render, self_of(arguments), fr_jinja_is_printable));
}

static fr_jinja_value string_isidentifier(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *string = self_of(arguments);
    bool digit = string->length > 0 && *string->bytes >= '0' && *string->bytes <= '9';
    for (size_t at = 0; at < string->length;) {
        int32_t codepoint;
        at += fr_jinja_decode(string->bytes + at, string->length - at, &codepoint);
        if (codepoint != '_' && !is_alphanumeric(codepoint)) return fr_jinja_of_truth(false);
    }
    return fr_jinja_of_truth(fr_jinja_render_step(render, string->length) && string->length > 0 && !digit);
}

static fr_jinja_value string_islower(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_truth(fr_jinja_string_is_lower(render, self_of(arguments)));
}

static fr_jinja_value string_isupper(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_truth(fr_jinja_string_is_upper(render, self_of(arguments)));
}

static fr_jinja_value string_istitle(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_truth(fr_jinja_string_is_title(render, self_of(arguments)));
}

/* The names are in ascending order, because a binary search finds them. */
static const fr_jinja_function rows[] = {
    {"capitalize", string_capitalize, 1, false, {"self"}},
    {"casefold", string_casefold, 1, false, {"self"}},
    {"center", string_center, 2, false, {"self", "width", "fillchar"}},
    {"count", string_count, 2, false, {"self", "sub", "start", "end"}},
    {"endswith", string_endswith, 2, false, {"self", "suffix", "start", "end"}},
    {"expandtabs", string_expandtabs, 1, false, {"self", "tabsize"}},
    {"find", string_find, 2, false, {"self", "sub", "start", "end"}},
    {"format", string_format, 1, true, {"self"}},
    {"format_map", string_format_map, 2, false, {"self", "mapping"}},
    {"index", string_index, 2, false, {"self", "sub", "start", "end"}},
    {"isalnum", string_isalnum, 1, false, {"self"}},
    {"isalpha", string_isalpha, 1, false, {"self"}},
    {"isascii", string_isascii, 1, false, {"self"}},
    {"isdecimal", string_isdecimal, 1, false, {"self"}},
    {"isdigit", string_isdigit, 1, false, {"self"}},
    {"isidentifier", string_isidentifier, 1, false, {"self"}},
    {"islower", string_islower, 1, false, {"self"}},
    {"isnumeric", string_isnumeric, 1, false, {"self"}},
    {"isprintable", string_isprintable, 1, false, {"self"}},
    {"isspace", string_isspace, 1, false, {"self"}},
    {"istitle", string_istitle, 1, false, {"self"}},
    {"isupper", string_isupper, 1, false, {"self"}},
    {"join", string_join, 2, false, {"self", "iterable"}},
    {"ljust", string_ljust, 2, false, {"self", "width", "fillchar"}},
    {"lower", string_lower, 1, false, {"self"}},
    {"lstrip", string_lstrip, 1, false, {"self", "chars"}},
    {"partition", string_partition, 2, false, {"self", "sep"}},
    {"removeprefix", string_removeprefix, 2, false, {"self", "prefix"}},
    {"removesuffix", string_removesuffix, 2, false, {"self", "suffix"}},
    {"replace", string_replace, 3, false, {"self", "old", "new", "count"}},
    {"rfind", string_rfind, 2, false, {"self", "sub", "start", "end"}},
    {"rindex", string_rindex, 2, false, {"self", "sub", "start", "end"}},
    {"rjust", string_rjust, 2, false, {"self", "width", "fillchar"}},
    {"rpartition", string_rpartition, 2, false, {"self", "sep"}},
    {"rsplit", string_rsplit, 1, false, {"self", "sep", "maxsplit"}},
    {"rstrip", string_rstrip, 1, false, {"self", "chars"}},
    {"split", string_split, 1, false, {"self", "sep", "maxsplit"}},
    {"splitlines", string_splitlines, 1, false, {"self", "keepends"}},
    {"startswith", string_startswith, 2, false, {"self", "prefix", "start", "end"}},
    {"strip", string_strip, 1, false, {"self", "chars"}},
    {"swapcase", string_swapcase, 1, false, {"self"}},
    {"title", string_title, 1, false, {"self"}},
    {"upper", string_upper, 1, false, {"self"}},
    {"zfill", string_zfill, 2, false, {"self", "width"}},
};

const fr_jinja_function_table fr_jinja_string_methods = {rows, sizeof rows / sizeof *rows};
