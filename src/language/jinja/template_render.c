/* Counts a render's steps, and keeps its memory and the text that it writes (template_render.h). */
#include "src/language/jinja/template_render.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "src/language/jinja/template_text.h"
#include "src/language/jinja/template_wide.h"

static const fr_jinja_string empty_string = {.bytes = "", .ascii = true};

/* ---------------------------------------------------------------------------------------------- failures and limits */

fr_jinja_value fr_jinja_render_fail(fr_jinja_render *render, const char *format, ...) {
    fr_jinja_value undefined = fr_jinja_undefined(FR_REASON_NAME, &empty_string);
    if (fr_jinja_render_failed(render)) return undefined;
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    render->status = fr_template_fail(render->template, render->line, "%s", what);
    return undefined;
}

bool fr_jinja_render_step(fr_jinja_render *render, size_t bytes) {
    size_t cost = 1 + bytes / FR_RENDER_STEP_BYTES;
    if (fr_jinja_render_failed(render)) return false;
    if (cost > render->steps) {
        fr_jinja_render_fail(render, "more than %d steps", FR_RENDER_STEPS_MAX);
        return false;
    }
    render->steps -= cost;
    return true;
}

bool fr_jinja_render_enter(fr_jinja_render *render) {
    if (fr_jinja_render_failed(render)) return false;
    if (render->depth == FR_RENDER_DEPTH_MAX) {
        fr_jinja_render_fail(render, "calls and blocks nested deeper than %d", FR_RENDER_DEPTH_MAX);
        return false;
    }
    render->depth++;
    return true;
}

void fr_jinja_render_leave(fr_jinja_render *render) {
    render->depth--;
}

void *fr_jinja_render_take(fr_jinja_render *render, size_t count, size_t item) {
    if (fr_jinja_render_failed(render)) return NULL;
    void *piece = fr_jinja_bump_take(&render->memory, count, item);
    if (!piece) render->status = fr_template_fail_memory(render->template, render->line, &render->memory);
    return piece;
}

/* ------------------------------------------------------------------------------------------------------------ texts */

/* Makes room for text. The capacity doubles, so writing n bytes copies O(n) bytes in all. */
static bool reserve(fr_jinja_render *render, size_t more) {
    if (!fr_jinja_render_step(render, more)) return false;
    if (more > FR_RENDER_TEXT_MAX - render->length) {
        fr_jinja_render_fail(render, "more than %zu MiB of text", FR_RENDER_TEXT_MAX >> 20);
        return false;
    }
    size_t needed = render->length + more, capacity = render->capacity ? render->capacity : 4096;
    if (needed <= render->capacity) return true;
    while (capacity < needed) capacity *= 2;
    char *bytes = realloc(render->bytes, capacity);
    if (bytes) render->bytes = bytes;
    uint8_t *marks = bytes ? realloc(render->marks, capacity) : NULL;
    if (!marks) {
        render->status = fr_fail_memory("a chat", 2 * capacity);
        return false;
    }
    render->marks = marks;
    render->capacity = capacity;
    return true;
}

size_t fr_jinja_text_begin(const fr_jinja_render *render) {
    return render->length;
}

void fr_jinja_text_drop(fr_jinja_render *render, size_t begin) {
    render->length = begin;
}

const fr_jinja_string *fr_jinja_text_end(fr_jinja_render *render, size_t begin) {
    size_t length = render->length - begin;
    const uint8_t *marks = render->marks ? render->marks + begin : NULL;
    render->length = begin;
    if (length == 0) return &empty_string;
    bool mixed = memchr(marks, !marks[0], length) != NULL;
    fr_jinja_string *string = fr_jinja_render_take(render, 1, sizeof *string);
    char *bytes = fr_jinja_render_take(render, mixed ? 2 * length : length, 1);
    if (!string || !bytes) return &empty_string;
    memcpy(bytes, render->bytes + begin, length);
    *string = (fr_jinja_string){.bytes = bytes, .length = length, .foreign = mixed || marks[0]};
    string->ascii = fr_jinja_all_ascii(bytes, length);
    if (mixed) string->marks = memcpy(bytes + length, marks, length);
    return string;
}

void fr_jinja_put(fr_jinja_render *render, const char *bytes, size_t length, bool foreign) {
    if (length == 0 || !reserve(render, length)) return;
    memcpy(render->bytes + render->length, bytes, length);
    memset(render->marks + render->length, foreign, length);
    render->length += length;
}

void fr_jinja_put_text(fr_jinja_render *render, const char *text, bool foreign) {
    fr_jinja_put(render, text, strlen(text), foreign);
}

void fr_jinja_put_part(fr_jinja_render *render, const fr_jinja_string *string, size_t begin, size_t end) {
    fr_jinja_put(render, string->bytes + begin, end - begin, string->foreign);
    if (string->marks && end > begin && !fr_jinja_render_failed(render))
        memcpy(render->marks + render->length - (end - begin), string->marks + begin, end - begin);
}

void fr_jinja_put_string(fr_jinja_render *render, const fr_jinja_string *string) {
    fr_jinja_put_part(render, string, 0, string->length);
}

/* Writes a string several times. It doubles the text that was already written. */
void fr_jinja_put_times(fr_jinja_render *render, const fr_jinja_string *string, int64_t times) {
    size_t begin = render->length, bytes;
    if (times <= 0 || string->length == 0) return;
    fr_jinja_put_string(render, string);
    for (int64_t have = 1, more; have < times && !fr_jinja_render_failed(render); have += more) {
        more = have < times - have ? have : times - have;
        if (__builtin_mul_overflow((size_t)more, string->length, &bytes)) bytes = SIZE_MAX;
        if (!reserve(render, bytes)) return;
        memcpy(render->bytes + render->length, render->bytes + begin, bytes);
        memcpy(render->marks + render->length, render->marks + begin, bytes);
        render->length += bytes;
    }
}

void fr_jinja_put_character(fr_jinja_render *render, int32_t codepoint, bool foreign) {
    char bytes[4];
    fr_jinja_put(render, bytes, fr_jinja_encode(codepoint, bytes), foreign);
}

/* ---------------------------------------------------------------------------------------------------------- strings */

const fr_jinja_string *fr_jinja_string_new(fr_jinja_render *render, const char *bytes, size_t length, bool foreign) {
    fr_jinja_string *string =
        fr_jinja_render_step(render, length) ? fr_jinja_render_take(render, 1, sizeof *string) : NULL;
    if (!string) return &empty_string;
    *string = (fr_jinja_string){.bytes = bytes, .length = length, .foreign = foreign};
    string->ascii = fr_jinja_all_ascii(bytes, length);
    return string;
}

const fr_jinja_string *fr_jinja_string_part(fr_jinja_render *render, const fr_jinja_string *string, size_t begin,
                                            size_t end) {
    if (begin == 0 && end == string->length) return string;
    size_t looked_at = string->ascii ? 0 : end - begin;
    fr_jinja_string *part =
        fr_jinja_render_step(render, looked_at) ? fr_jinja_render_take(render, 1, sizeof *part) : NULL;
    if (!part) return &empty_string;
    *part = *string;
    part->bytes = string->bytes + begin;
    part->length = end - begin;
    if (string->marks) part->marks = string->marks + begin;
    part->ascii = string->ascii || fr_jinja_all_ascii(part->bytes, part->length);
    return part;
}

const fr_jinja_string *fr_jinja_string_as_markup(fr_jinja_render *render, const fr_jinja_string *string, bool markup) {
    if (string->markup == markup) return string;
    fr_jinja_string *copy = fr_jinja_render_take(render, 1, sizeof *copy);
    if (!copy) return &empty_string;
    *copy = *string;
    copy->markup = markup;
    return copy;
}

/* ------------------------------------------------------------------------------------------------------------ lists */

fr_jinja_list *fr_jinja_list_new(fr_jinja_render *render, size_t capacity) {
    static fr_jinja_list none; /* used if there is no memory for a list; its capacity is 0, so it is never written to */
    fr_jinja_list *list = fr_jinja_render_take(render, 1, sizeof *list);
    fr_jinja_value *items = list && capacity > 0 ? fr_jinja_render_take(render, capacity, sizeof *items) : NULL;
    if (!list || (capacity > 0 && !items)) return &none;
    list->items = items;
    list->capacity = capacity;
    return list;
}

void fr_jinja_list_append(fr_jinja_render *render, fr_jinja_list *list, fr_jinja_value value) {
    if (fr_jinja_render_failed(render)) return;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 8;
        fr_jinja_value *items = fr_jinja_render_take(render, capacity, sizeof *items);
        if (!items) return;
        if (list->count > 0) memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = value;
}

fr_jinja_value fr_jinja_tuple_of_two(fr_jinja_render *render, fr_jinja_value first, fr_jinja_value second,
                                     bool foreign) {
    fr_jinja_list *list = fr_jinja_list_new(render, 2);
    fr_jinja_list_append(render, list, first);
    fr_jinja_list_append(render, list, second);
    return fr_jinja_of_tuple(list, foreign);
}

/* ------------------------------------------------------------------------------------------------------------ dicts */

#define SEARCHED_ONE_BY_ONE 8 /* if a dict has more entries than this, it gets a hash index */

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

static uint64_t hash_bytes(const char *bytes, size_t length) {
    uint64_t hash = length;
    for (; length >= 8; bytes += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = mix(hash, word);
    }
    uint64_t word = 0;
    if (length > 0) memcpy(&word, bytes, length);
    return mix(hash, word);
}

static uint64_t hash_real(double real) {
    if (real >= -0x1p63 && real < 0x1p63 && real == (double)(int64_t)real) return mix(1, (uint64_t)(int64_t)real);
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return mix(2, bits);
}

static bool hash_of(fr_jinja_render *render, fr_jinja_value key, uint64_t *hash);

static bool hash_tuple(fr_jinja_render *render, const fr_jinja_list *list, uint64_t *hash) {
    bool hashable = fr_jinja_render_enter(render);
    if (!hashable) return false;
    *hash = 3;
    for (size_t i = 0; i < list->count && hashable && fr_jinja_render_step(render, 0); i++) {
        uint64_t one = 0;
        hashable = hash_of(render, list->items[i], &one);
        *hash = mix(*hash, one);
    }
    fr_jinja_render_leave(render);
    return hashable;
}

/* Hashes a key. Returns false if the value can't be a key. */
static bool hash_of(fr_jinja_render *render, fr_jinja_value key, uint64_t *hash) {
    switch (key.kind) {
    case FR_KIND_STRING:
        if (!fr_jinja_render_step(render, key.string->length)) return false;
        *hash = hash_bytes(key.string->bytes, key.string->length);
        return true;
    case FR_KIND_BOOL:
    case FR_KIND_INT: *hash = mix(1, (uint64_t)fr_jinja_int_of(key)); return true;
    case FR_KIND_WIDE: *hash = hash_real(fr_wide_real(key)); return true;
    case FR_KIND_FLOAT: *hash = hash_real(key.real); return true;
    case FR_KIND_TUPLE: return hash_tuple(render, key.list, hash);
    case FR_KIND_LIST:
    case FR_KIND_DICT:
    case FR_KIND_VIEW: return false;
    default: *hash = key.kind; return true;
    }
}

fr_jinja_dict *fr_jinja_dict_new(fr_jinja_render *render, size_t capacity) {
    static fr_jinja_dict none; /* used if there is no memory for a dict; its capacity is 0, so it is never written to */
    fr_jinja_dict *dict = fr_jinja_render_take(render, 1, sizeof *dict);
    fr_jinja_entry *entries = dict && capacity > 0 ? fr_jinja_render_take(render, capacity, sizeof *entries) : NULL;
    if (!dict || (capacity > 0 && !entries)) return &none;
    dict->entries = entries;
    dict->capacity = capacity;
    return dict;
}

static bool same_key(fr_jinja_render *render, const fr_jinja_entry *entry, uint64_t hash, fr_jinja_value key) {
    if (entry->hash != hash || !fr_jinja_render_step(render, 0)) return false;
    if (key.kind == FR_KIND_STRING && entry->key.kind == FR_KIND_STRING)
        return fr_jinja_string_equal(entry->key.string, key.string);
    return fr_jinja_equal(render, entry->key, key);
}

static fr_jinja_entry *find_entry(fr_jinja_render *render, const fr_jinja_dict *dict, uint64_t hash,
                                  fr_jinja_value key) {
    if (!dict->index) {
        for (size_t i = 0; i < dict->count; i++)
            if (same_key(render, &dict->entries[i], hash, key)) return &dict->entries[i];
        return NULL;
    }
    size_t mask = dict->index_size - 1;
    for (size_t at = hash & mask; dict->index[at] && fr_jinja_render_step(render, 0); at = (at + 1) & mask) {
        fr_jinja_entry *entry = &dict->entries[dict->index[at] - 1];
        if (same_key(render, entry, hash, key)) return entry;
    }
    return NULL;
}

static void index_entry(fr_jinja_render *render, fr_jinja_dict *dict, size_t number) {
    size_t mask = dict->index_size - 1, at = dict->entries[number].hash & mask;
    while (dict->index[at] && fr_jinja_render_step(render, 0)) at = (at + 1) & mask;
    dict->index[at] = (uint32_t)number + 1;
}

/* Makes a new index for a dict. At most half of its slots will be used. */
static void index_all(fr_jinja_render *render, fr_jinja_dict *dict, size_t size) {
    uint32_t *index = fr_jinja_render_take(render, size, sizeof *index);
    if (!index) return;
    dict->index = index;
    dict->index_size = size;
    for (size_t i = 0; i < dict->count; i++) index_entry(render, dict, i);
}

static bool grow(fr_jinja_render *render, fr_jinja_dict *dict) {
    size_t capacity = dict->capacity ? 2 * dict->capacity : 4;
    if (dict->count < dict->capacity) return true;
    if (capacity > UINT32_MAX / 2) fr_jinja_render_fail(render, "a dict that is too large");
    fr_jinja_entry *entries = fr_jinja_render_take(render, capacity, sizeof *entries);
    if (!entries) return false;
    if (dict->count > 0) memcpy(entries, dict->entries, dict->count * sizeof *entries);
    dict->entries = entries;
    dict->capacity = capacity;
    return true;
}

void fr_jinja_dict_set(fr_jinja_render *render, fr_jinja_dict *dict, fr_jinja_value key, fr_jinja_value value) {
    uint64_t hash;
    if (fr_jinja_render_failed(render)) return;
    if (!hash_of(render, key, &hash)) {
        fr_jinja_render_fail(render, "unhashable type: '%s'", fr_jinja_kind_name(key.kind));
        return;
    }
    fr_jinja_entry *entry = find_entry(render, dict, hash, key);
    if (entry) entry->value = value;
    if (entry || !grow(render, dict)) return;
    dict->entries[dict->count++] = (fr_jinja_entry){key, value, hash};
    if (dict->index && 2 * dict->count <= dict->index_size)
        index_entry(render, dict, dict->count - 1);
    else if (dict->count > SEARCHED_ONE_BY_ONE)
        index_all(render, dict, dict->index ? 2 * dict->index_size : 4 * SEARCHED_ONE_BY_ONE);
}

const fr_jinja_entry *fr_jinja_dict_find(fr_jinja_render *render, const fr_jinja_dict *dict, fr_jinja_value key) {
    uint64_t hash;
    if (fr_jinja_render_failed(render) || dict->count == 0 || !hash_of(render, key, &hash)) return NULL;
    return find_entry(render, dict, hash, key);
}

const fr_jinja_entry *fr_jinja_dict_find_string(fr_jinja_render *render, const fr_jinja_dict *dict,
                                                const fr_jinja_string *key) {
    return fr_jinja_dict_find(render, dict, fr_jinja_of_string(key));
}
