/* Implements the methods of lists, dicts and objects of the environment. Methods that would change a list or dict have
 * a row without a function, because the sandbox of transformers forbids them. */
#include "src/language/jinja/template_filters.h"
#include "src/language/jinja/template_methods.h"
#include "src/language/jinja/template_render.h"

/* ------------------------------------------------------------------------------------------------------------ lists */

static fr_jinja_value list_count(fr_jinja_render *render, const fr_jinja_value *arguments) {
    size_t count = 0;
    fr_jinja_cursor cursor = fr_jinja_cursor_new(render, arguments[0]);
    for (fr_jinja_value item; fr_jinja_cursor_next(render, &cursor, &item);)
        count += fr_jinja_equal(render, item, arguments[1]);
    return fr_jinja_of_size(count);
}

static int64_t clamp(int64_t at, int64_t count) {
    if (at < 0) at += count;
    return at < 0 ? 0 : at > count ? count : at;
}

static fr_jinja_value list_index(fr_jinja_render *render, const fr_jinja_value *arguments) {
    int64_t count = (int64_t)fr_jinja_length(render, arguments[0]), at = 0;
    int64_t begin = clamp(fr_jinja_argument_int(render, arguments[2], 0, "index: the start"), count);
    int64_t end = clamp(fr_jinja_argument_int(render, arguments[3], count, "index: the end"), count);
    fr_jinja_cursor cursor = fr_jinja_cursor_new(render, arguments[0]);
    for (fr_jinja_value item; fr_jinja_cursor_next(render, &cursor, &item) && at < end; at++)
        if (at >= begin && fr_jinja_equal(render, item, arguments[1])) return fr_jinja_of_int(at, false);
    return fr_jinja_render_fail(render, "index: the value is not in the list");
}

static fr_jinja_value list_copy(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_list(fr_jinja_list_of(render, arguments[0]), arguments[0].foreign);
}

static const fr_jinja_function list_rows[] = {
    {"append", NULL, 1, false, {"self", "object"}},
    {"clear", NULL, 1, false, {"self"}},
    {"copy", list_copy, 1, false, {"self"}},
    {"count", list_count, 2, false, {"self", "value"}},
    {"extend", NULL, 1, false, {"self", "iterable"}},
    {"index", list_index, 2, false, {"self", "value", "start", "stop"}},
    {"insert", NULL, 1, false, {"self", "index", "object"}},
    {"pop", NULL, 1, false, {"self", "index"}},
    {"remove", NULL, 1, false, {"self", "value"}},
    {"reverse", NULL, 1, false, {"self"}},
    {"sort", NULL, 1, false, {"self"}},
};

static const fr_jinja_function tuple_rows[] = {
    {"count", list_count, 2, false, {"self", "value"}},
    {"index", list_index, 2, false, {"self", "value", "start", "stop"}},
};

/* ------------------------------------------------------------------------------------------------------------ dicts */

static fr_jinja_value dict_get(fr_jinja_render *render, const fr_jinja_value *arguments) {
    bool hashable = arguments[1].kind != FR_KIND_LIST && arguments[1].kind != FR_KIND_DICT;
    if (!hashable) return fr_jinja_render_fail(render, "unhashable type: '%s'", fr_jinja_kind_name(arguments[1].kind));
    const fr_jinja_entry *entry = fr_jinja_dict_find(render, arguments[0].dict, arguments[1]);
    if (entry) return entry->value;
    return fr_jinja_is_given(arguments[2]) ? arguments[2] : fr_jinja_none();
}

static fr_jinja_value view_of(fr_jinja_render *render, fr_jinja_value dict, fr_jinja_view_of of) {
    fr_jinja_view *view = fr_jinja_render_take(render, 1, sizeof *view);
    if (!view) return fr_jinja_none();
    *view = (fr_jinja_view){dict.dict, of, dict.foreign};
    return (fr_jinja_value){.kind = FR_KIND_VIEW, .foreign = dict.foreign, .view = view};
}

static fr_jinja_value dict_items(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return view_of(render, arguments[0], FR_VIEW_ITEMS);
}

static fr_jinja_value dict_keys(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return view_of(render, arguments[0], FR_VIEW_KEYS);
}

static fr_jinja_value dict_values(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return view_of(render, arguments[0], FR_VIEW_VALUES);
}

static fr_jinja_value dict_copy(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return arguments[0]; /* no copy is needed, because no template can change a dict */
}

static const fr_jinja_function dict_rows[] = {
    {"clear", NULL, 1, false, {"self"}},
    {"copy", dict_copy, 1, false, {"self"}},
    {"get", dict_get, 2, false, {"self", "key", "default"}},
    {"items", dict_items, 1, false, {"self"}},
    {"keys", dict_keys, 1, false, {"self"}},
    {"pop", NULL, 1, false, {"self", "key"}},
    {"popitem", NULL, 1, false, {"self"}},
    {"setdefault", NULL, 1, false, {"self", "key"}},
    {"update", NULL, 1, false, {"self"}},
    {"values", dict_values, 1, false, {"self"}},
};

/* ----------------------------------------------------------------------------------------------------- loop, cycler */

static fr_jinja_value loop_cycle(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const fr_jinja_list *items = arguments[1].list;
    if (items->count == 0) return fr_jinja_render_fail(render, "cycle: no items are given");
    return items->items[arguments[0].loop->index % items->count];
}

static fr_jinja_value loop_changed(fr_jinja_render *render, const fr_jinja_value *arguments) {
    fr_jinja_loop *loop = arguments[0].loop;
    bool changed = !fr_jinja_is_given(loop->changed) || !fr_jinja_equal(render, loop->changed, arguments[1]);
    if (changed) loop->changed = arguments[1];
    return fr_jinja_of_truth(changed);
}

static const fr_jinja_function loop_rows[] = {
    {"changed", loop_changed, 1, true, {"self"}},
    {"cycle", loop_cycle, 1, true, {"self"}},
};

static fr_jinja_value cycler_next(fr_jinja_render *render, const fr_jinja_value *arguments) {
    struct fr_jinja_cycler *cycler = arguments[0].cycler;
    (void)render;
    fr_jinja_value current = cycler->items->items[cycler->position];
    cycler->position = (cycler->position + 1) % cycler->items->count;
    return current;
}

static fr_jinja_value cycler_reset(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    arguments[0].cycler->position = 0;
    return fr_jinja_none();
}

static const fr_jinja_function cycler_rows[] = {
    {"next", cycler_next, 1, false, {"self"}},
    {"reset", cycler_reset, 1, false, {"self"}},
};

/* ----------------------------------------------------------------------------------------------------------- lookup */

#define TABLE(rows) \
    { rows, sizeof(rows) / sizeof *(rows) }

const fr_jinja_function_table *fr_template_methods(fr_jinja_kind kind) {
    static const fr_jinja_function_table none,
        tables[FR_KIND_COUNT] = {
            [FR_KIND_LIST] = TABLE(list_rows),   [FR_KIND_TUPLE] = TABLE(tuple_rows),
            [FR_KIND_RANGE] = TABLE(tuple_rows), [FR_KIND_DICT] = TABLE(dict_rows),
            [FR_KIND_LOOP] = TABLE(loop_rows),   [FR_KIND_CYCLER] = TABLE(cycler_rows),
        };
    if (kind == FR_KIND_STRING) return &fr_jinja_string_methods;
    return kind < FR_KIND_COUNT ? &tables[kind] : &none;
}
