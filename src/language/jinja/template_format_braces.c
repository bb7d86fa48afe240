/* Formats "{}".format(values) (template_format.h). Each byte of the result is trusted or foreign. It has this mark from
 * the literal text or from the value from which it was copied. */
#include "src/language/jinja/template_format.h"
#include "src/language/jinja/template_strings.h"
#include "src/language/jinja/template_style.h"

typedef struct braces {
    fr_jinja_render *render;
    const fr_jinja_string *format;
    const fr_jinja_list *positional;
    const fr_jinja_dict *keywords;
    size_t automatic; /* number of fields so far without a number */
    /* counted: there was a field without a number; numbered: there was a field with a number */
    bool counted, numbered;
} braces;

/* Reads a name or number, which ends before one of the characters in `ends`. */
static const fr_jinja_string *read_word(const braces *b, const fr_jinja_string *field, size_t *at, const char *ends) {
    size_t begin = *at;
    while (*at < field->length && !(field->bytes[*at] && strchr(ends, field->bytes[*at]))) ++*at;
    return fr_jinja_string_part(b->render, field, begin, *at);
}

/* Reads a number; -1: the word is not a number. */
static int64_t number_of(const fr_jinja_string *word) {
    size_t at = 0;
    int64_t number = fr_jinja_read_count(word->bytes, word->length, &at);
    return at == word->length ? number : -1;
}

static fr_jinja_value first_value(braces *b, const fr_jinja_string *word) {
    int64_t number = number_of(word);
    if (word->length == 0) number = (int64_t)b->automatic++;
    if (number < 0) {
        const fr_jinja_entry *entry = fr_jinja_dict_find_string(b->render, b->keywords, word);
        return entry ? entry->value : fr_jinja_render_fail(b->render, "format: a name that is not given");
    }
    b->counted = b->counted || word->length == 0;
    b->numbered = b->numbered || word->length > 0;
    if (b->counted && b->numbered)
        return fr_jinja_render_fail(b->render, "format: some fields have numbers, others none");
    if ((size_t)number < b->positional->count) return b->positional->items[number];
    return fr_jinja_render_fail(b->render, "format: more fields than values");
}

/* Evaluates name.attribute[index]. */
static fr_jinja_value field_value(braces *b, const fr_jinja_string *field) {
    size_t at = 0;
    fr_jinja_value value = first_value(b, read_word(b, field, &at, ".["));
    while (at < field->length && fr_jinja_render_step(b->render, 0)) {
        bool attribute = field->bytes[at++] == '.';
        const fr_jinja_string *word = read_word(b, field, &at, attribute ? ".[" : "]");
        int64_t number = number_of(word);
        if (word->length == 0) return fr_jinja_render_fail(b->render, "format: an empty attribute");
        if (!attribute && at++ >= field->length) return fr_jinja_render_fail(b->render, "format: a [ without its ]");
        if (attribute)
            value = fr_jinja_get_attribute(b->render, value, word);
        else
            value = fr_jinja_get_item(b->render, value,
                                      number < 0 ? fr_jinja_of_string(word) : fr_jinja_of_int(number, false));
    }
    return value;
}

static bool is_align(char c) {
    return c == '<' || c == '>' || c == '^' || c == '=';
}

/* Parses [[fill]align][sign][#][0][width][,][.precision][type]. */
static fr_jinja_style parse_style(fr_jinja_render *render, const fr_jinja_string *spec) {
    fr_jinja_style s = {.fill = " ", .fill_length = 1, .precision = -1};
    const char *bytes = spec->bytes;
    size_t at = 0, end = spec->length;
    int32_t codepoint;
    size_t first = end > 0 ? fr_jinja_decode(bytes, end, &codepoint) : 0;
    s.foreign = spec->foreign;
    if (first < end && is_align(bytes[first])) {
        memcpy(s.fill, bytes, first);
        s.fill_length = first;
        s.align = bytes[first];
        at = first + 1;
    } else if (end > 0 && is_align(bytes[0])) {
        s.align = bytes[at++];
    }
    if (at < end && (bytes[at] == '+' || bytes[at] == '-' || bytes[at] == ' ')) s.sign = bytes[at++];
    if (s.sign == '-') s.sign = 0;
    if (at < end && bytes[at] == '#') s.alternate = at++ < end;
    if (at < end && bytes[at] == '0') {
        at++;
        if (!s.align) {
            s.align = '=';
            s.fill[0] = '0';
        }
    }
    s.width = fr_jinja_read_count(bytes, end, &at);
    if (at < end && (bytes[at] == ',' || bytes[at] == '_')) s.group = bytes[at++];
    if (at < end && bytes[at] == '.') {
        at++;
        s.precision = fr_jinja_read_count(bytes, end, &at);
        if (s.precision < 0) fr_jinja_render_fail(render, "format: a precision without digits");
    }
    if (at < end) s.type = bytes[at++];
    if (at < end) fr_jinja_render_fail(render, "format: an unknown specification");
    return s;
}

static void put_styled(fr_jinja_render *render, fr_jinja_value value, fr_jinja_style *s) {
    bool text = value.kind == FR_KIND_STRING, real_type = s->type && strchr("eEfFgG%", s->type);
    fr_jinja_check_precision(render, s);
    if (text && (s->type == 0 || s->type == 's') && s->align != '=' && !s->sign) {
        fr_jinja_put_styled_string(render, s, value.string);
    } else if (value.kind == FR_KIND_WIDE && !real_type && s->precision < 0 && (s->type == 0 || s->type == 'd')) {
        fr_put_styled_wide(render, s, value);
    } else if (value.kind == FR_KIND_FLOAT || (fr_jinja_is_whole(value) && real_type)) {
        bool fits = s->type == 0 || real_type;
        if (!fits || (s->type == 0 && s->precision > FR_PRECISION_MAX))
            fr_jinja_render_fail(render, "format: not for a float");
        if (!fr_jinja_render_failed(render))
            fr_jinja_put_styled_real(render, s, fr_jinja_real_of(value), value.foreign);
    } else if (fr_jinja_is_whole(value) && (s->type == 0 || strchr("dboxX", s->type)) && s->precision < 0) {
        fr_jinja_put_styled_int(render, s, fr_jinja_int_of(value), value.foreign);
    } else {
        fr_jinja_render_fail(render, "format: the specification does not fit a '%s'", fr_jinja_kind_name(value.kind));
    }
}

static const fr_jinja_string *format_part(braces *b, const fr_jinja_string *format, int nesting);

/* Writes a field, which is the text between two braces: name!conversion:specification. */
static void put_field(braces *b, const fr_jinja_string *field, int nesting) {
    size_t at = 0, bracket = 0;
    for (; at < field->length; at++) { /* between [ and ] any character belongs to the name */
        bracket = field->bytes[at] == '[' ? 1 : field->bytes[at] == ']' ? 0 : bracket;
        if (!bracket && (field->bytes[at] == '!' || field->bytes[at] == ':')) break;
    }
    fr_jinja_value value = field_value(b, fr_jinja_string_part(b->render, field, 0, at));
    if (at + 1 < field->length && field->bytes[at] == '!') {
        char conversion = field->bytes[at + 1];
        size_t begin = fr_jinja_text_begin(b->render);
        if (conversion == 'r')
            fr_jinja_put_repr(b->render, value);
        else
            fr_jinja_put_str(b->render, value);
        value = fr_jinja_of_string(fr_jinja_text_end(b->render, begin));
        if (conversion != 'r' && conversion != 's')
            fr_jinja_render_fail(b->render, "format: a conversion other than !r and !s");
        at += 2;
    }
    if (at < field->length && field->bytes[at] != ':')
        fr_jinja_render_fail(b->render, "format: a field that can't be read");
    const fr_jinja_string *spec =
        fr_jinja_string_part(b->render, field, at < field->length ? at + 1 : at, field->length);
    if (spec->length > 0) spec = format_part(b, spec, nesting + 1);
    fr_jinja_style s = parse_style(b->render, spec);
    if (fr_jinja_render_failed(b->render)) return;
    size_t begin = fr_jinja_text_begin(b->render);
    if (spec->length == 0)
        fr_jinja_put_str(b->render, value);
    else
        put_styled(b->render, value, &s);
    bool escapes = b->format->markup && !(value.kind == FR_KIND_STRING && value.string->markup);
    if (escapes) fr_jinja_put_escaped(b->render, fr_jinja_text_end(b->render, begin));
}

/* Finds the brace that closes the field whose opening brace is just before `at`. */
static size_t end_of_field(const fr_jinja_string *format, size_t at) {
    for (size_t depth = 1; at < format->length; at++) {
        if (format->bytes[at] == '{') depth++;
        if (format->bytes[at] == '}' && --depth == 0) break;
    }
    return at;
}

static const fr_jinja_string *format_part(braces *b, const fr_jinja_string *format, int nesting) {
    size_t begin = fr_jinja_text_begin(b->render), plain = 0;
    if (nesting > 2) fr_jinja_render_fail(b->render, "format: fields nested too deep");
    for (size_t at = 0; at < format->length && !fr_jinja_render_failed(b->render); at++) {
        char c = format->bytes[at];
        if (c != '{' && c != '}') continue;
        bool twice = at + 1 < format->length && format->bytes[at + 1] == c && nesting == 1;
        fr_jinja_put_part(b->render, format, plain, twice ? ++at : at);
        plain = at + 1;
        if (twice) continue;
        size_t end = end_of_field(format, at + 1);
        if (c == '}' || end >= format->length) fr_jinja_render_fail(b->render, "format: a brace without its match");
        if (fr_jinja_render_failed(b->render)) break;
        put_field(b, fr_jinja_string_part(b->render, format, at + 1, end), nesting);
        at = end;
        plain = at + 1;
    }
    if (!fr_jinja_render_failed(b->render)) fr_jinja_put_part(b->render, format, plain, format->length);
    return fr_jinja_text_end(b->render, begin);
}

const fr_jinja_string *fr_jinja_format_braces(fr_jinja_render *render, const fr_jinja_string *format,
                                              const fr_jinja_list *rest, const fr_jinja_dict *keywords) {
    braces b = {.render = render, .format = format, .positional = rest, .keywords = keywords};
    return fr_jinja_string_as_markup(render, format_part(&b, format, 1), format->markup);
}
