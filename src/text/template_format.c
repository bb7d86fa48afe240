/* Texts with places for values: see template_format.h. Literal text keeps its hand, and so does each value. */
#include "src/text/template_format.h"

#include <inttypes.h>
#include <stdio.h>

#include "src/text/template_text.h"

#define MAX_PRECISION 300
#define NUMBER_SIZE   (MAX_PRECISION + 330)

/* ------------------------------------------------------------------------------------------------ padding, escaping */

static size_t character_count(fr_render *render, const fr_string *string) {
    return fr_length(render, fr_of_string(string));
}

void fr_put_aligned(fr_render *render, const fr_string *string, int64_t width, const fr_string *fill, char align) {
    int64_t count = (int64_t)character_count(render, string), padding = width > count ? width - count : 0;
    int64_t left = align == '<' ? 0 : align == '>' ? padding : padding / 2;
    if (align == 'c') left += padding & width & 1;
    fr_put_times(render, fill, left);
    fr_put_string(render, string);
    fr_put_times(render, fill, padding - left);
}

void fr_put_escaped(fr_render *render, const fr_string *string) {
    static const char characters[] = "&<>\"'";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    size_t plain = 0;
    for (size_t at = 0; at < string->length && !fr_render_failed(render); at++) {
        const char *found = string->bytes[at] ? strchr(characters, string->bytes[at]) : NULL;
        if (!found) continue;
        fr_put_part(render, string, plain, at);
        fr_put_text(render, entities[found - characters], fr_string_foreign_at(string, at));
        plain = at + 1;
    }
    fr_put_part(render, string, plain, string->length);
}

/* ---------------------------------------------------------------------------------------------------------- numbers */

/* How a value is to look: what both languages of formats have in common. */
typedef struct style {
    char fill[4]; /* one character */
    size_t fill_length;
    char align; /* < > ^, or = for filling between sign and digits */
    char sign;  /* + or blank before what isn't negative, or 0 */
    char group; /* , or _ between thousands, or 0 */
    bool alternate;
    bool foreign;             /* whose hand the filling is of */
    int64_t width, precision; /* -1: none */
    char type;                /* 0: none */
} style;

/* A number without its sign. */
typedef struct numeral {
    char digits[NUMBER_SIZE];
    const char *prefix; /* 0x */
    bool negative;
} numeral;

static void put_fill(fr_render *render, const style *s, int64_t times) {
    fr_put_times(render, fr_string_new(render, s->fill, s->fill_length, s->foreign), times);
}

/* How many digits stand before the point, and how many of them make a group; no groups: none. */
static size_t grouped_digits(const style *s, const char *digits, size_t *size) {
    bool decimal = !s->type || !strchr("xXob", s->type);
    *size = decimal ? 3 : 4;
    return s->group ? strspn(digits, decimal ? "0123456789" : "0123456789abcdefABCDEF") : 0;
}

static void put_digits(fr_render *render, const style *s, const char *digits, bool foreign) {
    size_t size, whole = grouped_digits(s, digits, &size);
    for (size_t i = 0; i < whole; i++) {
        if (i > 0 && (whole - i) % size == 0) fr_put(render, &s->group, 1, foreign);
        fr_put(render, digits + i, 1, foreign);
    }
    fr_put_text(render, digits + whole, foreign);
}

static size_t digits_width(const style *s, const char *digits) {
    size_t size, whole = grouped_digits(s, digits, &size);
    return strlen(digits) + (whole > 0 ? (whole - 1) / size : 0);
}

static void put_number(fr_render *render, const style *s, const numeral *n, bool foreign) {
    char sign[2] = {n->negative ? '-' : s->sign, 0};
    size_t length = strlen(sign) + strlen(n->prefix) + digits_width(s, n->digits);
    int64_t padding = s->width > (int64_t)length ? s->width - (int64_t)length : 0;
    int64_t left = s->align == '<' ? 0 : s->align == '^' ? padding / 2 : padding;
    if (s->align != '=') put_fill(render, s, left);
    fr_put_text(render, sign, foreign);
    fr_put_text(render, n->prefix, foreign);
    if (s->align == '=') put_fill(render, s, padding);
    put_digits(render, s, n->digits, foreign);
    put_fill(render, s, padding - left);
}

static void print_binary(uint64_t magnitude, char *digits) {
    char reversed[65];
    size_t count = 0;
    do reversed[count++] = (char)('0' + (magnitude & 1));
    while (magnitude >>= 1);
    while (count > 0) *digits++ = reversed[--count];
    *digits = 0;
}

/* precision: at least so many digits. */
static void print_int(const style *s, int64_t integer, numeral *n) {
    uint64_t magnitude = integer < 0 ? -(uint64_t)integer : (uint64_t)integer;
    int precision = s->precision > 0 ? (int)s->precision : 1;
    n->negative = integer < 0;
    n->prefix = !s->alternate ? "" : s->type == 'x' ? "0x" : s->type == 'X' ? "0X" : s->type == 'o' ? "0o" : "";
    switch (s->type) {
    case 'x': snprintf(n->digits, sizeof n->digits, "%.*" PRIx64, precision, magnitude); break;
    case 'X': snprintf(n->digits, sizeof n->digits, "%.*" PRIX64, precision, magnitude); break;
    case 'o': snprintf(n->digits, sizeof n->digits, "%.*" PRIo64, precision, magnitude); break;
    case 'b':
        print_binary(magnitude, n->digits);
        n->prefix = s->alternate ? "0b" : "";
        break;
    default: snprintf(n->digits, sizeof n->digits, "%.*" PRIu64, precision, magnitude); break;
    }
}

static void print_real(const style *s, double real, numeral *n) {
    int precision = s->precision < 0 ? 6 : (int)s->precision;
    n->negative = real < 0 || (real == 0 && 1 / real < 0);
    n->prefix = "";
    if (n->negative) real = -real;
    char *text = n->digits;
    switch (s->type) {
    case 'e': snprintf(text, NUMBER_SIZE, "%.*e", precision, real); break;
    case 'E': snprintf(text, NUMBER_SIZE, "%.*E", precision, real); break;
    case 'g': snprintf(text, NUMBER_SIZE, s->alternate ? "%#.*g" : "%.*g", precision, real); break;
    case 'G': snprintf(text, NUMBER_SIZE, s->alternate ? "%#.*G" : "%.*G", precision, real); break;
    case 'F': snprintf(text, NUMBER_SIZE, "%.*F", precision, real); break;
    case '%': snprintf(text, NUMBER_SIZE, "%.*f%%", precision, real * 100); break;
    case 0:
        if (s->precision < 0) {
            fr_print_real(real, text);
        } else {
            snprintf(text, NUMBER_SIZE - 2, "%.*g", precision, real);
            if (!strpbrk(text, ".en")) memcpy(text + strlen(text), ".0", 3);
        }
        break;
    default: snprintf(text, NUMBER_SIZE, "%.*f", precision, real); break;
    }
}

static bool is_whole(fr_value value) {
    return value.kind == FR_KIND_INT || value.kind == FR_KIND_BOOL;
}

static void put_int_value(fr_render *render, const style *s, int64_t integer, bool foreign) {
    numeral n;
    print_int(s, integer, &n);
    put_number(render, s, &n, foreign);
}

static void put_real_value(fr_render *render, const style *s, double real, bool foreign) {
    numeral n;
    if (!fr_render_step(render, (size_t)(32 + (s->precision < 0 ? 0 : s->precision)) * 32)) return;
    print_real(s, real, &n);
    put_number(render, s, &n, foreign);
}

/* Text, cut to the precision. */
static void put_string_value(fr_render *render, const style *s, const fr_string *string) {
    size_t count = character_count(render, string);
    if (s->precision >= 0 && (size_t)s->precision < count) {
        size_t end = fr_character_offset(string->bytes, string->length, (size_t)s->precision);
        string = fr_string_part(render, string, 0, end);
    }
    const fr_string *fill = fr_string_new(render, s->fill, s->fill_length, s->foreign);
    fr_put_aligned(render, string, s->width, fill, s->align ? s->align : '<');
}

/* A number in a format, of at most 9 digits. */
static int64_t read_count(const char *bytes, size_t end, size_t *at) {
    int64_t count = -1;
    for (size_t digits = 0; *at < end && digits < 9 && bytes[*at] >= '0' && bytes[*at] <= '9'; digits++)
        count = (count < 0 ? 0 : count) * 10 + bytes[(*at)++] - '0';
    return count;
}

static void check_precision(fr_render *render, const style *s) {
    if (s->precision > MAX_PRECISION && s->type != 's' && s->type != 0)
        fr_render_fail(render, "a precision of more than %d", MAX_PRECISION);
}

/* ---------------------------------------------------------------------------------------------------- "%s" % values */

typedef struct percent {
    fr_render *render;
    const fr_string *format;
    size_t at;
    fr_value values;
    size_t used; /* of a tuple, or 1 of one value */
} percent;

static fr_value next_value(percent *p) {
    bool tuple = p->values.kind == FR_KIND_TUPLE;
    size_t count = tuple ? p->values.list->count : 1, number = p->used++;
    if (number >= count) return fr_render_fail(p->render, "a format with more places than values");
    return tuple ? p->values.list->items[number] : p->values;
}

/* %(name) */
static fr_value named_value(percent *p) {
    size_t begin = p->at + 1, depth = 0;
    for (; p->at < p->format->length; p->at++) {
        if (p->format->bytes[p->at] == '(') depth++;
        if (p->format->bytes[p->at] == ')' && --depth == 0) break;
    }
    if (p->at >= p->format->length) return fr_render_fail(p->render, "a format with a name without an end");
    if (p->values.kind != FR_KIND_DICT) return fr_render_fail(p->render, "a format with names asks for a mapping");
    const fr_string *name = fr_string_part(p->render, p->format, begin, p->at++);
    const fr_entry *entry = fr_dict_find_string(p->render, p->values.dict, name);
    return entry ? entry->value : fr_render_fail(p->render, "a format with a name that the mapping lacks");
}

static int64_t read_width(percent *p) {
    if (p->at >= p->format->length || p->format->bytes[p->at] != '*')
        return read_count(p->format->bytes, p->format->length, &p->at);
    p->at++;
    fr_value value = next_value(p);
    if (!is_whole(value)) fr_render_fail(p->render, "a format whose * is no integer");
    return is_whole(value) ? fr_int_of(value) : -1;
}

static void read_flags(percent *p, style *s) {
    for (; p->at < p->format->length; p->at++) {
        switch (p->format->bytes[p->at]) {
        case '-': s->align = '<'; break;
        case '0':
            if (s->align != '<') s->align = '=';
            break;
        case '+': s->sign = '+'; break;
        case ' ':
            if (!s->sign) s->sign = ' ';
            break;
        case '#': s->alternate = true; break;
        default: return;
        }
    }
}

static style read_style(percent *p) {
    style s = {.fill = " ", .fill_length = 1, .align = '>', .precision = -1};
    s.foreign = fr_string_foreign_at(p->format, p->at - 1);
    read_flags(p, &s);
    s.width = read_width(p);
    if (s.width < 0 && s.width != -1) {
        s.align = '<';
        s.width = s.width == INT64_MIN ? INT64_MAX : -s.width;
    }
    if (p->at < p->format->length && p->format->bytes[p->at] == '.') {
        p->at++;
        s.precision = read_width(p);
        if (s.precision < 0) s.precision = 0;
    }
    while (p->at < p->format->length && strchr("hlL", p->format->bytes[p->at]) && p->format->bytes[p->at]) p->at++;
    if (p->at < p->format->length) s.type = p->format->bytes[p->at++];
    if (!s.type) fr_render_fail(p->render, "a format that ends early");
    return s;
}

static void put_percent_text(percent *p, style *s, fr_value value) {
    size_t begin = fr_text_begin(p->render);
    if (s->type == 'r')
        fr_put_repr(p->render, value);
    else if (p->format->markup && !(value.kind == FR_KIND_STRING && value.string->markup))
        fr_put_escaped(p->render, fr_str(p->render, value));
    else
        fr_put_str(p->render, value);
    const fr_string *text = fr_text_end(p->render, begin);
    if (s->align == '=') s->align = '>';
    put_string_value(p->render, s, text);
}

static void put_percent_character(percent *p, style *s, fr_value value) {
    char bytes[4];
    const fr_string *text = value.kind == FR_KIND_STRING ? value.string : NULL;
    bool character = is_whole(value) && fr_int_of(value) >= 0 && fr_int_of(value) <= 0x10FFFF;
    if (character) text = fr_string_new(p->render, bytes, fr_encode((int32_t)fr_int_of(value), bytes), value.foreign);
    if (!text || character_count(p->render, text) != 1)
        fr_render_fail(p->render, "%%c of what is no character");
    else
        put_string_value(p->render, s, text);
}

static void put_percent_int(percent *p, style *s, fr_value value) {
    bool real = value.kind == FR_KIND_FLOAT && strchr("diu", s->type) && value.real > -0x1p63 && value.real < 0x1p63;
    if (s->align == '=') s->fill[0] = '0';
    if (is_whole(value) || real)
        put_int_value(p->render, s, real ? (int64_t)value.real : fr_int_of(value), value.foreign);
    else
        fr_render_fail(p->render, "%%%c of a '%s'", s->type, fr_kind_name(value.kind));
}

static void put_percent_real(percent *p, style *s, fr_value value) {
    if (s->align == '=') s->fill[0] = '0';
    if (fr_is_numeric(value))
        put_real_value(p->render, s, fr_real_of(value), value.foreign);
    else
        fr_render_fail(p->render, "%%%c of a '%s'", s->type, fr_kind_name(value.kind));
}

/* Behind the %. */
static void put_percent_place(percent *p) {
    bool named = p->at < p->format->length && p->format->bytes[p->at] == '(';
    fr_value value = named ? named_value(p) : fr_missing();
    style s = read_style(p);
    check_precision(p->render, &s);
    if (fr_render_failed(p->render)) return;
    if (s.type == '%') {
        fr_put(p->render, "%", 1, s.foreign);
        return;
    }
    if (!named) value = next_value(p);
    if (s.type == 's' || s.type == 'r')
        put_percent_text(p, &s, value);
    else if (s.type == 'c')
        put_percent_character(p, &s, value);
    else if (strchr("diuxXo", s.type))
        put_percent_int(p, &s, value);
    else if (strchr("eEfFgG", s.type))
        put_percent_real(p, &s, value);
    else
        fr_render_fail(p->render, "a format has no type '%c'", s.type);
}

const fr_string *fr_format_percent(fr_render *render, const fr_string *format, fr_value values) {
    percent p = {.render = render, .format = format, .values = values};
    size_t begin = fr_text_begin(render);
    while (p.at < format->length && !fr_render_failed(render)) {
        size_t place = fr_find(format->bytes + p.at, format->length - p.at, "%", 1);
        size_t end = place == SIZE_MAX ? format->length : p.at + place;
        fr_put_part(render, format, p.at, end);
        p.at = end + 1;
        if (place != SIZE_MAX) put_percent_place(&p);
    }
    bool counted = values.kind <= FR_KIND_STRING && values.kind != FR_KIND_UNDEFINED;
    size_t count = values.kind == FR_KIND_TUPLE ? values.list->count : 1;
    if ((counted || values.kind == FR_KIND_TUPLE) && p.used < count)
        fr_render_fail(render, "a format with fewer places than values");
    return fr_string_as_markup(render, fr_text_end(render, begin), format->markup);
}

/* ---------------------------------------------------------------------------------------------- "{}".format(values) */

typedef struct braces {
    fr_render *render;
    const fr_string *format;
    const fr_list *positional;
    const fr_dict *keywords;
    size_t automatic;       /* places without a number so far */
    bool counted, numbered; /* places of either sort were met */
} braces;

/* A name or number up to one of the characters that end it. */
static const fr_string *read_word(const braces *b, const fr_string *field, size_t *at, const char *ends) {
    size_t begin = *at;
    while (*at < field->length && !(field->bytes[*at] && strchr(ends, field->bytes[*at]))) ++*at;
    return fr_string_part(b->render, field, begin, *at);
}

/* -1: it is no number */
static int64_t number_of(const fr_string *word) {
    size_t at = 0;
    int64_t number = read_count(word->bytes, word->length, &at);
    return at == word->length ? number : -1;
}

static fr_value first_value(braces *b, const fr_string *word) {
    int64_t number = number_of(word);
    if (word->length == 0) number = (int64_t)b->automatic++;
    if (number < 0) {
        const fr_entry *entry = fr_dict_find_string(b->render, b->keywords, word);
        return entry ? entry->value : fr_render_fail(b->render, "format: a name that is not given");
    }
    b->counted = b->counted || word->length == 0;
    b->numbered = b->numbered || word->length > 0;
    if (b->counted && b->numbered) return fr_render_fail(b->render, "format: some places have numbers, others none");
    if ((size_t)number < b->positional->count) return b->positional->items[number];
    return fr_render_fail(b->render, "format: more places than values");
}

/* name.attribute[index] */
static fr_value field_value(braces *b, const fr_string *field) {
    size_t at = 0;
    fr_value value = first_value(b, read_word(b, field, &at, ".["));
    while (at < field->length && fr_render_step(b->render, 0)) {
        bool attribute = field->bytes[at++] == '.';
        const fr_string *word = read_word(b, field, &at, attribute ? ".[" : "]");
        int64_t number = number_of(word);
        if (word->length == 0) return fr_render_fail(b->render, "format: an empty attribute");
        if (!attribute && at++ >= field->length) return fr_render_fail(b->render, "format: a [ without its ]");
        if (attribute)
            value = fr_get_attribute(b->render, value, word);
        else
            value = fr_get_item(b->render, value, number < 0 ? fr_of_string(word) : fr_of_int(number, false));
    }
    return value;
}

static bool is_align(char c) {
    return c == '<' || c == '>' || c == '^' || c == '=';
}

/* [[fill]align][sign][#][0][width][,][.precision][type] */
static style parse_style(fr_render *render, const fr_string *spec) {
    style s = {.fill = " ", .fill_length = 1, .precision = -1};
    const char *bytes = spec->bytes;
    size_t at = 0, end = spec->length;
    int32_t codepoint;
    size_t first = end > 0 ? fr_decode(bytes, end, &codepoint) : 0;
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
    s.width = read_count(bytes, end, &at);
    if (at < end && (bytes[at] == ',' || bytes[at] == '_')) s.group = bytes[at++];
    if (at < end && bytes[at] == '.') {
        at++;
        s.precision = read_count(bytes, end, &at);
        if (s.precision < 0) fr_render_fail(render, "format: a precision without digits");
    }
    if (at < end) s.type = bytes[at++];
    if (at < end) fr_render_fail(render, "format: a specification that means nothing");
    return s;
}

static void put_styled(fr_render *render, fr_value value, style *s) {
    bool text = value.kind == FR_KIND_STRING, real_type = s->type && strchr("eEfFgG%", s->type);
    check_precision(render, s);
    if (text && (s->type == 0 || s->type == 's') && s->align != '=' && !s->sign) {
        put_string_value(render, s, value.string);
    } else if (value.kind == FR_KIND_FLOAT || (is_whole(value) && real_type)) {
        bool fits = s->type == 0 || real_type;
        if (!fits || (s->type == 0 && s->precision > MAX_PRECISION)) fr_render_fail(render, "format: not for a float");
        if (!fr_render_failed(render)) put_real_value(render, s, fr_real_of(value), value.foreign);
    } else if (is_whole(value) && (s->type == 0 || strchr("dboxX", s->type)) && s->precision < 0) {
        put_int_value(render, s, fr_int_of(value), value.foreign);
    } else {
        fr_render_fail(render, "format: a specification that is not for a '%s'", fr_kind_name(value.kind));
    }
}

static const fr_string *format_part(braces *b, const fr_string *format, int nesting);

/* name!conversion:specification, between the braces. */
static void put_field(braces *b, const fr_string *field, int nesting) {
    size_t at = 0, bracket = 0;
    for (; at < field->length; at++) { /* inside [] anything goes */
        bracket = field->bytes[at] == '[' ? 1 : field->bytes[at] == ']' ? 0 : bracket;
        if (!bracket && (field->bytes[at] == '!' || field->bytes[at] == ':')) break;
    }
    fr_value value = field_value(b, fr_string_part(b->render, field, 0, at));
    if (at + 1 < field->length && field->bytes[at] == '!') {
        char conversion = field->bytes[at + 1];
        size_t begin = fr_text_begin(b->render);
        if (conversion == 'r')
            fr_put_repr(b->render, value);
        else
            fr_put_str(b->render, value);
        value = fr_of_string(fr_text_end(b->render, begin));
        if (conversion != 'r' && conversion != 's') fr_render_fail(b->render, "format: a conversion but !r and !s");
        at += 2;
    }
    if (at < field->length && field->bytes[at] != ':') fr_render_fail(b->render, "format: a place that means nothing");
    const fr_string *spec = fr_string_part(b->render, field, at < field->length ? at + 1 : at, field->length);
    if (spec->length > 0) spec = format_part(b, spec, nesting + 1);
    style s = parse_style(b->render, spec);
    if (fr_render_failed(b->render)) return;
    size_t begin = fr_text_begin(b->render);
    if (spec->length == 0)
        fr_put_str(b->render, value);
    else
        put_styled(b->render, value, &s);
    bool escapes = b->format->markup && !(value.kind == FR_KIND_STRING && value.string->markup);
    if (escapes) fr_put_escaped(b->render, fr_text_end(b->render, begin));
}

/* Where the place that opens before `at` ends. */
static size_t end_of_field(const fr_string *format, size_t at) {
    for (size_t depth = 1; at < format->length; at++) {
        if (format->bytes[at] == '{') depth++;
        if (format->bytes[at] == '}' && --depth == 0) break;
    }
    return at;
}

static const fr_string *format_part(braces *b, const fr_string *format, int nesting) {
    size_t begin = fr_text_begin(b->render), plain = 0;
    if (nesting > 2) fr_render_fail(b->render, "format: places nested too deep");
    for (size_t at = 0; at < format->length && !fr_render_failed(b->render); at++) {
        char c = format->bytes[at];
        if (c != '{' && c != '}') continue;
        bool twice = at + 1 < format->length && format->bytes[at + 1] == c && nesting == 1;
        fr_put_part(b->render, format, plain, twice ? ++at : at);
        plain = at + 1;
        if (twice) continue;
        size_t end = end_of_field(format, at + 1);
        if (c == '}' || end >= format->length) fr_render_fail(b->render, "format: a brace without its other one");
        if (fr_render_failed(b->render)) break;
        put_field(b, fr_string_part(b->render, format, at + 1, end), nesting);
        at = end;
        plain = at + 1;
    }
    if (!fr_render_failed(b->render)) fr_put_part(b->render, format, plain, format->length);
    return fr_text_end(b->render, begin);
}

const fr_string *fr_format_braces(fr_render *render, const fr_string *format, const fr_list *rest,
                                  const fr_dict *keywords) {
    braces b = {.render = render, .format = format, .positional = rest, .keywords = keywords};
    return fr_string_as_markup(render, format_part(&b, format, 1), format->markup);
}
