/* Implements the functions of the environment, which templates can call by name. */
#include <time.h>

#include "src/language/jinja/template_filters.h"

/* Makes the dict for the calls dict(), dict(mapping) and dict(pairs). Each of them may also have arguments by name. */
static fr_jinja_dict *dict_of(fr_jinja_render *render, const fr_jinja_value *arguments, const char *what) {
    const fr_jinja_list *rest = arguments[0].list;
    fr_jinja_value source = rest->count > 0 ? rest->items[0] : fr_jinja_of_list(fr_jinja_list_new(render, 0), false);
    fr_jinja_dict *dict = fr_jinja_dict_new(render, 0);
    if (rest->count > 1) fr_jinja_render_fail(render, "%s: more than one argument", what);
    if (source.kind == FR_KIND_DICT) {
        for (size_t i = 0; i < source.dict->count && fr_jinja_render_step(render, 0); i++)
            fr_jinja_dict_set(render, dict, source.dict->entries[i].key, source.dict->entries[i].value);
    } else {
        fr_jinja_cursor cursor = fr_jinja_cursor_new(render, source);
        for (fr_jinja_value item; fr_jinja_cursor_next(render, &cursor, &item);) {
            const fr_jinja_list *pair = fr_jinja_list_of(render, item);
            if (pair->count != 2) fr_jinja_render_fail(render, "%s: the items are not pairs", what);
            if (!fr_jinja_render_failed(render)) fr_jinja_dict_set(render, dict, pair->items[0], pair->items[1]);
        }
    }
    for (size_t i = 0; i < arguments[1].dict->count && fr_jinja_render_step(render, 0); i++)
        fr_jinja_dict_set(render, dict, arguments[1].dict->entries[i].key, arguments[1].dict->entries[i].value);
    return dict;
}

static fr_jinja_value call_dict(fr_jinja_render *render, const fr_jinja_value *arguments) {
    bool foreign = arguments[0].list->count > 0 && fr_jinja_value_foreign(arguments[0].list->items[0]);
    return fr_jinja_of_dict(dict_of(render, arguments, "dict"), foreign);
}

static fr_jinja_value call_namespace(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return (fr_jinja_value){.kind = FR_KIND_NAMESPACE, .dict = dict_of(render, arguments, "namespace")};
}

/* Counts the numbers in range(start, stop, step). */
static uint64_t range_count(int64_t start, int64_t stop, int64_t step) {
    if (step > 0 ? start >= stop : start <= stop) return 0;
    uint64_t distance = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    return (distance - 1) / (step > 0 ? (uint64_t)step : -(uint64_t)step) + 1;
}

static fr_jinja_value call_range(fr_jinja_render *render, const fr_jinja_value *arguments) {
    fr_jinja_range *range = fr_jinja_render_take(render, 1, sizeof *range);
    bool one = !fr_jinja_is_given(arguments[1]), foreign = false;
    if (!range) return fr_jinja_none();
    range->start = one ? 0 : fr_jinja_argument_int(render, arguments[0], 0, "range: the start");
    range->stop = fr_jinja_argument_int(render, arguments[one ? 0 : 1], 0, "range: the end");
    range->step = fr_jinja_argument_int(render, arguments[2], 1, "range: the step");
    if (range->step == 0) return fr_jinja_render_fail(render, "range: the step is 0");
    uint64_t count = range_count(range->start, range->stop, range->step);
    if (count > FR_RENDER_RANGE_MAX)
        return fr_jinja_render_fail(render, "range: more than %d numbers", FR_RENDER_RANGE_MAX);
    for (int i = 0; i < 3; i++) foreign = foreign || arguments[i].foreign;
    range->count = (size_t)count;
    return (fr_jinja_value){.kind = FR_KIND_RANGE, .foreign = foreign, .range = range};
}

static fr_jinja_value call_cycler(fr_jinja_render *render, const fr_jinja_value *arguments) {
    fr_jinja_cycler *cycler = fr_jinja_render_take(render, 1, sizeof *cycler);
    if (!cycler) return fr_jinja_none();
    if (arguments[0].list->count == 0) return fr_jinja_render_fail(render, "cycler: no items are given");
    cycler->items = arguments[0].list;
    return (fr_jinja_value){.kind = FR_KIND_CYCLER, .cycler = cycler};
}

static fr_jinja_value call_joiner(fr_jinja_render *render, const fr_jinja_value *arguments) {
    static const fr_jinja_string comma = {.bytes = ", ", .length = 2, .ascii = true};
    fr_jinja_joiner *joiner = fr_jinja_render_take(render, 1, sizeof *joiner);
    if (!joiner) return fr_jinja_none();
    joiner->separator = fr_jinja_is_given(arguments[0]) ? arguments[0] : fr_jinja_of_string(&comma);
    return (fr_jinja_value){.kind = FR_KIND_JOINER, .joiner = joiner};
}

static fr_jinja_value call_raise_exception(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_string *message = fr_jinja_str(render, arguments[0]);
    int length = message->length < 400 ? (int)message->length : 400;
    return fr_jinja_render_fail(render, "%.*s", length, message->bytes);
}

#define DIRECTIVE_MAX 16 /* limit on the bytes of a directive */

/* Measures the directive that begins here. It consists of %, flags, a width, a modifier and a letter. %:z is a
 * directive, too. */
static size_t directive_length(const char *bytes, size_t left) {
    size_t length = 1;
    if (left > 2 && bytes[1] == ':' && bytes[2] == 'z') return 3;
    while (length < left && bytes[length] && strchr("-_0^#+", bytes[length])) length++;
    while (length < left && bytes[length] >= '0' && bytes[length] <= '9') length++;
    length += length < left && (bytes[length] == 'E' || bytes[length] == 'O');
    length += length < left && bytes[length];
    return length;
}

/* Writes a directive as Python's datetime does. %f (microseconds) is always zero, because `now` counts seconds. %:z
 * (the time zone) is empty, as for datetime.now(). */
static void put_directive(fr_jinja_render *render, const struct tm *time, const char *directive, size_t length,
                          bool foreign) {
    char format[DIRECTIVE_MAX + 1] = {0}, text[1024];
    if (!fr_jinja_render_step(render, sizeof text) || directive[1] == ':') return;
    if (length == 2 && directive[1] == 'f') {
        fr_jinja_put_text(render, "000000", foreign);
        return;
    }
    memcpy(format, directive, length);
    size_t written = strftime(text, sizeof text, format, time);
    fr_jinja_put(render, text, written, foreign);
}

/* Gives the time of datetime.now(): local time without a time zone. */
static bool naive_time(int64_t now, struct tm *time) {
    time_t seconds = (time_t)now;
    if (!localtime_r(&seconds, time)) return false;
    time->tm_isdst = -1;
    time->tm_zone = "";
    return true;
}

static fr_jinja_value call_strftime_now(fr_jinja_render *render, const fr_jinja_value *arguments) {
    if (arguments[0].kind != FR_KIND_STRING)
        return fr_jinja_render_fail(render, "strftime_now: the format is not a string");
    const fr_jinja_string *format = arguments[0].string;
    struct tm time;
    if (!naive_time(render->now, &time)) return fr_jinja_render_fail(render, "strftime_now: the time has no date");
    size_t begin = fr_jinja_text_begin(render);
    for (size_t at = 0, length; at < format->length && !fr_jinja_render_failed(render); at += length) {
        const char *bytes = format->bytes + at;
        bool foreign = fr_jinja_string_foreign_at(format, at);
        length = *bytes == '%' ? directive_length(bytes, format->length - at) : 1;
        if (length > 1 && length <= DIRECTIVE_MAX)
            put_directive(render, &time, bytes, length, foreign);
        else
            fr_jinja_put(render, bytes, length, foreign);
    }
    return fr_jinja_of_string(fr_jinja_text_end(render, begin));
}

/* The names are in ascending order, because a binary search finds them. */
static const fr_jinja_function rows[] = {
    {"cycler", call_cycler, 0, true, {0}},
    {"dict", call_dict, 0, true, {0}},
    {"joiner", call_joiner, 0, false, {"sep"}},
    {"namespace", call_namespace, 0, true, {0}},
    {"raise_exception", call_raise_exception, 1, false, {"message"}},
    {"range", call_range, 1, false, {"start", "stop", "step"}},
    {"strftime_now", call_strftime_now, 1, false, {"format"}},
};

const fr_jinja_function_table fr_template_functions = {rows, sizeof rows / sizeof *rows};
