/* Formats "%s" % values (template_format.h). Each byte of the result is trusted or foreign. It has this mark from the
 * literal text or from the value from which it was copied. */
#include "src/language/jinja/template_format.h"
#include "src/language/jinja/template_strings.h"
#include "src/language/jinja/template_style.h"

typedef struct percent {
    fr_jinja_render *render;
    const fr_jinja_string *format;
    size_t at;
    fr_jinja_value values;
    size_t used; /* number of values used so far; if `values` is not a tuple, it counts as one value */
} percent;

static fr_jinja_value next_value(percent *p) {
    bool tuple = p->values.kind == FR_KIND_TUPLE;
    size_t count = tuple ? p->values.list->count : 1, number = p->used++;
    if (number >= count) return fr_jinja_render_fail(p->render, "a format with more fields than values");
    return tuple ? p->values.list->items[number] : p->values;
}

/* Gives the value for %(name). */
static fr_jinja_value named_value(percent *p) {
    size_t begin = p->at + 1, depth = 0;
    for (; p->at < p->format->length; p->at++) {
        if (p->format->bytes[p->at] == '(') depth++;
        if (p->format->bytes[p->at] == ')' && --depth == 0) break;
    }
    if (p->at >= p->format->length) return fr_jinja_render_fail(p->render, "a format with a name without an end");
    if (p->values.kind != FR_KIND_DICT) return fr_jinja_render_fail(p->render, "a format with names needs a mapping");
    const fr_jinja_string *name = fr_jinja_string_part(p->render, p->format, begin, p->at++);
    const fr_jinja_entry *entry = fr_jinja_dict_find_string(p->render, p->values.dict, name);
    return entry ? entry->value : fr_jinja_render_fail(p->render, "a format with a name that the mapping lacks");
}

static int64_t read_width(percent *p) {
    if (p->at >= p->format->length || p->format->bytes[p->at] != '*')
        return fr_jinja_read_count(p->format->bytes, p->format->length, &p->at);
    p->at++;
    fr_jinja_value value = next_value(p);
    if (!fr_jinja_is_whole(value)) fr_jinja_render_fail(p->render, "the value for * in a format is not an integer");
    return fr_jinja_is_whole(value) ? fr_jinja_int_of(value) : -1;
}

static void read_flags(percent *p, fr_jinja_style *s) {
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

static fr_jinja_style read_style(percent *p) {
    fr_jinja_style s = {.fill = " ", .fill_length = 1, .align = '>', .precision = -1};
    s.foreign = fr_jinja_string_foreign_at(p->format, p->at - 1);
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
    if (!s.type) fr_jinja_render_fail(p->render, "a format that ends early");
    return s;
}

static void put_percent_text(percent *p, fr_jinja_style *s, fr_jinja_value value) {
    size_t begin = fr_jinja_text_begin(p->render);
    if (s->type == 'r')
        fr_jinja_put_repr(p->render, value);
    else if (p->format->markup && !(value.kind == FR_KIND_STRING && value.string->markup))
        fr_jinja_put_escaped(p->render, fr_jinja_str(p->render, value));
    else
        fr_jinja_put_str(p->render, value);
    const fr_jinja_string *text = fr_jinja_text_end(p->render, begin);
    if (s->align == '=') s->align = '>';
    fr_jinja_put_styled_string(p->render, s, text);
}

static void put_percent_character(percent *p, fr_jinja_style *s, fr_jinja_value value) {
    char bytes[4];
    const fr_jinja_string *text = value.kind == FR_KIND_STRING ? value.string : NULL;
    bool character = fr_jinja_is_whole(value) && fr_jinja_int_of(value) >= 0 && fr_jinja_int_of(value) <= 0x10FFFF;
    if (character)
        text = fr_jinja_string_new(p->render, bytes, fr_jinja_encode((int32_t)fr_jinja_int_of(value), bytes),
                                   value.foreign);
    if (!text || fr_jinja_length(p->render, fr_jinja_of_string(text)) != 1)
        fr_jinja_render_fail(p->render, "%%c needs one character");
    else
        fr_jinja_put_styled_string(p->render, s, text);
}

static void put_percent_int(percent *p, fr_jinja_style *s, fr_jinja_value value) {
    bool real = value.kind == FR_KIND_FLOAT && strchr("diu", s->type) && value.real > -0x1p63 && value.real < 0x1p63;
    if (s->align == '=') s->fill[0] = '0';
    if (value.kind == FR_KIND_WIDE)
        fr_put_styled_wide(p->render, s, value);
    else if (fr_jinja_is_whole(value) || real)
        fr_jinja_put_styled_int(p->render, s, real ? (int64_t)value.real : fr_jinja_int_of(value), value.foreign);
    else
        fr_jinja_render_fail(p->render, "%%%c can't format a '%s'", s->type, fr_jinja_kind_name(value.kind));
}

static void put_percent_real(percent *p, fr_jinja_style *s, fr_jinja_value value) {
    if (s->align == '=') s->fill[0] = '0';
    if (fr_jinja_is_numeric(value))
        fr_jinja_put_styled_real(p->render, s, fr_jinja_real_of(value), value.foreign);
    else
        fr_jinja_render_fail(p->render, "%%%c can't format a '%s'", s->type, fr_jinja_kind_name(value.kind));
}

/* Writes the next value in the way that the directive after a % demands. */
static void put_percent_place(percent *p) {
    bool named = p->at < p->format->length && p->format->bytes[p->at] == '(';
    fr_jinja_value value = named ? named_value(p) : fr_jinja_missing();
    fr_jinja_style s = read_style(p);
    fr_jinja_check_precision(p->render, &s);
    if (fr_jinja_render_failed(p->render)) return;
    if (s.type == '%') {
        fr_jinja_put(p->render, "%", 1, s.foreign);
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
        fr_jinja_render_fail(p->render, "a format has no type '%c'", s.type);
}

const fr_jinja_string *fr_jinja_format_percent(fr_jinja_render *render, const fr_jinja_string *format,
                                               fr_jinja_value values) {
    percent p = {.render = render, .format = format, .values = values};
    size_t begin = fr_jinja_text_begin(render);
    while (p.at < format->length && !fr_jinja_render_failed(render)) {
        size_t place = fr_jinja_find(format->bytes + p.at, format->length - p.at, "%", 1);
        size_t end = place == SIZE_MAX ? format->length : p.at + place;
        fr_jinja_put_part(render, format, p.at, end);
        p.at = end + 1;
        if (place != SIZE_MAX) put_percent_place(&p);
    }
    bool counted = values.kind <= FR_KIND_STRING && values.kind != FR_KIND_UNDEFINED;
    size_t count = values.kind == FR_KIND_TUPLE ? values.list->count : 1;
    if ((counted || values.kind == FR_KIND_TUPLE) && p.used < count)
        fr_jinja_render_fail(render, "a format with fewer fields than values");
    return fr_jinja_string_as_markup(render, fr_jinja_text_end(render, begin), format->markup);
}
