/* Implements the filters that make texts. */
#include <stdio.h>

#include "src/language/jinja/template_filters.h"
#include "src/language/jinja/template_format.h"
#include "src/language/jinja/template_print.h"
#include "src/language/jinja/template_strings.h"

static fr_jinja_value plain(fr_jinja_render *render, const fr_jinja_string *string) {
    return fr_jinja_of_string(fr_jinja_string_as_markup(render, string, false));
}

static fr_jinja_value end_text(fr_jinja_render *render, size_t begin, bool markup) {
    return fr_jinja_of_string(fr_jinja_string_as_markup(render, fr_jinja_text_end(render, begin), markup));
}

static const fr_jinja_string *blanks(fr_jinja_render *render, int64_t count) {
    static const fr_jinja_string blank = {.bytes = " ", .length = 1, .ascii = true};
    size_t begin = fr_jinja_text_begin(render);
    fr_jinja_put_times(render, &blank, count);
    return fr_jinja_text_end(render, begin);
}

/* ------------------------------------------------------------------------------------------------------------- case */

fr_jinja_value fr_jinja_filter_upper(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_string(fr_jinja_string_in_case(render, fr_jinja_soft_str(render, arguments[0]), FR_CASE_UPPER));
}

fr_jinja_value fr_jinja_filter_lower(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_string(fr_jinja_string_in_case(render, fr_jinja_soft_str(render, arguments[0]), FR_CASE_LOWER));
}

fr_jinja_value fr_jinja_filter_capitalize(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_string(fr_jinja_string_capitalize(render, fr_jinja_soft_str(render, arguments[0])));
}

static bool parts_words(int32_t codepoint) {
    return fr_jinja_is_python_space(codepoint) || (codepoint > 0 && codepoint < 0x80 && strchr("-({[<", codepoint));
}

static void put_titled(fr_jinja_render *render, const fr_jinja_string *string, size_t begin, size_t end) {
    int32_t codepoint;
    if (begin == end) return;
    size_t second = begin + fr_jinja_decode(string->bytes + begin, end - begin, &codepoint);
    fr_jinja_put_string(
        render, fr_jinja_string_in_case(render, fr_jinja_string_part(render, string, begin, second), FR_CASE_UPPER));
    fr_jinja_put_string(
        render, fr_jinja_string_in_case(render, fr_jinja_string_part(render, string, second, end), FR_CASE_LOWER));
}

/* Writes title case. Words begin only after white space, a hyphen or an opening bracket, so "don't" is one word. */
fr_jinja_value fr_jinja_filter_title(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *string = fr_jinja_soft_str(render, arguments[0]);
    size_t begin = fr_jinja_text_begin(render), word = 0;
    for (size_t at = 0, step; at < string->length && !fr_jinja_render_failed(render); at += step) {
        int32_t codepoint;
        step = fr_jinja_decode(string->bytes + at, string->length - at, &codepoint);
        if (!parts_words(codepoint)) continue;
        put_titled(render, string, word, at);
        fr_jinja_put_part(render, string, at, at + step);
        word = at + step;
    }
    put_titled(render, string, word < string->length ? word : string->length, string->length);
    return end_text(render, begin, false);
}

/* --------------------------------------------------------------------------------------------------- parts of texts */

fr_jinja_value fr_jinja_filter_string(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_string(fr_jinja_soft_str(render, arguments[0]));
}

fr_jinja_value fr_jinja_filter_trim(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *string = fr_jinja_soft_str(render, arguments[0]), *characters = NULL;
    if (arguments[1].kind == FR_KIND_STRING)
        characters = arguments[1].string;
    else if (fr_jinja_is_given(arguments[1]) && arguments[1].kind != FR_KIND_NONE)
        return fr_jinja_render_fail(render, "trim: the characters are a '%s'", fr_jinja_kind_name(arguments[1].kind));
    return fr_jinja_of_string(fr_jinja_string_strip(render, string, characters, FR_SIDE_BOTH));
}

fr_jinja_value fr_jinja_filter_replace(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *string = fr_jinja_str(render, arguments[0]);
    const fr_jinja_string *old = fr_jinja_str(render, arguments[1]), *with = fr_jinja_str(render, arguments[2]);
    fr_jinja_value most = arguments[3].kind == FR_KIND_NONE ? fr_jinja_missing() : arguments[3];
    return plain(render, fr_jinja_string_replace(render, string, old, with,
                                                 fr_jinja_argument_int(render, most, -1, "replace: count")));
}

fr_jinja_value fr_jinja_filter_center(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *string = fr_jinja_soft_str(render, arguments[0]), *blank = blanks(render, 1);
    size_t begin = fr_jinja_text_begin(render);
    fr_jinja_put_aligned(render, string, fr_jinja_argument_int(render, arguments[1], 80, "center: the width"), blank,
                         'c');
    return end_text(render, begin, string->markup);
}

fr_jinja_value fr_jinja_filter_join(fr_jinja_render *render, const fr_jinja_value *arguments) {
    fr_jinja_path path = fr_jinja_path_of(render, arguments[2]);
    fr_jinja_cursor cursor = fr_jinja_cursor_new(render, arguments[0]);
    size_t begin = fr_jinja_text_begin(render);
    bool first = true;
    for (fr_jinja_value item; fr_jinja_cursor_next(render, &cursor, &item); first = false) {
        if (!first && fr_jinja_is_given(arguments[1])) fr_jinja_put_str(render, arguments[1]);
        fr_jinja_put_str(render, fr_jinja_path_get(render, &path, item));
    }
    return end_text(render, begin, false);
}

/* Indents all lines except the first line and empty lines. If the text ends with a line end, an empty line follows
 * it. */
fr_jinja_value fr_jinja_filter_indent(fr_jinja_render *render, const fr_jinja_value *arguments) {
    if (arguments[0].kind == FR_KIND_UNDEFINED) return fr_jinja_render_fail_undefined(render, arguments[0]);
    if (arguments[0].kind != FR_KIND_STRING) return fr_jinja_render_fail(render, "indent: the value is not a string");
    const fr_jinja_string *string = arguments[0].string, *indent = NULL;
    if (arguments[1].kind == FR_KIND_STRING) indent = arguments[1].string;
    if (!indent) indent = blanks(render, fr_jinja_argument_int(render, arguments[1], 4, "indent: the width"));
    bool first = fr_jinja_argument_truth(render, arguments[2]), blank = fr_jinja_argument_truth(render, arguments[3]);
    const fr_jinja_list *lines = fr_jinja_string_lines(render, string, true);
    size_t begin = fr_jinja_text_begin(render);
    if (first) fr_jinja_put_string(render, indent);
    for (size_t i = 0; i < lines->count && !fr_jinja_render_failed(render); i++) {
        const fr_jinja_list *line = fr_jinja_string_lines(render, lines->items[i].string, false);
        const fr_jinja_string *text = line->count > 0 ? line->items[0].string : NULL;
        bool ended = text && text->length < lines->items[i].string->length;
        if (i > 0 && text && (blank || text->length > 0)) fr_jinja_put_string(render, indent);
        if (text) fr_jinja_put_string(render, text);
        if (ended) fr_jinja_put(render, "\n", 1, fr_jinja_string_foreign_at(lines->items[i].string, text->length));
        if (ended && i + 1 == lines->count && blank) fr_jinja_put_string(render, indent);
    }
    return end_text(render, begin, string->markup);
}

/* Cuts a text to `length` characters, which include the mark that shows the cut (by default "..."). Words are kept
 * whole, except if `killwords` is set. A text that is only a little longer (by the `leeway`) is not cut. */
fr_jinja_value fr_jinja_filter_truncate(fr_jinja_render *render, const fr_jinja_value *arguments) {
    static const fr_jinja_string dots = {.bytes = "...", .length = 3, .ascii = true};
    static const fr_jinja_string blank = {.bytes = " ", .length = 1, .ascii = true};
    const fr_jinja_string *end = arguments[3].kind == FR_KIND_STRING ? arguments[3].string : &dots;
    fr_jinja_value leeway = arguments[4].kind == FR_KIND_NONE ? fr_jinja_missing() : arguments[4];
    int64_t length = fr_jinja_argument_int(render, arguments[1], 255, "truncate: the length");
    int64_t more = fr_jinja_argument_int(render, leeway, 5, "truncate: the leeway");
    int64_t count = (int64_t)fr_jinja_length(render, arguments[0]),
            end_count = (int64_t)fr_jinja_length(render, fr_jinja_of_string(end));
    if (length < end_count || more < 0)
        return fr_jinja_render_fail(render, "truncate: the length is below that of the end");
    if (count <= length || count - length <= more) return arguments[0];
    if (arguments[0].kind != FR_KIND_STRING) return fr_jinja_render_fail(render, "truncate: the value is not a string");
    fr_jinja_value kept = fr_jinja_get_slice(render, arguments[0], fr_jinja_none(),
                                             fr_jinja_of_int(length - end_count, false), fr_jinja_none());
    if (fr_jinja_render_failed(render)) return fr_jinja_none();
    const fr_jinja_string *string = kept.string;
    if (!fr_jinja_argument_truth(render, arguments[2])) {
        size_t word = fr_jinja_string_find_last(render, string, &blank, 0, string->length);
        if (word != SIZE_MAX) string = fr_jinja_string_part(render, string, 0, word);
    }
    size_t begin = fr_jinja_text_begin(render);
    fr_jinja_put_string(render, string);
    fr_jinja_put_string(render, end);
    return end_text(render, begin, string->markup);
}

fr_jinja_value fr_jinja_filter_wordcount(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *string = fr_jinja_soft_str(render, arguments[0]);
    size_t count = 0;
    bool inside = false;
    if (!fr_jinja_render_step(render, 8 * string->length)) return fr_jinja_none();
    for (size_t at = 0; at < string->length;) {
        int32_t codepoint;
        at += fr_jinja_decode(string->bytes + at, string->length - at, &codepoint);
        bool word = codepoint == '_' || fr_jinja_is_alphabetic(codepoint) || fr_jinja_is_numeric_character(codepoint);
        count += word && !inside;
        inside = word;
    }
    return fr_jinja_of_size(count);
}

/* ---------------------------------------------------------------------------------------------------------- formats */

fr_jinja_value fr_jinja_filter_format(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *format = fr_jinja_soft_str(render, arguments[0]);
    bool positional = arguments[1].list->count > 0, named = arguments[2].dict->count > 0;
    if (positional && named) return fr_jinja_render_fail(render, "format: arguments with and without names");
    return fr_jinja_of_string(fr_jinja_format_percent(render, format, named ? arguments[2] : arguments[1]));
}

static void read_separators(fr_jinja_render *render, fr_jinja_value separators, fr_jinja_json_style *style) {
    if (!fr_jinja_is_given(separators) || separators.kind == FR_KIND_NONE) return;
    bool list = separators.kind == FR_KIND_LIST || separators.kind == FR_KIND_TUPLE;
    bool two = list && separators.list->count == 2 && separators.list->items[0].kind == FR_KIND_STRING &&
               separators.list->items[1].kind == FR_KIND_STRING;
    if (!two) {
        fr_jinja_render_fail(render, "tojson: the separators must be two strings");
        return;
    }
    style->between = separators.list->items[0].string;
    style->colon = separators.list->items[1].string;
}

fr_jinja_value fr_jinja_filter_tojson(fr_jinja_render *render, const fr_jinja_value *arguments) {
    static const fr_jinja_string comma = {.bytes = ",", .length = 1, .ascii = true};
    static const fr_jinja_string comma_blank = {.bytes = ", ", .length = 2, .ascii = true};
    static const fr_jinja_string colon_blank = {.bytes = ": ", .length = 2, .ascii = true};
    fr_jinja_json_style style = {.between = &comma_blank, .colon = &colon_blank};
    fr_jinja_value indent = arguments[2];
    style.ascii = fr_jinja_argument_truth(render, arguments[1]);
    style.sorted = fr_jinja_argument_truth(render, arguments[4]);
    if (indent.kind == FR_KIND_STRING)
        style.indent = indent.string;
    else if (fr_jinja_is_given(indent) && indent.kind != FR_KIND_NONE)
        style.indent = blanks(render, fr_jinja_argument_int(render, indent, 0, "tojson: the indent"));
    if (style.indent) style.between = &comma;
    read_separators(render, arguments[3], &style);
    size_t begin = fr_jinja_text_begin(render);
    fr_jinja_put_json(render, arguments[0], &style);
    return end_text(render, begin, false);
}

/* ------------------------------------------------------------------------------------------------------------- HTML */

fr_jinja_value fr_jinja_filter_safe(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_string(fr_jinja_string_as_markup(render, fr_jinja_soft_str(render, arguments[0]), true));
}

fr_jinja_value fr_jinja_filter_forceescape(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *string = fr_jinja_soft_str(render, arguments[0]);
    size_t begin = fr_jinja_text_begin(render);
    fr_jinja_put_escaped(render, string);
    return end_text(render, begin, true);
}

fr_jinja_value fr_jinja_filter_escape(fr_jinja_render *render, const fr_jinja_value *arguments) {
    bool markup = arguments[0].kind == FR_KIND_STRING && arguments[0].string->markup;
    return markup ? arguments[0] : fr_jinja_filter_forceescape(render, arguments);
}

/* Removes everything from each `open` to the next `close`. */
static const fr_jinja_string *without(fr_jinja_render *render, const fr_jinja_string *string,
                                      const fr_jinja_string *open, const fr_jinja_string *close) {
    size_t begin = fr_jinja_text_begin(render), at = 0;
    while (!fr_jinja_render_failed(render)) {
        size_t from = fr_jinja_string_find(render, string, open, at, string->length);
        size_t to = from == SIZE_MAX ? from : fr_jinja_string_find(render, string, close, from, string->length);
        if (to == SIZE_MAX) break;
        fr_jinja_put_part(render, string, at, from);
        at = to + close->length;
    }
    fr_jinja_put_part(render, string, at, string->length);
    return fr_jinja_text_end(render, begin);
}

/* Decodes the entity that begins at `at`. 0: it is not one of `entities`. */
static int32_t entity_at(const fr_jinja_string *string, size_t at, size_t *length) {
    static const struct {
        const char *text;
        int32_t codepoint;
    } entities[] = {{"&amp;", '&'}, {"&lt;", '<'},   {"&gt;", '>'},    {"&quot;", '"'},
                    {"&#34;", '"'}, {"&#39;", '\''}, {"&apos;", '\''}, {"&nbsp;", 0xA0}};
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
        *length = strlen(entities[i].text);
        if (*length <= string->length - at && memcmp(string->bytes + at, entities[i].text, *length) == 0)
            return entities[i].codepoint;
    }
    return 0;
}

static void put_unescaped(fr_jinja_render *render, const fr_jinja_string *string) {
    size_t plain_from = 0;
    for (size_t at = 0, length; at < string->length && !fr_jinja_render_failed(render); at++) {
        int32_t codepoint = string->bytes[at] == '&' ? entity_at(string, at, &length) : 0;
        if (!codepoint) continue;
        fr_jinja_put_part(render, string, plain_from, at);
        fr_jinja_put_character(render, codepoint, fr_jinja_string_foreign_at(string, at));
        plain_from = at + length;
        at = plain_from - 1;
    }
    fr_jinja_put_part(render, string, plain_from, string->length);
}

/* Removes comments and tags, reduces each run of white space to one blank, and decodes entities. */
fr_jinja_value fr_jinja_filter_striptags(fr_jinja_render *render, const fr_jinja_value *arguments) {
    static const fr_jinja_string open_comment = {.bytes = "<!--", .length = 4},
                                 close_comment = {.bytes = "-->", .length = 3};
    static const fr_jinja_string open_tag = {.bytes = "<", .length = 1}, close_tag = {.bytes = ">", .length = 1};
    const fr_jinja_string *string = without(render, fr_jinja_str(render, arguments[0]), &open_comment, &close_comment);
    string = without(render, string, &open_tag, &close_tag);
    const fr_jinja_list *words = fr_jinja_string_split(render, string, NULL, -1);
    size_t begin = fr_jinja_text_begin(render);
    for (size_t i = 0; i < words->count && !fr_jinja_render_failed(render); i++) {
        if (i > 0) fr_jinja_put(render, " ", 1, string->foreign);
        put_unescaped(render, words->items[i].string);
    }
    return end_text(render, begin, false);
}

/* ------------------------------------------------------------------------------------------------------------- URLs */

static bool stays_in_url(char c, bool in_query) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter || (c && strchr("_.-~", c)) || (c == '/' && !in_query);
}

static void put_url(fr_jinja_render *render, fr_jinja_value value, bool in_query) {
    const fr_jinja_string *string = fr_jinja_str(render, value);
    for (size_t at = 0; at < string->length && !fr_jinja_render_failed(render); at++) {
        char c = string->bytes[at], escaped[4];
        bool foreign = fr_jinja_string_foreign_at(string, at);
        snprintf(escaped, sizeof escaped, "%%%02X", (unsigned char)c);
        if (stays_in_url(c, in_query))
            fr_jinja_put(render, &c, 1, foreign);
        else
            fr_jinja_put_text(render, c == ' ' && in_query ? "+" : escaped, foreign);
    }
}

static void put_query_pair(fr_jinja_render *render, fr_jinja_value pair) {
    const fr_jinja_list *list = fr_jinja_list_of(render, pair);
    if (list->count != 2) {
        fr_jinja_render_fail(render, "urlencode: the items are not pairs");
        return;
    }
    put_url(render, list->items[0], true);
    fr_jinja_put(render, "=", 1, pair.foreign);
    put_url(render, list->items[1], true);
}

fr_jinja_value fr_jinja_filter_urlencode(fr_jinja_render *render, const fr_jinja_value *arguments) {
    fr_jinja_value pairs = arguments[0];
    size_t begin = fr_jinja_text_begin(render);
    if (pairs.kind == FR_KIND_STRING || !fr_jinja_is_iterable(pairs)) {
        put_url(render, pairs, false);
        return end_text(render, begin, false);
    }
    fr_jinja_view items = {.dict = pairs.dict, .of = FR_VIEW_ITEMS, .foreign = pairs.foreign};
    if (pairs.kind == FR_KIND_DICT)
        pairs = (fr_jinja_value){.kind = FR_KIND_VIEW, .foreign = pairs.foreign, .view = &items};
    fr_jinja_cursor cursor = fr_jinja_cursor_new(render, pairs);
    bool first = true;
    for (fr_jinja_value pair; fr_jinja_cursor_next(render, &cursor, &pair); first = false) {
        if (!first) fr_jinja_put(render, "&", 1, pairs.foreign);
        put_query_pair(render, pair);
    }
    return end_text(render, begin, false);
}
