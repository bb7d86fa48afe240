/* Implements the filters of lists and other iterables. Filters that are generators in Python give iterators here, which
 * make each item only when it is needed. */
#include "src/language/jinja/template_filters.h"
#include "src/language/jinja/template_strings.h"

/* ------------------------------------------------------------------------------------------------------------ paths */

fr_jinja_path fr_jinja_path_of(fr_jinja_render *render, fr_jinja_value attribute) {
    if (!fr_jinja_is_given(attribute) || attribute.kind == FR_KIND_NONE) return (fr_jinja_path){0};
    fr_jinja_list *parts = fr_jinja_list_new(render, 4);
    if (attribute.kind != FR_KIND_STRING) {
        fr_jinja_list_append(render, parts, attribute);
        return (fr_jinja_path){parts->items, parts->count};
    }
    static const fr_jinja_string dot = {.bytes = ".", .length = 1, .ascii = true};
    const fr_jinja_list *words = fr_jinja_string_split(render, attribute.string, &dot, -1);
    for (size_t i = 0; i < words->count; i++) {
        const fr_jinja_string *word = words->items[i].string;
        int64_t number = 0;
        bool digits = word->length > 0 && word->length <= 18;
        for (size_t c = 0; c < word->length && digits; c++) {
            digits = word->bytes[c] >= '0' && word->bytes[c] <= '9';
            number = number * 10 + word->bytes[c] - '0';
        }
        fr_jinja_list_append(render, parts, digits ? fr_jinja_of_int(number, false) : words->items[i]);
    }
    return (fr_jinja_path){parts->items, parts->count};
}

fr_jinja_value fr_jinja_path_get(fr_jinja_render *render, const fr_jinja_path *path, fr_jinja_value item) {
    for (size_t i = 0; i < path->count && !fr_jinja_render_failed(render); i++)
        item = fr_jinja_get_item(render, item, path->parts[i]);
    return item;
}

/* Gives the value by which an item is compared. If case_sensitive is false, a string is compared in lower case. Any
 * other value is compared unchanged. */
static fr_jinja_value without_case(fr_jinja_render *render, fr_jinja_value value, bool case_sensitive) {
    if (case_sensitive || value.kind != FR_KIND_STRING) return value;
    return fr_jinja_of_string(fr_jinja_string_in_case(render, value.string, FR_CASE_LOWER));
}

/* ---------------------------------------------------------------------------------------------------------- picking */

fr_jinja_value fr_jinja_filter_list(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_list(fr_jinja_list_of(render, arguments[0]), fr_jinja_value_foreign(arguments[0]));
}

fr_jinja_value fr_jinja_filter_first(fr_jinja_render *render, const fr_jinja_value *arguments) {
    fr_jinja_cursor cursor = fr_jinja_cursor_new(render, arguments[0]);
    fr_jinja_value first;
    return fr_jinja_cursor_next(render, &cursor, &first) ? first : fr_jinja_undefined(FR_REASON_EMPTY, NULL);
}

static bool is_reversible(fr_jinja_value value) {
    return fr_jinja_has_length(value) && value.kind != FR_KIND_UNDEFINED && value.kind != FR_KIND_LOOP;
}

fr_jinja_value fr_jinja_filter_last(fr_jinja_render *render, const fr_jinja_value *arguments) {
    fr_jinja_value value = arguments[0];
    if (value.kind == FR_KIND_UNDEFINED) return fr_jinja_undefined(FR_REASON_EMPTY, NULL);
    if (!is_reversible(value))
        return fr_jinja_render_fail(render, "last: a '%s' has no last item", fr_jinja_kind_name(value.kind));
    if (value.kind != FR_KIND_DICT && value.kind != FR_KIND_VIEW) {
        fr_jinja_value last = fr_jinja_get_item(render, value, fr_jinja_of_int(-1, false));
        return last.kind == FR_KIND_UNDEFINED && fr_jinja_length(render, value) == 0
                   ? fr_jinja_undefined(FR_REASON_EMPTY, NULL)
                   : last;
    }
    const fr_jinja_list *list = fr_jinja_list_of(render, value);
    return list->count > 0 ? list->items[list->count - 1] : fr_jinja_undefined(FR_REASON_EMPTY, NULL);
}

static bool next_of_reversed(fr_jinja_render *render, fr_jinja_iterator *iterator, fr_jinja_value *value) {
    const fr_jinja_list *list = iterator->state;
    (void)render;
    if (iterator->count >= list->count) return false;
    *value = list->items[list->count - 1 - iterator->count++];
    return true;
}

fr_jinja_value fr_jinja_filter_reverse(fr_jinja_render *render, const fr_jinja_value *arguments) {
    fr_jinja_value value = arguments[0], minus_one = fr_jinja_of_int(-1, false);
    if (value.kind == FR_KIND_STRING)
        return fr_jinja_get_slice(render, value, fr_jinja_none(), fr_jinja_none(), minus_one);
    const fr_jinja_list *list = fr_jinja_list_of(render, value);
    fr_jinja_value reversed = fr_jinja_of_list(list, value.foreign);
    if (is_reversible(value)) return fr_jinja_iterator_new(render, next_of_reversed, reversed, list);
    return fr_jinja_get_slice(render, reversed, fr_jinja_none(), fr_jinja_none(), minus_one);
}

static bool next_item_pair(fr_jinja_render *render, fr_jinja_iterator *iterator, fr_jinja_value *value) {
    fr_jinja_value mapping = iterator->source.over;
    if (mapping.kind == FR_KIND_UNDEFINED) return false;
    if (mapping.kind != FR_KIND_DICT) {
        fr_jinja_render_fail(render, "items: a '%s' is not a mapping", fr_jinja_kind_name(mapping.kind));
        return false;
    }
    if (iterator->count >= mapping.dict->count) return false;
    const fr_jinja_entry *entry = &mapping.dict->entries[iterator->count++];
    *value = fr_jinja_tuple_of_two(render, entry->key, entry->value, mapping.foreign);
    return true;
}

fr_jinja_value fr_jinja_filter_items(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_iterator_new(render, next_item_pair, arguments[0], NULL);
}

/* ---------------------------------------------------------------------------------------------- map, select, reject */

/* Describes what map, select and reject do with each item. */
typedef struct each {
    fr_jinja_path path;
    bool by_path, negative;
    fr_jinja_value otherwise;          /* the result for items to which the path can't be applied */
    const fr_jinja_function *function; /* a filter or test that is applied to each item; NULL: the item itself is
                                        * used */
    fr_jinja_arguments arguments;
} each;

static fr_jinja_value apply(fr_jinja_render *render, const each *e, fr_jinja_value item) {
    if (e->by_path) {
        for (size_t i = 0; i < e->path.count && !fr_jinja_render_failed(render); i++) {
            item = fr_jinja_get_item(render, item, e->path.parts[i]);
            bool missing = item.kind == FR_KIND_UNDEFINED && fr_jinja_is_given(e->otherwise);
            if (missing) item = e->otherwise;
        }
    }
    return e->function ? fr_jinja_call_function(render, e->function, item, &e->arguments) : item;
}

static bool next_mapped(fr_jinja_render *render, fr_jinja_iterator *iterator, fr_jinja_value *value) {
    if (!fr_jinja_cursor_next(render, &iterator->source, value)) return false;
    *value = apply(render, iterator->state, *value);
    return true;
}

static bool next_selected(fr_jinja_render *render, fr_jinja_iterator *iterator, fr_jinja_value *value) {
    const each *e = iterator->state;
    while (fr_jinja_cursor_next(render, &iterator->source, value))
        if (fr_jinja_truth(render, apply(render, e, *value)) != e->negative) return true;
    return false;
}

/* Reads argument number `at`, which is the name of a filter or test. The arguments after it are those of that filter or
 * test. */
static void read_function(fr_jinja_render *render, const fr_jinja_function_table *table,
                          const fr_jinja_value *arguments, size_t at, each *e) {
    const fr_jinja_list *rest = arguments[1].list;
    if (at >= rest->count) return;
    if (rest->items[at].kind == FR_KIND_STRING) e->function = fr_jinja_function_find(table, rest->items[at].string);
    if (!e->function) fr_jinja_render_fail(render, "there is no filter or test of the given name");
    e->arguments = (fr_jinja_arguments){rest->items + at + 1, rest->count - at - 1, arguments[2].dict->entries,
                                        arguments[2].dict->count};
}

static fr_jinja_value iterate(fr_jinja_render *render,
                              bool next(fr_jinja_render *, fr_jinja_iterator *, fr_jinja_value *),
                              fr_jinja_value source, each e) {
    each *kept = fr_jinja_render_take(render, 1, sizeof *kept);
    if (!kept) return fr_jinja_none();
    *kept = e;
    if (!fr_jinja_is_iterable(source) && !fr_jinja_truth(render, source))
        source = fr_jinja_of_list(fr_jinja_list_new(render, 0), false);
    if (!fr_jinja_is_iterable(source))
        return fr_jinja_render_fail(render, "'%s' object is not iterable", fr_jinja_kind_name(source.kind));
    return fr_jinja_iterator_new(render, next, source, kept);
}

static fr_jinja_value named(fr_jinja_render *render, fr_jinja_value keywords, const char *name) {
    const fr_jinja_string key = {.bytes = name, .length = strlen(name), .ascii = true};
    const fr_jinja_entry *entry = fr_jinja_dict_find_string(render, keywords.dict, &key);
    return entry ? entry->value : fr_jinja_missing();
}

/* Applies map(attribute="a.b", default=c) or map("filter", arguments). */
fr_jinja_value fr_jinja_filter_map(fr_jinja_render *render, const fr_jinja_value *arguments) {
    each e = {.by_path = false};
    fr_jinja_value attribute = named(render, arguments[2], "attribute"),
                   otherwise = named(render, arguments[2], "default");
    if (arguments[1].list->count == 0 && fr_jinja_is_given(attribute)) {
        if (arguments[2].dict->count > 1 + (size_t)fr_jinja_is_given(otherwise))
            return fr_jinja_render_fail(render, "map: attribute takes only a default beside it");
        e.by_path = true;
        e.path = fr_jinja_path_of(render, attribute);
        e.otherwise = otherwise.kind == FR_KIND_NONE ? fr_jinja_missing() : otherwise;
    } else if (arguments[1].list->count == 0) {
        return fr_jinja_render_fail(render, "map: neither a filter nor an attribute is named");
    } else {
        read_function(render, &fr_template_filters, arguments, 0, &e);
    }
    return iterate(render, next_mapped, arguments[0], e);
}

static fr_jinja_value select_items(fr_jinja_render *render, const fr_jinja_value *arguments, bool by_attribute,
                                   bool negative) {
    each e = {.by_path = by_attribute, .negative = negative};
    if (by_attribute && arguments[1].list->count == 0)
        return fr_jinja_render_fail(render, "the attribute's name is missing");
    if (by_attribute) e.path = fr_jinja_path_of(render, arguments[1].list->items[0]);
    read_function(render, &fr_template_tests, arguments, by_attribute, &e);
    return iterate(render, next_selected, arguments[0], e);
}

fr_jinja_value fr_jinja_filter_select(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return select_items(render, arguments, false, false);
}

fr_jinja_value fr_jinja_filter_reject(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return select_items(render, arguments, false, true);
}

fr_jinja_value fr_jinja_filter_selectattr(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return select_items(render, arguments, true, false);
}

fr_jinja_value fr_jinja_filter_rejectattr(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return select_items(render, arguments, true, true);
}

/* ----------------------------------------------------------------------------------------------- batches and slices */

typedef struct filled {
    int64_t count;
    fr_jinja_value with; /* fills up a list that has too few items; MISSING: the list stays short */
} filled;

static const filled *read_filled(fr_jinja_render *render, const fr_jinja_value *arguments, const char *what) {
    filled *f = fr_jinja_render_take(render, 1, sizeof *f);
    if (!f) return NULL;
    f->count = fr_jinja_argument_int(render, arguments[1], 1, what);
    f->with = arguments[2].kind == FR_KIND_NONE ? fr_jinja_missing() : arguments[2];
    return f;
}

static bool next_batch(fr_jinja_render *render, fr_jinja_iterator *iterator, fr_jinja_value *value) {
    const filled *f = iterator->state;
    fr_jinja_list *list = fr_jinja_list_new(render, 0);
    fr_jinja_value item;
    while (((int64_t)list->count != f->count || list->count == 0) &&
           fr_jinja_cursor_next(render, &iterator->source, &item))
        fr_jinja_list_append(render, list, item);
    if (list->count == 0) return false;
    if (fr_jinja_is_given(f->with))
        while ((int64_t)list->count < f->count && fr_jinja_render_step(render, 0))
            fr_jinja_list_append(render, list, f->with);
    *value = fr_jinja_of_list(list, iterator->source.over.foreign);
    return true;
}

fr_jinja_value fr_jinja_filter_batch(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const filled *f = read_filled(render, arguments, "batch: the count");
    fr_jinja_cursor_new(render, arguments[0]); /* makes the render fail if the value can't be iterated */
    return fr_jinja_iterator_new(render, next_batch, arguments[0], f);
}

/* Gives the next slice. If the items can't be divided evenly, each of the first slices gets one more item. */
static bool next_slice(fr_jinja_render *render, fr_jinja_iterator *iterator, fr_jinja_value *value) {
    const filled *f = iterator->state;
    fr_jinja_value source = iterator->source.over;
    int64_t length = (int64_t)source.list->count, number = (int64_t)iterator->count++;
    if (number >= f->count) return false;
    int64_t shortest = length / f->count, longer = length % f->count;
    int64_t begin = number * shortest + (number < longer ? number : longer);
    int64_t end = begin + shortest + (number < longer);
    *value =
        fr_jinja_get_slice(render, source, fr_jinja_of_int(begin, false), fr_jinja_of_int(end, false), fr_jinja_none());
    if (!fr_jinja_is_given(f->with) || number < longer || fr_jinja_render_failed(render)) return true;
    fr_jinja_list *list = fr_jinja_list_of(render, *value);
    fr_jinja_list_append(render, list, f->with);
    *value = fr_jinja_of_list(list, source.foreign);
    return true;
}

fr_jinja_value fr_jinja_filter_slice(fr_jinja_render *render, const fr_jinja_value *arguments) {
    const filled *f = read_filled(render, arguments, "slice: the number of slices");
    if (f && f->count == 0) return fr_jinja_render_fail(render, "slice: the number of slices is 0");
    fr_jinja_value list =
        fr_jinja_of_list(fr_jinja_list_of(render, arguments[0]), fr_jinja_value_foreign(arguments[0]));
    return fr_jinja_iterator_new(render, next_slice, list, f);
}

/* --------------------------------------------------------------------------------------------------------- ordering */

/* Makes a sorting key for an item: the list of the attributes that a text such as "a,b" names. The first item in which
 * two such lists differ decides their order. */
static fr_jinja_value sort_key(fr_jinja_render *render, const fr_jinja_path *paths, size_t count, fr_jinja_value item,
                               bool case_sensitive) {
    fr_jinja_list *keys = fr_jinja_list_new(render, count);
    for (size_t i = 0; i < count; i++)
        fr_jinja_list_append(render, keys,
                             without_case(render, fr_jinja_path_get(render, &paths[i], item), case_sensitive));
    return fr_jinja_of_list(keys, false);
}

static fr_jinja_path *read_paths(fr_jinja_render *render, fr_jinja_value attribute, size_t *count) {
    static const fr_jinja_string comma = {.bytes = ",", .length = 1, .ascii = true};
    const fr_jinja_list *names = NULL;
    if (attribute.kind == FR_KIND_STRING) names = fr_jinja_string_split(render, attribute.string, &comma, -1);
    *count = names ? names->count : 1;
    fr_jinja_path *paths = fr_jinja_render_take(render, *count, sizeof *paths);
    for (size_t i = 0; paths && i < *count; i++)
        paths[i] = fr_jinja_path_of(render, names ? names->items[i] : attribute);
    return paths;
}

static fr_jinja_value sorted(fr_jinja_render *render, fr_jinja_value value, fr_jinja_value attribute,
                             bool case_sensitive, bool reverse) {
    size_t count;
    fr_jinja_path *paths = read_paths(render, attribute, &count);
    fr_jinja_list *items = fr_jinja_list_of(render, value);
    fr_jinja_value *keys = fr_jinja_render_take(render, items->count, sizeof *keys);
    if (!paths || !keys) return fr_jinja_none();
    for (size_t i = 0; i < items->count && fr_jinja_render_step(render, 0); i++)
        keys[i] = sort_key(render, paths, count, items->items[i], case_sensitive);
    fr_jinja_sort(render, items->items, keys, items->count, reverse);
    return fr_jinja_of_list(items, fr_jinja_value_foreign(value));
}

fr_jinja_value fr_jinja_filter_sort(fr_jinja_render *render, const fr_jinja_value *arguments) {
    bool reverse = fr_jinja_argument_truth(render, arguments[1]),
         case_sensitive = fr_jinja_argument_truth(render, arguments[2]);
    return sorted(render, arguments[0], arguments[3], case_sensitive, reverse);
}

fr_jinja_value fr_jinja_filter_dictsort(fr_jinja_render *render, const fr_jinja_value *arguments) {
    fr_jinja_value mapping = arguments[0];
    bool case_sensitive = fr_jinja_argument_truth(render, arguments[1]),
         reverse = fr_jinja_argument_truth(render, arguments[3]);
    bool by_value = arguments[2].kind == FR_KIND_STRING && fr_jinja_string_is(arguments[2].string, "value");
    bool by_key = arguments[2].kind == FR_KIND_STRING && fr_jinja_string_is(arguments[2].string, "key");
    if (fr_jinja_is_given(arguments[2]) && !by_value && !by_key)
        return fr_jinja_render_fail(render, "dictsort: by must be key or value");
    if (mapping.kind == FR_KIND_UNDEFINED) return fr_jinja_render_fail_undefined(render, mapping);
    if (mapping.kind != FR_KIND_DICT)
        return fr_jinja_render_fail(render, "dictsort: a '%s' is not a mapping", fr_jinja_kind_name(mapping.kind));
    size_t count = mapping.dict->count;
    fr_jinja_list *items = fr_jinja_list_new(render, count);
    fr_jinja_value *keys = fr_jinja_render_take(render, count, sizeof *keys);
    for (size_t i = 0; keys && i < count && fr_jinja_render_step(render, 0); i++) {
        const fr_jinja_entry *entry = &mapping.dict->entries[i];
        fr_jinja_list_append(render, items, fr_jinja_tuple_of_two(render, entry->key, entry->value, mapping.foreign));
        keys[i] = without_case(render, by_value ? entry->value : entry->key, case_sensitive);
    }
    if (!fr_jinja_render_failed(render)) fr_jinja_sort(render, items->items, keys, count, reverse);
    return fr_jinja_of_list(items, mapping.foreign);
}

static fr_jinja_value extreme(fr_jinja_render *render, const fr_jinja_value *arguments, int wanted) {
    bool case_sensitive = fr_jinja_argument_truth(render, arguments[1]);
    fr_jinja_path path = fr_jinja_path_of(render, arguments[2]);
    fr_jinja_cursor cursor = fr_jinja_cursor_new(render, arguments[0]);
    fr_jinja_value best = fr_jinja_undefined(FR_REASON_EMPTY, NULL), best_key = fr_jinja_missing();
    for (fr_jinja_value item; fr_jinja_cursor_next(render, &cursor, &item);) {
        fr_jinja_value key = without_case(render, fr_jinja_path_get(render, &path, item), case_sensitive);
        if (fr_jinja_is_given(best_key) && fr_jinja_compare(render, key, best_key) != wanted) continue;
        best = item;
        best_key = key;
    }
    return best;
}

fr_jinja_value fr_jinja_filter_min(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return extreme(render, arguments, -1);
}

fr_jinja_value fr_jinja_filter_max(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return extreme(render, arguments, 1);
}

/* --------------------------------------------------------------------------------------------------------- grouping */

static fr_jinja_value new_group(fr_jinja_render *render, fr_jinja_value key, fr_jinja_value items) {
    fr_jinja_value group = fr_jinja_tuple_of_two(render, key, items, items.foreign);
    fr_jinja_list *list = fr_jinja_render_take(render, 1, sizeof *list);
    if (!list || fr_jinja_render_failed(render)) return fr_jinja_none();
    *list = *group.list;
    list->group = true;
    return fr_jinja_of_tuple(list, items.foreign);
}

static fr_jinja_value key_of(fr_jinja_render *render, const fr_jinja_path *path, fr_jinja_value otherwise,
                             fr_jinja_value item) {
    each e = {.by_path = true, .path = *path, .otherwise = otherwise};
    return apply(render, &e, item);
}

fr_jinja_value fr_jinja_filter_groupby(fr_jinja_render *render, const fr_jinja_value *arguments) {
    bool case_sensitive = fr_jinja_argument_truth(render, arguments[3]), foreign = fr_jinja_value_foreign(arguments[0]);
    fr_jinja_value otherwise = arguments[2].kind == FR_KIND_NONE ? fr_jinja_missing() : arguments[2];
    fr_jinja_path path = fr_jinja_path_of(render, arguments[1]);
    fr_jinja_list *items = fr_jinja_list_of(render, arguments[0]), *groups = fr_jinja_list_new(render, 0),
                  *group = NULL;
    fr_jinja_value *keys = fr_jinja_render_take(render, items->count, sizeof *keys), before = fr_jinja_missing();
    for (size_t i = 0; keys && i < items->count && fr_jinja_render_step(render, 0); i++)
        keys[i] = without_case(render, key_of(render, &path, otherwise, items->items[i]), case_sensitive);
    if (!keys || fr_jinja_render_failed(render)) return fr_jinja_none();
    fr_jinja_sort(render, items->items, keys, items->count, false);
    for (size_t i = 0; i < items->count && fr_jinja_render_step(render, 0); i++) {
        fr_jinja_value own = key_of(render, &path, otherwise, items->items[i]),
                       key = without_case(render, own, case_sensitive);
        if (!group || !fr_jinja_equal(render, key, before)) {
            group = fr_jinja_list_new(render, 0);
            fr_jinja_list_append(render, groups, new_group(render, own, fr_jinja_of_list(group, foreign)));
        }
        fr_jinja_list_append(render, group, items->items[i]);
        before = key;
    }
    return fr_jinja_of_list(groups, foreign);
}

/* The state of the filter `unique`. The items seen so far are the keys of the dict `seen`. */
typedef struct uniqueness {
    fr_jinja_path path;
    bool case_sensitive;
    fr_jinja_dict *seen;
} uniqueness;

static bool next_unique(fr_jinja_render *render, fr_jinja_iterator *iterator, fr_jinja_value *value) {
    const uniqueness *u = iterator->state;
    while (fr_jinja_cursor_next(render, &iterator->source, value)) {
        fr_jinja_value key = without_case(render, fr_jinja_path_get(render, &u->path, *value), u->case_sensitive);
        size_t before = u->seen->count;
        fr_jinja_dict_set(render, u->seen, key, fr_jinja_none());
        if (u->seen->count > before) return true;
    }
    return false;
}

fr_jinja_value fr_jinja_filter_unique(fr_jinja_render *render, const fr_jinja_value *arguments) {
    uniqueness *u = fr_jinja_render_take(render, 1, sizeof *u);
    if (!u) return fr_jinja_none();
    *u = (uniqueness){fr_jinja_path_of(render, arguments[2]), fr_jinja_argument_truth(render, arguments[1]),
                      fr_jinja_dict_new(render, 0)};
    fr_jinja_cursor_new(render, arguments[0]); /* makes the render fail if the value can't be iterated */
    return fr_jinja_iterator_new(render, next_unique, arguments[0], u);
}

fr_jinja_value fr_jinja_filter_sum(fr_jinja_render *render, const fr_jinja_value *arguments) {
    fr_jinja_path path = fr_jinja_path_of(render, arguments[1]);
    fr_jinja_value sum = fr_jinja_is_given(arguments[2]) ? arguments[2] : fr_jinja_of_int(0, false);
    if (sum.kind == FR_KIND_STRING) return fr_jinja_render_fail(render, "sum: strings can't be summed: join them");
    fr_jinja_cursor cursor = fr_jinja_cursor_new(render, arguments[0]);
    for (fr_jinja_value item; fr_jinja_cursor_next(render, &cursor, &item);)
        sum = fr_jinja_arithmetic(render, FR_OPERATOR_ADD, sum, fr_jinja_path_get(render, &path, item));
    return sum;
}
