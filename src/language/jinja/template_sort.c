/* Sorts as Python's sorted() does: equal items keep their order. Comparisons may fail. */
#include "src/language/jinja/template_render.h"

typedef struct sorting {
    fr_jinja_render *render;
    const fr_jinja_value *keys;
    bool descending; /* sort from the largest to the smallest; equal items still keep their order */
} sorting;

static bool comes_before(const sorting *s, size_t a, size_t b) {
    return fr_jinja_compare(s->render, s->keys[a], s->keys[b]) == (s->descending ? 1 : -1);
}

/* Merges two neighbouring runs of `from` into one run of `to`. */
static void merge(const sorting *s, const size_t *from, size_t *to, size_t begin, size_t middle, size_t end) {
    size_t left = begin, right = middle;
    for (size_t i = begin; i < end; i++) {
        bool take_right = left == middle || (right < end && comes_before(s, from[right], from[left]));
        to[i] = from[take_right ? right++ : left++];
    }
}

/* Gives the indices of the keys in sorted order; NULL after a failure. */
static const size_t *sorted_order(fr_jinja_render *render, const fr_jinja_value *keys, size_t count, bool descending) {
    sorting s = {render, keys, descending};
    size_t *order = fr_jinja_render_take(render, count, sizeof *order),
           *other = fr_jinja_render_take(render, count, sizeof *other);
    if (!order || !other) return NULL;
    for (size_t i = 0; i < count; i++) order[i] = i;
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t begin = 0; begin < count && fr_jinja_render_step(render, 64 * run); begin += 2 * run) {
            size_t middle = begin + run < count ? begin + run : count;
            merge(&s, order, other, begin, middle, middle + run < count ? middle + run : count);
        }
        size_t *merged = other;
        other = order;
        order = merged;
    }
    return fr_jinja_render_failed(render) ? NULL : order;
}

void fr_jinja_sort(fr_jinja_render *render, fr_jinja_value *items, fr_jinja_value *keys, size_t count,
                   bool descending) {
    const size_t *order = sorted_order(render, keys ? keys : items, count, descending);
    fr_jinja_value *sorted = order ? fr_jinja_render_take(render, count, sizeof *sorted) : NULL;
    if (!sorted) return;
    for (size_t i = 0; i < count; i++) sorted[i] = items[order[i]];
    if (count > 0) memcpy(items, sorted, count * sizeof *items);
}

const fr_jinja_entry *fr_jinja_sorted_entries(fr_jinja_render *render, const fr_jinja_dict *dict) {
    fr_jinja_value *keys = fr_jinja_render_take(render, dict->count, sizeof *keys);
    fr_jinja_entry *sorted = fr_jinja_render_take(render, dict->count, sizeof *sorted);
    if (!keys || !sorted) return NULL;
    for (size_t i = 0; i < dict->count; i++) keys[i] = dict->entries[i].key;
    const size_t *order = sorted_order(render, keys, dict->count, false);
    for (size_t i = 0; order && i < dict->count; i++) sorted[i] = dict->entries[order[i]];
    return order ? sorted : NULL;
}
