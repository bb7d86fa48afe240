/* Gives attributes, items and slices of values, in the way of Jinja's sandbox.
 *
 * object.name looks for an attribute first, such as a method, and then for an item of that name. object[name] looks for
 * the item first. If neither exists the result is undefined. */
#include "src/language/jinja/template_render.h"
#include "src/language/jinja/template_text.h"

static fr_jinja_value lacking(fr_jinja_reason reason, fr_jinja_value object, const fr_jinja_string *name) {
    fr_jinja_value undefined = fr_jinja_undefined(reason, name);
    undefined.of = object.kind;
    return undefined;
}

/* ------------------------------------------------------------------------------------------------------- attributes */

static fr_jinja_value bound_method(fr_jinja_render *render, fr_jinja_value object, const fr_jinja_function *function,
                                   const fr_jinja_string *name) {
    if (!function->body) return lacking(FR_REASON_UNSAFE, object, name);
    fr_jinja_method *method = fr_jinja_render_take(render, 1, sizeof *method);
    if (!method) return fr_jinja_none();
    *method = (fr_jinja_method){object, function};
    return (fr_jinja_value){.kind = FR_KIND_METHOD, .method = method};
}

static fr_jinja_value of_namespace(fr_jinja_render *render, fr_jinja_value object, const fr_jinja_string *name) {
    const fr_jinja_entry *entry = fr_jinja_dict_find_string(render, object.dict, name);
    return entry ? entry->value : fr_jinja_missing();
}

static fr_jinja_value of_range(const fr_jinja_range *range, bool foreign, const fr_jinja_string *name) {
    if (fr_jinja_string_is(name, "start")) return fr_jinja_of_int(range->start, foreign);
    if (fr_jinja_string_is(name, "stop")) return fr_jinja_of_int(range->stop, foreign);
    if (fr_jinja_string_is(name, "step")) return fr_jinja_of_int(range->step, foreign);
    return fr_jinja_missing();
}

static fr_jinja_value of_group(const fr_jinja_list *group, const fr_jinja_string *name) {
    if (fr_jinja_string_is(name, "grouper")) return group->items[0];
    if (fr_jinja_string_is(name, "list")) return group->items[1];
    return fr_jinja_missing();
}

/* Gives an attribute that is not a method. MISSING: the object has no such attribute. */
static fr_jinja_value plain_attribute(fr_jinja_render *render, fr_jinja_value object, const fr_jinja_string *name) {
    switch (object.kind) {
    case FR_KIND_NAMESPACE: return of_namespace(render, object, name);
    case FR_KIND_LOOP: return fr_jinja_loop_attribute(render, object.loop, name);
    case FR_KIND_RANGE: return of_range(object.range, object.foreign, name);
    case FR_KIND_TUPLE:
        return object.list->group && object.list->count == 2 ? of_group(object.list, name) : fr_jinja_missing();
    case FR_KIND_MACRO:
        return fr_jinja_string_is(name, "name") ? fr_jinja_of_string(object.macro->routine->name) : fr_jinja_missing();
    case FR_KIND_CYCLER:
        if (!fr_jinja_string_is(name, "current")) return fr_jinja_missing();
        return object.cycler->items->items[object.cycler->position];
    default: return fr_jinja_missing();
    }
}

static fr_jinja_value attribute_alone(fr_jinja_render *render, fr_jinja_value object, const fr_jinja_string *name) {
    const fr_jinja_function *method = fr_jinja_function_find(fr_template_methods(object.kind), name);
    return method ? bound_method(render, object, method, name) : plain_attribute(render, object, name);
}

fr_jinja_value fr_jinja_get_attribute(fr_jinja_render *render, fr_jinja_value object, const fr_jinja_string *name) {
    if (object.kind == FR_KIND_UNDEFINED) return fr_jinja_render_fail_undefined(render, object);
    fr_jinja_value value = attribute_alone(render, object, name);
    if (fr_jinja_is_given(value)) return value;
    const fr_jinja_entry *entry =
        object.kind == FR_KIND_DICT ? fr_jinja_dict_find_string(render, object.dict, name) : NULL;
    return entry ? entry->value : lacking(FR_REASON_ATTRIBUTE, object, name);
}

/* ------------------------------------------------------------------------------------------------------------ items */

/* Gives the index of an item. A negative index counts from the end. SIZE_MAX: the index is out of range. */
static size_t index_in(int64_t index, size_t count) {
    if (index < 0) index += (int64_t)count;
    return index >= 0 && (size_t)index < count ? (size_t)index : SIZE_MAX;
}

/* Gives the byte offset of a character. */
static size_t offset_of(fr_jinja_render *render, const fr_jinja_string *string, size_t character) {
    if (string->ascii) return character;
    if (!fr_jinja_render_step(render, string->length)) return 0;
    return fr_jinja_character_offset(string->bytes, string->length, character);
}

static fr_jinja_value character_at(fr_jinja_render *render, const fr_jinja_string *string, int64_t index) {
    size_t count = fr_jinja_length(render, fr_jinja_of_string(string)), number = index_in(index, count);
    if (number == SIZE_MAX) return fr_jinja_missing();
    size_t begin = offset_of(render, string, number);
    int32_t codepoint;
    if (begin >= string->length) return fr_jinja_missing(); /* happens only if the render has already failed */
    size_t length = fr_jinja_decode(string->bytes + begin, string->length - begin, &codepoint);
    return fr_jinja_of_string(fr_jinja_string_part(render, string, begin, begin + length));
}

static fr_jinja_value item_at(fr_jinja_render *render, fr_jinja_value object, int64_t index) {
    size_t number = fr_jinja_has_length(object) ? index_in(index, fr_jinja_length(render, object)) : SIZE_MAX;
    switch (object.kind) {
    case FR_KIND_STRING: return character_at(render, object.string, index);
    case FR_KIND_LIST:
    case FR_KIND_TUPLE: return number == SIZE_MAX ? fr_jinja_missing() : object.list->items[number];
    case FR_KIND_RANGE:
        if (number == SIZE_MAX) return fr_jinja_missing();
        return fr_jinja_of_int(object.range->start + (int64_t)number * object.range->step, object.foreign);
    default: return fr_jinja_missing();
    }
}

fr_jinja_value fr_jinja_get_item(fr_jinja_render *render, fr_jinja_value object, fr_jinja_value index) {
    if (object.kind == FR_KIND_UNDEFINED) return fr_jinja_render_fail_undefined(render, object);
    fr_jinja_value value = fr_jinja_missing();
    if (object.kind == FR_KIND_DICT) {
        const fr_jinja_entry *entry = fr_jinja_dict_find(render, object.dict, index);
        if (entry) return entry->value;
    } else if (index.kind == FR_KIND_INT || index.kind == FR_KIND_BOOL) {
        value = item_at(render, object, fr_jinja_int_of(index));
    }
    if (index.kind == FR_KIND_STRING) value = attribute_alone(render, object, index.string);
    if (fr_jinja_is_given(value)) return value;
    bool named = index.kind == FR_KIND_STRING;
    return named ? lacking(FR_REASON_ATTRIBUTE, object, index.string) : lacking(FR_REASON_ELEMENT, object, NULL);
}

/* ----------------------------------------------------------------------------------------------------------- slices */

/* A slice of a sequence. It has `taken` items. The first one is at index `start`, and each further one is `step` after
 * the one before. */
typedef struct slice {
    int64_t start, step;
    size_t taken;
} slice;

/* Reads a bound as Python does. A negative bound counts from the end. A bound that is out of range becomes `low` or
 * `high`, whichever is nearer. `missing` replaces a bound that is not given. */
static int64_t bound(fr_jinja_render *render, fr_jinja_value value, int64_t missing, int64_t low, int64_t high,
                     size_t count) {
    if (!fr_jinja_is_given(value) || value.kind == FR_KIND_NONE) return missing;
    if (value.kind != FR_KIND_INT && value.kind != FR_KIND_BOOL) {
        fr_jinja_render_fail(render, "the bounds of a slice must be integers, not '%s'",
                             fr_jinja_kind_name(value.kind));
        return missing;
    }
    int64_t at = fr_jinja_int_of(value);
    if (at < 0) at += (int64_t)count;
    return at < low ? low : at > high ? high : at;
}

static slice slice_of(fr_jinja_render *render, size_t count, fr_jinja_value start, fr_jinja_value stop,
                      fr_jinja_value step) {
    slice s = {.step = bound(render, step, 1, -INT64_MAX, INT64_MAX, 0)};
    int64_t length = (int64_t)count, low = s.step < 0 ? -1 : 0, high = s.step < 0 ? length - 1 : length;
    if (s.step == 0) fr_jinja_render_fail(render, "the step of a slice is 0");
    if (fr_jinja_render_failed(render)) return s;
    s.start = bound(render, start, s.step < 0 ? high : low, low, high, count);
    int64_t end = bound(render, stop, s.step < 0 ? low : high, low, high, count);
    uint64_t distance =
        s.step < 0 ? (uint64_t)(s.start > end ? s.start - end : 0) : (uint64_t)(end > s.start ? end - s.start : 0);
    uint64_t stride = s.step < 0 ? (uint64_t)-s.step : (uint64_t)s.step;
    s.taken = distance == 0 ? 0 : (size_t)((distance - 1) / stride + 1);
    return s;
}

static fr_jinja_value slice_list(fr_jinja_render *render, fr_jinja_value object, const slice *s) {
    fr_jinja_list *list = fr_jinja_list_new(render, s->taken);
    for (size_t i = 0; i < s->taken && fr_jinja_render_step(render, 0); i++)
        fr_jinja_list_append(render, list, object.list->items[s->start + (int64_t)i * s->step]);
    object.list = list;
    return object;
}

/* Lists the byte offsets of all characters. */
static const size_t *offsets_of(fr_jinja_render *render, const fr_jinja_string *string, size_t count) {
    size_t *offsets =
        fr_jinja_render_step(render, string->length) ? fr_jinja_render_take(render, count + 1, sizeof *offsets) : NULL;
    if (!offsets) return NULL;
    int32_t codepoint;
    for (size_t i = 0; i < count; i++)
        offsets[i + 1] =
            offsets[i] + fr_jinja_decode(string->bytes + offsets[i], string->length - offsets[i], &codepoint);
    return offsets;
}

static const fr_jinja_string *pick_characters(fr_jinja_render *render, const fr_jinja_string *string, size_t count,
                                              const slice *s) {
    const size_t *offsets = offsets_of(render, string, count);
    size_t begin = fr_jinja_text_begin(render);
    for (size_t i = 0; offsets && i < s->taken && fr_jinja_render_step(render, 0); i++) {
        size_t at = (size_t)(s->start + (int64_t)i * s->step);
        fr_jinja_put_part(render, string, offsets[at], offsets[at + 1]);
    }
    return fr_jinja_text_end(render, begin);
}

static fr_jinja_value slice_string(fr_jinja_render *render, const fr_jinja_string *string, size_t count,
                                   const slice *s) {
    const fr_jinja_string *part;
    if (s->step == 1) {
        size_t begin = offset_of(render, string, (size_t)s->start);
        size_t end = offset_of(render, string, (size_t)s->start + s->taken);
        part = fr_jinja_string_part(render, string, begin, end < begin ? begin : end);
    } else {
        part = pick_characters(render, string, count, s);
    }
    return fr_jinja_of_string(fr_jinja_string_as_markup(render, part, string->markup));
}

static fr_jinja_value slice_range(fr_jinja_render *render, fr_jinja_value object, const slice *s) {
    fr_jinja_range *range = fr_jinja_render_take(render, 1, sizeof *range);
    if (!range) return fr_jinja_none();
    const fr_jinja_range *from = object.range;
    *range = (fr_jinja_range){.start = from->start, .stop = from->start, .step = 1, .count = s->taken};
    if (s->taken > 0) {
        bool fits = !__builtin_mul_overflow(from->step, s->step, &range->step);
        range->start += s->start * from->step;
        fits = fits && !__builtin_mul_overflow((int64_t)s->taken, range->step, &range->stop) &&
               !__builtin_add_overflow(range->start, range->stop, &range->stop);
        if (!fits) return fr_jinja_render_fail(render, "a range beyond 64 bits");
    }
    object.range = range;
    return object;
}

fr_jinja_value fr_jinja_get_slice(fr_jinja_render *render, fr_jinja_value object, fr_jinja_value start,
                                  fr_jinja_value stop, fr_jinja_value step) {
    if (object.kind == FR_KIND_UNDEFINED) return fr_jinja_render_fail_undefined(render, object);
    bool list = object.kind == FR_KIND_LIST || object.kind == FR_KIND_TUPLE;
    if (!list && object.kind != FR_KIND_STRING && object.kind != FR_KIND_RANGE)
        return fr_jinja_render_fail(render, "a '%s' can't be sliced", fr_jinja_kind_name(object.kind));
    size_t count = fr_jinja_length(render, object);
    slice s = slice_of(render, count, start, stop, step);
    if (fr_jinja_render_failed(render)) return fr_jinja_none();
    if (object.kind == FR_KIND_STRING) return slice_string(render, object.string, count, &s);
    return list ? slice_list(render, object, &s) : slice_range(render, object, &s);
}
