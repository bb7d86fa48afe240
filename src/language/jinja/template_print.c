/* Writes values as text, as Python's str(), repr() and json.dumps() do. Punctuation is trusted or foreign like the
 * container to which it belongs. */
#include <inttypes.h>
#include <stdio.h>

#include "src/language/jinja/template_print.h"
#include "src/language/jinja/template_text.h"

/* The number of bytes whose copying takes as long as finding the digits of a float. So a float costs as many steps as
 * these bytes. */
#define REAL_BYTES 1024

/* ------------------------------------------------------------------------------------------------------- characters */

/* Gives the letter of a character's short escape in repr() or JSON; 0: it has none. */
static char short_escape(int32_t codepoint, const char *characters, const char *letters) {
    const char *found = codepoint > 0 && codepoint < 0x80 ? strchr(characters, (char)codepoint) : NULL;
    return found ? letters[found - characters] : 0;
}

static void put_escape(fr_jinja_render *render, const char *format, uint32_t number, bool foreign) {
    char text[16];
    snprintf(text, sizeof text, format, number);
    fr_jinja_put_text(render, text, foreign);
}

static void put_short(fr_jinja_render *render, char letter, bool foreign) {
    const char text[2] = {'\\', letter};
    fr_jinja_put(render, text, 2, foreign);
}

/* put_escaping copies runs of characters that need no escape. For every other character it calls `escape`. */
typedef bool needs_escape(int32_t codepoint, char quote);
typedef void put_escaped(fr_jinja_render *render, int32_t codepoint, bool foreign);

static void put_escaping(fr_jinja_render *render, const fr_jinja_string *string, char quote, needs_escape *needs,
                         put_escaped *escape) {
    size_t plain = 0; /* offset at which the present run of characters that need no escape begins */
    if (!fr_jinja_render_step(render, (string->ascii ? 2 : 8) * string->length)) return;
    for (size_t at = 0, step; at < string->length && !fr_jinja_render_failed(render); at += step) {
        int32_t codepoint;
        step = fr_jinja_decode(string->bytes + at, string->length - at, &codepoint);
        if (!needs(codepoint, quote)) continue;
        fr_jinja_put_part(render, string, plain, at);
        escape(render, codepoint, fr_jinja_string_foreign_at(string, at));
        plain = at + step;
    }
    fr_jinja_put_part(render, string, plain, string->length);
}

/* ------------------------------------------------------------------------------------------------- str() and repr() */

static bool repr_escapes(int32_t codepoint, char quote) {
    return codepoint == quote || codepoint == '\\' || !fr_jinja_is_printable(codepoint);
}

static void put_repr_escape(fr_jinja_render *render, int32_t codepoint, bool foreign) {
    char letter = short_escape(codepoint, "\n\r\t\\'\"", "nrt\\'\"");
    if (letter)
        put_short(render, letter, foreign);
    else if (codepoint < 0x100)
        put_escape(render, "\\x%02" PRIx32, (uint32_t)codepoint, foreign);
    else
        put_escape(render, codepoint < 0x10000 ? "\\u%04" PRIx32 : "\\U%08" PRIx32, (uint32_t)codepoint, foreign);
}

static void put_quoted(fr_jinja_render *render, const fr_jinja_string *string) {
    bool single = memchr(string->bytes, '\'', string->length), twofold = memchr(string->bytes, '"', string->length);
    const char *quote = single && !twofold ? "\"" : "'";
    if (string->markup) fr_jinja_put_text(render, "Markup(", string->foreign);
    fr_jinja_put(render, quote, 1, string->foreign);
    put_escaping(render, string, *quote, repr_escapes, put_repr_escape);
    fr_jinja_put(render, quote, 1, string->foreign);
    if (string->markup) fr_jinja_put_text(render, ")", string->foreign);
}

static void put_items(fr_jinja_render *render, const fr_jinja_list *list, const char *brackets, bool foreign) {
    fr_jinja_put(render, brackets, 1, foreign);
    for (size_t i = 0; i < list->count && !fr_jinja_render_failed(render); i++) {
        if (i > 0) fr_jinja_put(render, ", ", 2, foreign);
        fr_jinja_put_repr(render, list->items[i]);
    }
    if (list->count == 1 && *brackets == '(') fr_jinja_put(render, ",", 1, foreign);
    fr_jinja_put(render, brackets + 1, 1, foreign);
}

static void put_entries(fr_jinja_render *render, const fr_jinja_dict *dict, bool foreign) {
    fr_jinja_put(render, "{", 1, foreign);
    for (size_t i = 0; i < dict->count && !fr_jinja_render_failed(render); i++) {
        if (i > 0) fr_jinja_put(render, ", ", 2, foreign);
        fr_jinja_put_repr(render, dict->entries[i].key);
        fr_jinja_put(render, ": ", 2, foreign);
        fr_jinja_put_repr(render, dict->entries[i].value);
    }
    fr_jinja_put(render, "}", 1, foreign);
}

static void put_view(fr_jinja_render *render, fr_jinja_value value) {
    static const char *const names[] = {"dict_keys(", "dict_values(", "dict_items("};
    fr_jinja_put_text(render, names[value.view->of], value.foreign);
    put_items(render, fr_jinja_list_of(render, value), "[]", value.foreign);
    fr_jinja_put_text(render, ")", value.foreign);
}

static void put_range(fr_jinja_render *render, const fr_jinja_range *range, bool foreign) {
    char text[80];
    int length = snprintf(text, sizeof text, "range(%" PRId64 ", %" PRId64, range->start, range->stop);
    if (range->step != 1) snprintf(text + length, sizeof text - (size_t)length, ", %" PRId64, range->step);
    fr_jinja_put_text(render, text, foreign);
    fr_jinja_put(render, ")", 1, foreign);
}

static void put_namespace(fr_jinja_render *render, fr_jinja_value value) {
    fr_jinja_put_text(render, "<Namespace ", false);
    put_entries(render, value.dict, false);
    fr_jinja_put_text(render, ">", false);
}

static void put_loop(fr_jinja_render *render, fr_jinja_loop *loop) {
    char text[64];
    size_t length = fr_jinja_length(render, (fr_jinja_value){.kind = FR_KIND_LOOP, .loop = loop});
    snprintf(text, sizeof text, "<LoopContext %zu/%zu>", loop->index + 1, length);
    fr_jinja_put_text(render, text, false);
}

static void put_macro(fr_jinja_render *render, const fr_jinja_macro *macro) {
    fr_jinja_put_text(render, "<Macro '", false);
    fr_jinja_put_string(render, macro->routine->name);
    fr_jinja_put_text(render, "'>", false);
}

/* Writes the name of a value's kind, if the value has no text of its own. Python would write the value's address, which
 * is different each time. */
static void put_object(fr_jinja_render *render, fr_jinja_value value) {
    fr_jinja_put_text(render, "<", false);
    fr_jinja_put_text(render, fr_jinja_kind_name(value.kind), false);
    fr_jinja_put_text(render, ">", false);
}

static void put_int(fr_jinja_render *render, int64_t integer, bool foreign) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, integer);
    fr_jinja_put_text(render, text, foreign);
}

static void put_real(fr_jinja_render *render, double real, bool foreign) {
    char text[FR_REAL_SIZE];
    if (!fr_jinja_render_step(render, REAL_BYTES)) return;
    fr_jinja_print_real(real, text);
    fr_jinja_put_text(render, text, foreign);
}

static void put_container(fr_jinja_render *render, fr_jinja_value value) {
    switch (value.kind) {
    case FR_KIND_LIST: put_items(render, value.list, "[]", value.foreign); break;
    case FR_KIND_TUPLE: put_items(render, value.list, "()", value.foreign); break;
    case FR_KIND_DICT: put_entries(render, value.dict, value.foreign); break;
    case FR_KIND_RANGE: put_range(render, value.range, value.foreign); break;
    case FR_KIND_VIEW: put_view(render, value); break;
    case FR_KIND_NAMESPACE: put_namespace(render, value); break;
    case FR_KIND_LOOP: put_loop(render, value.loop); break;
    case FR_KIND_MACRO: put_macro(render, value.macro); break;
    default: put_object(render, value); break;
    }
}

void fr_jinja_put_repr(fr_jinja_render *render, fr_jinja_value value) {
    if (!fr_jinja_render_enter(render)) return;
    switch (value.kind) {
    case FR_KIND_UNDEFINED: fr_jinja_put_text(render, "Undefined", value.foreign); break;
    case FR_KIND_NONE: fr_jinja_put_text(render, "None", value.foreign); break;
    case FR_KIND_BOOL: fr_jinja_put_text(render, value.truth ? "True" : "False", value.foreign); break;
    case FR_KIND_INT: put_int(render, value.integer, value.foreign); break;
    case FR_KIND_WIDE: fr_jinja_put_string(render, value.string); break;
    case FR_KIND_FLOAT: put_real(render, value.real, value.foreign); break;
    case FR_KIND_STRING: put_quoted(render, value.string); break;
    default: put_container(render, value); break;
    }
    fr_jinja_render_leave(render);
}

void fr_jinja_put_str(fr_jinja_render *render, fr_jinja_value value) {
    if (value.kind == FR_KIND_STRING)
        fr_jinja_put_string(render, value.string);
    else if (value.kind != FR_KIND_UNDEFINED)
        fr_jinja_put_repr(render, value);
}

const fr_jinja_string *fr_jinja_soft_str(fr_jinja_render *render, fr_jinja_value value) {
    if (value.kind == FR_KIND_STRING) return value.string;
    size_t begin = fr_jinja_text_begin(render);
    fr_jinja_put_str(render, value);
    return fr_jinja_text_end(render, begin);
}

const fr_jinja_string *fr_jinja_str(fr_jinja_render *render, fr_jinja_value value) {
    return fr_jinja_string_as_markup(render, fr_jinja_soft_str(render, value), false);
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

static bool json_escapes(int32_t codepoint, char quote) {
    return codepoint == quote || codepoint == '\\' || codepoint < 0x20;
}

/* Returns true for a character that Python escapes with ensure_ascii: any that JSON must escape, and any above '~'. */
static bool json_escapes_more(int32_t codepoint, char quote) {
    return json_escapes(codepoint, quote) || codepoint >= 0x7F;
}

static void put_json_escape(fr_jinja_render *render, int32_t codepoint, bool foreign) {
    char letter = short_escape(codepoint, "\"\\\n\r\t\f\b", "\"\\nrtfb");
    if (letter) {
        put_short(render, letter, foreign);
    } else if (codepoint < 0x10000) {
        put_escape(render, "\\u%04" PRIx32, (uint32_t)codepoint, foreign);
    } else {
        put_escape(render, "\\u%04" PRIx32, (uint32_t)(0xD800 + ((codepoint - 0x10000) >> 10)), foreign);
        put_escape(render, "\\u%04" PRIx32, (uint32_t)(0xDC00 + ((codepoint - 0x10000) & 0x3FF)), foreign);
    }
}

static void put_json_string(fr_jinja_render *render, const fr_jinja_string *string, const fr_jinja_json_style *style) {
    fr_jinja_put(render, "\"", 1, string->foreign);
    put_escaping(render, string, '"', style->ascii ? json_escapes_more : json_escapes, put_json_escape);
    fr_jinja_put(render, "\"", 1, string->foreign);
}

static void put_line(fr_jinja_render *render, const fr_jinja_json_style *style, size_t level, bool foreign) {
    if (!style->indent) return;
    fr_jinja_put(render, "\n", 1, foreign);
    fr_jinja_put_times(render, style->indent, (int64_t)level);
}

static void put_punctuation(fr_jinja_render *render, const fr_jinja_string *text, bool foreign) {
    fr_jinja_put(render, text->bytes, text->length, foreign || text->foreign);
}

static void put_json(fr_jinja_render *render, fr_jinja_value value, const fr_jinja_json_style *style, size_t level);

static void put_json_list(fr_jinja_render *render, fr_jinja_value value, const fr_jinja_json_style *style,
                          size_t level) {
    const fr_jinja_list *list = value.list;
    fr_jinja_put(render, "[", 1, value.foreign);
    for (size_t i = 0; i < list->count && !fr_jinja_render_failed(render); i++) {
        if (i > 0) put_punctuation(render, style->between, value.foreign);
        put_line(render, style, level + 1, value.foreign);
        put_json(render, list->items[i], style, level + 1);
    }
    if (list->count > 0) put_line(render, style, level, value.foreign);
    fr_jinja_put(render, "]", 1, value.foreign);
}

/* Writes a key as a string, as JSON requires. Keys that are numbers, true, false or null become strings, as in
 * Python. */
static void put_json_key(fr_jinja_render *render, fr_jinja_value key, const fr_jinja_json_style *style) {
    if (key.kind == FR_KIND_STRING) {
        put_json_string(render, key.string, style);
    } else if (fr_is_number(key) || key.kind == FR_KIND_NONE) {
        fr_jinja_put(render, "\"", 1, key.foreign);
        put_json(render, key, style, 0);
        fr_jinja_put(render, "\"", 1, key.foreign);
    } else {
        fr_jinja_render_fail(render, "tojson: a key of JSON can't be a '%s'", fr_jinja_kind_name(key.kind));
    }
}

static void put_json_dict(fr_jinja_render *render, fr_jinja_value value, const fr_jinja_json_style *style,
                          size_t level) {
    const fr_jinja_entry *entries = style->sorted ? fr_jinja_sorted_entries(render, value.dict) : value.dict->entries;
    fr_jinja_put(render, "{", 1, value.foreign);
    for (size_t i = 0; entries && i < value.dict->count && !fr_jinja_render_failed(render); i++) {
        if (i > 0) put_punctuation(render, style->between, value.foreign);
        put_line(render, style, level + 1, value.foreign);
        put_json_key(render, entries[i].key, style);
        put_punctuation(render, style->colon, value.foreign);
        put_json(render, entries[i].value, style, level + 1);
    }
    if (value.dict->count > 0) put_line(render, style, level, value.foreign);
    fr_jinja_put(render, "}", 1, value.foreign);
}

static void put_json_real(fr_jinja_render *render, fr_jinja_value value) {
    double real = value.real;
    if (real - real == 0)
        put_real(render, real, value.foreign);
    else
        fr_jinja_put_text(render, real > 0 ? "Infinity" : real < 0 ? "-Infinity" : "NaN", value.foreign);
}

static void put_json(fr_jinja_render *render, fr_jinja_value value, const fr_jinja_json_style *style, size_t level) {
    if (!fr_jinja_render_enter(render)) return;
    switch (value.kind) {
    case FR_KIND_NONE: fr_jinja_put_text(render, "null", value.foreign); break;
    case FR_KIND_BOOL: fr_jinja_put_text(render, value.truth ? "true" : "false", value.foreign); break;
    case FR_KIND_INT: put_int(render, value.integer, value.foreign); break;
    case FR_KIND_WIDE: fr_jinja_put_string(render, value.string); break;
    case FR_KIND_FLOAT: put_json_real(render, value); break;
    case FR_KIND_STRING: put_json_string(render, value.string, style); break;
    case FR_KIND_LIST:
    case FR_KIND_TUPLE: put_json_list(render, value, style, level); break;
    case FR_KIND_DICT: put_json_dict(render, value, style, level); break;
    case FR_KIND_UNDEFINED: fr_jinja_render_fail_undefined(render, value); break;
    default:
        fr_jinja_render_fail(render, "tojson: '%s' can't be written as JSON", fr_jinja_kind_name(value.kind));
        break;
    }
    fr_jinja_render_leave(render);
}

void fr_jinja_put_json(fr_jinja_render *render, fr_jinja_value value, const fr_jinja_json_style *style) {
    put_json(render, value, style, 0);
}
