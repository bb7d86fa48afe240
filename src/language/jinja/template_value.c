/* Implements Python's rules for values: truth, equality, order, length, and iteration. */
#include <math.h>

#include "src/language/jinja/template_render.h"
#include "src/language/jinja/template_text.h"
#include "src/language/jinja/template_wide.h"

const char *fr_jinja_kind_name(uint8_t kind) {
    static const char *const names[FR_KIND_COUNT] = {
        [FR_KIND_MISSING] = "missing",
        [FR_KIND_UNDEFINED] = "Undefined",
        [FR_KIND_NONE] = "NoneType",
        [FR_KIND_BOOL] = "bool",
        [FR_KIND_INT] = "int",
        [FR_KIND_WIDE] = "int",
        [FR_KIND_FLOAT] = "float",
        [FR_KIND_STRING] = "str",
        [FR_KIND_LIST] = "list",
        [FR_KIND_TUPLE] = "tuple",
        [FR_KIND_DICT] = "dict",
        [FR_KIND_RANGE] = "range",
        [FR_KIND_VIEW] = "dict view",
        [FR_KIND_ITERATOR] = "generator",
        [FR_KIND_NAMESPACE] = "Namespace",
        [FR_KIND_LOOP] = "LoopContext",
        [FR_KIND_MACRO] = "Macro",
        [FR_KIND_METHOD] = "method",
        [FR_KIND_FUNCTION] = "function",
        [FR_KIND_CYCLER] = "Cycler",
        [FR_KIND_JOINER] = "Joiner",
    };
    return kind < FR_KIND_COUNT ? names[kind] : "unknown";
}

/* Returns true if an undefined value has a string, which is then the name of the missing value. */
static bool has_name(uint8_t reason) {
    return reason == FR_REASON_NAME || reason == FR_REASON_ATTRIBUTE || reason == FR_REASON_PARAMETER ||
           reason == FR_REASON_UNSAFE;
}

fr_jinja_value fr_jinja_render_fail_undefined(fr_jinja_render *render, fr_jinja_value value) {
    static const fr_jinja_string nothing;
    const fr_jinja_string *name = has_name(value.reason) ? value.string : &nothing;
    int length = name->length < 100 ? (int)name->length : 100;
    switch (value.reason) {
    case FR_REASON_NAME: return fr_jinja_render_fail(render, "'%.*s' is undefined", length, name->bytes);
    case FR_REASON_ATTRIBUTE:
        return fr_jinja_render_fail(render, "'%s' object has no attribute '%.*s'", fr_jinja_kind_name(value.of), length,
                                    name->bytes);
    case FR_REASON_ELEMENT:
        return fr_jinja_render_fail(render, "'%s' object has no such element", fr_jinja_kind_name(value.of));
    case FR_REASON_PARAMETER:
        return fr_jinja_render_fail(render, "parameter '%.*s' was not provided", length, name->bytes);
    case FR_REASON_CONDITION:
        return fr_jinja_render_fail(render, "the inline if-expression of line %lld was false and has no else",
                                    (long long)value.integer);
    case FR_REASON_CALLER: return fr_jinja_render_fail(render, "no caller defined");
    case FR_REASON_UNSAFE:
        return fr_jinja_render_fail(render, "'%.*s' of '%s' would change it, which templates may not", length,
                                    name->bytes, fr_jinja_kind_name(value.of));
    default: return fr_jinja_render_fail(render, "there is no such item");
    }
}

/* ------------------------------------------------------------------------------------------------------------ truth */

bool fr_jinja_truth(fr_jinja_render *render, fr_jinja_value value) {
    switch (value.kind) {
    case FR_KIND_MISSING:
    case FR_KIND_UNDEFINED:
    case FR_KIND_NONE: return false;
    case FR_KIND_BOOL: return value.truth;
    case FR_KIND_INT: return value.integer != 0;
    case FR_KIND_FLOAT: return value.real != 0;
    case FR_KIND_STRING: return value.string->length > 0;
    default: return !fr_jinja_has_length(value) || fr_jinja_length(render, value) > 0;
    }
}

bool fr_jinja_has_length(fr_jinja_value value) {
    switch (value.kind) {
    case FR_KIND_UNDEFINED:
    case FR_KIND_STRING:
    case FR_KIND_LIST:
    case FR_KIND_TUPLE:
    case FR_KIND_DICT:
    case FR_KIND_RANGE:
    case FR_KIND_VIEW:
    case FR_KIND_LOOP: return true;
    default: return false;
    }
}

static size_t string_length(fr_jinja_render *render, const fr_jinja_string *string) {
    if (string->ascii) return string->length;
    return fr_jinja_render_step(render, 2 * string->length) ? fr_jinja_count_characters(string->bytes, string->length)
                                                            : 0;
}

size_t fr_jinja_length(fr_jinja_render *render, fr_jinja_value value) {
    static const fr_jinja_string length = {.bytes = "length", .length = 6, .ascii = true};
    switch (value.kind) {
    case FR_KIND_UNDEFINED: return 0;
    case FR_KIND_STRING: return string_length(render, value.string);
    case FR_KIND_LIST:
    case FR_KIND_TUPLE: return value.list->count;
    case FR_KIND_DICT: return value.dict->count;
    case FR_KIND_RANGE: return value.range->count;
    case FR_KIND_VIEW: return value.view->dict->count;
    case FR_KIND_LOOP: return (size_t)fr_jinja_loop_attribute(render, value.loop, &length).integer;
    default: fr_jinja_render_fail(render, "object of type '%s' has no len()", fr_jinja_kind_name(value.kind)); return 0;
    }
}

/* --------------------------------------------------------------------------------------------------------- equality */

enum { BELOW = -1, SAME = 0, ABOVE = 1, UNORDERED = FR_UNORDERED };

static int order_reals(double a, double b) {
    return a < b ? BELOW : a > b ? ABOVE : a == b ? SAME : UNORDERED;
}

/* Compares exactly, even if the integer has more digits than a double can hold. */
static int order_int_and_real(int64_t a, double b) {
    if (isnan(b)) return UNORDERED;
    if (b >= 0x1p63) return BELOW;
    if (b < -0x1p63) return ABOVE;
    double whole = floor(b);
    int64_t integer = (int64_t)whole;
    if (a != integer) return a < integer ? BELOW : ABOVE;
    return b > whole ? BELOW : SAME;
}

static int order_numbers(fr_jinja_value a, fr_jinja_value b) {
    if (a.kind == FR_KIND_WIDE) return fr_wide_order(a, b);
    if (b.kind == FR_KIND_WIDE) {
        int order = fr_wide_order(b, a);
        return order == UNORDERED ? order : -order;
    }
    if (a.kind == FR_KIND_FLOAT && b.kind == FR_KIND_FLOAT) return order_reals(a.real, b.real);
    if (b.kind == FR_KIND_FLOAT) return order_int_and_real(fr_jinja_int_of(a), b.real);
    if (a.kind == FR_KIND_FLOAT) {
        int order = order_int_and_real(fr_jinja_int_of(b), a.real);
        return order == UNORDERED ? order : -order;
    }
    int64_t left = fr_jinja_int_of(a), right = fr_jinja_int_of(b);
    return left < right ? BELOW : left > right;
}

static bool lists_equal(fr_jinja_render *render, const fr_jinja_list *a, const fr_jinja_list *b) {
    bool equal = a->count == b->count;
    for (size_t i = 0; i < a->count && equal; i++) equal = fr_jinja_equal(render, a->items[i], b->items[i]);
    return equal;
}

static bool dicts_equal(fr_jinja_render *render, const fr_jinja_dict *a, const fr_jinja_dict *b) {
    bool equal = a->count == b->count;
    for (size_t i = 0; i < a->count && equal; i++) {
        const fr_jinja_entry *entry = fr_jinja_dict_find(render, b, a->entries[i].key);
        equal = entry && fr_jinja_equal(render, a->entries[i].value, entry->value);
    }
    return equal;
}

static bool ranges_equal(const fr_jinja_range *a, const fr_jinja_range *b) {
    return a->count == b->count && (a->count == 0 || a->start == b->start) && (a->count < 2 || a->step == b->step);
}

static bool containers_equal(fr_jinja_render *render, fr_jinja_value a, fr_jinja_value b) {
    switch (a.kind) {
    case FR_KIND_LIST:
    case FR_KIND_TUPLE: return lists_equal(render, a.list, b.list);
    case FR_KIND_DICT: return dicts_equal(render, a.dict, b.dict);
    case FR_KIND_RANGE: return ranges_equal(a.range, b.range);
    case FR_KIND_METHOD:
        return a.method->function == b.method->function && a.method->object.dict == b.method->object.dict;
    default: return a.dict == b.dict; /* any other value is equal only to itself */
    }
}

bool fr_jinja_equal(fr_jinja_render *render, fr_jinja_value a, fr_jinja_value b) {
    if (fr_is_number(a) && fr_is_number(b)) return order_numbers(a, b) == SAME;
    if (a.kind != b.kind) return false;
    if (a.kind <= FR_KIND_NONE) return true;
    if (a.kind == FR_KIND_STRING) {
        bool same_length = a.string->length == b.string->length;
        return same_length && fr_jinja_render_step(render, a.string->length) &&
               fr_jinja_string_equal(a.string, b.string);
    }
    if (!fr_jinja_render_step(render, 0) || !fr_jinja_render_enter(render)) return false;
    bool equal = containers_equal(render, a, b);
    fr_jinja_render_leave(render);
    return equal;
}

/* ------------------------------------------------------------------------------------------------------------ order */

/* Orders strings by their code points. In UTF-8 that is the order of their bytes. */
static int order_strings(fr_jinja_render *render, const fr_jinja_string *a, const fr_jinja_string *b) {
    size_t shorter = a->length < b->length ? a->length : b->length;
    if (!fr_jinja_render_step(render, shorter)) return SAME;
    int order = shorter > 0 ? memcmp(a->bytes, b->bytes, shorter) : 0;
    if (order != 0) return order < 0 ? BELOW : ABOVE;
    return a->length < b->length ? BELOW : a->length > b->length;
}

static int order_lists(fr_jinja_render *render, const fr_jinja_list *a, const fr_jinja_list *b) {
    int order = a->count < b->count ? BELOW : a->count > b->count;
    if (!fr_jinja_render_enter(render)) return order;
    for (size_t i = 0; i < a->count && i < b->count && fr_jinja_render_step(render, 0); i++) {
        if (fr_jinja_equal(render, a->items[i], b->items[i])) continue;
        order = fr_jinja_compare(render, a->items[i], b->items[i]);
        break;
    }
    fr_jinja_render_leave(render);
    return order;
}

int fr_jinja_compare(fr_jinja_render *render, fr_jinja_value a, fr_jinja_value b) {
    if (fr_is_number(a) && fr_is_number(b)) return order_numbers(a, b);
    if (a.kind == FR_KIND_STRING && b.kind == FR_KIND_STRING) return order_strings(render, a.string, b.string);
    bool lists = a.kind == b.kind && (a.kind == FR_KIND_LIST || a.kind == FR_KIND_TUPLE);
    if (lists) return order_lists(render, a.list, b.list);
    if (a.kind == FR_KIND_UNDEFINED)
        fr_jinja_render_fail_undefined(render, a);
    else if (b.kind == FR_KIND_UNDEFINED)
        fr_jinja_render_fail_undefined(render, b);
    else
        fr_jinja_render_fail(render, "'%s' and '%s' have no order", fr_jinja_kind_name(a.kind),
                             fr_jinja_kind_name(b.kind));
    return SAME;
}

/* ------------------------------------------------------------------------------------------------------- containing */

static bool string_contains(fr_jinja_render *render, const fr_jinja_string *string, fr_jinja_value value) {
    if (value.kind == FR_KIND_UNDEFINED) fr_jinja_render_fail_undefined(render, value);
    if (value.kind != FR_KIND_STRING)
        fr_jinja_render_fail(render, "'in' of a string asks for a string, not '%s'", fr_jinja_kind_name(value.kind));
    if (!fr_jinja_render_step(render, string->length)) return false;
    return fr_jinja_find(string->bytes, string->length, value.string->bytes, value.string->length) != SIZE_MAX;
}

static bool dict_contains(fr_jinja_render *render, const fr_jinja_dict *dict, fr_jinja_value value) {
    bool hashable = value.kind != FR_KIND_LIST && value.kind != FR_KIND_DICT && value.kind != FR_KIND_VIEW;
    if (!hashable) fr_jinja_render_fail(render, "unhashable type: '%s'", fr_jinja_kind_name(value.kind));
    return fr_jinja_dict_find(render, dict, value) != NULL;
}

bool fr_jinja_contains(fr_jinja_render *render, fr_jinja_value container, fr_jinja_value value) {
    if (container.kind == FR_KIND_STRING) return string_contains(render, container.string, value);
    if (container.kind == FR_KIND_DICT) return dict_contains(render, container.dict, value);
    if (!fr_jinja_is_iterable(container)) {
        fr_jinja_render_fail(render, "'in' of a '%s', which has no items", fr_jinja_kind_name(container.kind));
        return false;
    }
    fr_jinja_cursor cursor = fr_jinja_cursor_new(render, container);
    for (fr_jinja_value item; fr_jinja_cursor_next(render, &cursor, &item);)
        if (fr_jinja_equal(render, item, value)) return true;
    return false;
}

/* ---------------------------------------------------------------------------------------------------------- looping */

bool fr_jinja_is_iterable(fr_jinja_value value) {
    return fr_jinja_has_length(value) || value.kind == FR_KIND_ITERATOR;
}

fr_jinja_cursor fr_jinja_cursor_new(fr_jinja_render *render, fr_jinja_value over) {
    if (!fr_jinja_is_iterable(over))
        fr_jinja_render_fail(render, "'%s' object is not iterable", fr_jinja_kind_name(over.kind));
    return (fr_jinja_cursor){.over = over};
}

static bool next_character(fr_jinja_render *render, fr_jinja_cursor *cursor, fr_jinja_value *value) {
    const fr_jinja_string *string = cursor->over.string;
    if (cursor->at >= string->length) return false;
    int32_t codepoint;
    size_t begin = cursor->at, left = string->length - begin;
    cursor->at += fr_jinja_decode(string->bytes + begin, left, &codepoint);
    *value = fr_jinja_of_string(
        fr_jinja_string_as_markup(render, fr_jinja_string_part(render, string, begin, cursor->at), false));
    return true;
}

static bool next_in_view(fr_jinja_render *render, fr_jinja_cursor *cursor, fr_jinja_value *value) {
    const fr_jinja_view *view = cursor->over.view;
    if (cursor->at >= view->dict->count) return false;
    const fr_jinja_entry *entry = &view->dict->entries[cursor->at++];
    if (view->of == FR_VIEW_ITEMS)
        *value = fr_jinja_tuple_of_two(render, entry->key, entry->value, view->foreign);
    else
        *value = view->of == FR_VIEW_KEYS ? entry->key : entry->value;
    return true;
}

static bool next_of_iterator(fr_jinja_render *render, fr_jinja_iterator *iterator, fr_jinja_value *value) {
    if (!fr_jinja_render_enter(render)) return false;
    bool any = iterator->next(render, iterator, value);
    fr_jinja_render_leave(render);
    return any;
}

bool fr_jinja_cursor_next(fr_jinja_render *render, fr_jinja_cursor *cursor, fr_jinja_value *value) {
    *value = fr_jinja_none();
    if (!fr_jinja_render_step(render, 0)) return false;
    switch (cursor->over.kind) {
    case FR_KIND_STRING: return next_character(render, cursor, value);
    case FR_KIND_LIST:
    case FR_KIND_TUPLE:
        if (cursor->at >= cursor->over.list->count) return false;
        *value = cursor->over.list->items[cursor->at++];
        return true;
    case FR_KIND_DICT:
        if (cursor->at >= cursor->over.dict->count) return false;
        *value = cursor->over.dict->entries[cursor->at++].key;
        return true;
    case FR_KIND_RANGE:
        if (cursor->at >= cursor->over.range->count) return false;
        *value = fr_jinja_of_int(cursor->over.range->start + (int64_t)cursor->at++ * cursor->over.range->step,
                                 cursor->over.foreign);
        return true;
    case FR_KIND_VIEW: return next_in_view(render, cursor, value);
    case FR_KIND_ITERATOR:
        return next_of_iterator(render, cursor->over.iterator, value) && !fr_jinja_render_failed(render);
    default: return false;
    }
}

fr_jinja_value fr_jinja_iterator_new(fr_jinja_render *render,
                                     bool next(fr_jinja_render *, fr_jinja_iterator *, fr_jinja_value *),
                                     fr_jinja_value source, const void *state) {
    fr_jinja_iterator *iterator = fr_jinja_render_take(render, 1, sizeof *iterator);
    if (!iterator) return fr_jinja_none();
    *iterator = (fr_jinja_iterator){.next = next, .source = {.over = source}, .state = state};
    return (fr_jinja_value){.kind = FR_KIND_ITERATOR, .foreign = fr_jinja_value_foreign(source), .iterator = iterator};
}

fr_jinja_list *fr_jinja_list_of(fr_jinja_render *render, fr_jinja_value value) {
    bool sized = value.kind == FR_KIND_LIST || value.kind == FR_KIND_TUPLE || value.kind == FR_KIND_DICT;
    fr_jinja_list *list = fr_jinja_list_new(render, sized ? fr_jinja_length(render, value) : 0);
    fr_jinja_cursor cursor = fr_jinja_cursor_new(render, value);
    for (fr_jinja_value item; fr_jinja_cursor_next(render, &cursor, &item);) fr_jinja_list_append(render, list, item);
    return list;
}
