/* Reads importance matrices (imatrix.h). */
#include "formats/imatrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/gguf.h"

/* ---------------------------------------------------------------------------------------------------------- entries */

static float float_at(const uint8_t *bytes, size_t index) {
    uint32_t bits = (uint32_t)fr_little_endian(bytes + index * sizeof bits, sizeof bits);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Adds an entry of that name with memory for `count` means. The caller has checked that the file has at least `count`
 * bytes, so a small file cannot demand much memory. */
static fr_status add_entry(fr_imatrix *imatrix, fr_text name, size_t count, fr_imatrix_entry **entry) {
    if (imatrix->count == imatrix->capacity) {
        size_t capacity = 2 * imatrix->capacity + 64;
        fr_imatrix_entry *entries = realloc(imatrix->entries, capacity * sizeof *entries);
        if (!entries) return fr_fail_memory("an importance matrix", capacity * sizeof *entries);
        imatrix->entries = entries;
        imatrix->capacity = capacity;
    }
    *entry = &imatrix->entries[imatrix->count++];
    **entry = (fr_imatrix_entry){strndup(name.bytes, name.length), malloc(count * sizeof(float)), count};
    if (!(*entry)->name || !(*entry)->means) return fr_fail_memory("an importance matrix", count * sizeof(float));
    return FR_OK;
}

/* Stores a mean: `sum`, a sum of squares, divided by `of`, the number of rows in the sum. */
static fr_status take_mean(const char *path, const fr_imatrix_entry *entry, size_t i, float sum, float of) {
    if (!(sum >= 0 && sum <= 0x1.fffffep127f))
        return fr_fail(FR_INPUT, "%s: %s has %g at index %zu, which is no sum of squares", path, entry->name,
                       (double)sum, i);
    float mean = of > 0 ? sum / of : sum;
    entry->means[i] = mean <= 0x1.fffffep127f ? mean : 0x1.fffffep127f;
    return FR_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const fr_imatrix_entry *)a)->name, ((const fr_imatrix_entry *)b)->name);
}

static fr_status sort(fr_imatrix *imatrix, const char *path) {
    if (imatrix->count == 0) return fr_fail(FR_INPUT, "%s has no tensor's importances", path);
    qsort(imatrix->entries, imatrix->count, sizeof *imatrix->entries, by_name);
    for (size_t i = 1; i < imatrix->count; i++)
        if (by_name(&imatrix->entries[i - 1], &imatrix->entries[i]) == 0)
            return fr_fail(FR_INPUT, "%s has %s twice", path, imatrix->entries[i].name);
    return FR_OK;
}

const fr_imatrix_entry *fr_imatrix_find(const fr_imatrix *imatrix, const char *name) {
    fr_imatrix_entry wanted = {.name = (char *)(uintptr_t)name};
    return bsearch(&wanted, imatrix->entries, imatrix->count, sizeof wanted, by_name);
}

void fr_imatrix_close(fr_imatrix *imatrix) {
    for (size_t i = 0; i < imatrix->count; i++) {
        free(imatrix->entries[i].name);
        free(imatrix->entries[i].means);
    }
    free(imatrix->entries);
    free(imatrix->dataset);
    *imatrix = (fr_imatrix){0};
}

static fr_status keep_dataset(fr_imatrix *imatrix, fr_text text) {
    if (text.length == 0 || memchr(text.bytes, 0, text.length)) return FR_OK;
    imatrix->dataset = strndup(text.bytes, text.length);
    return imatrix->dataset ? FR_OK : fr_fail_memory("a name", text.length);
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* If the name ends in `end`, returns the part of the name before `end`. Returns an empty text for any other name. */
static fr_text stem_of(const char *name, const char *end) {
    size_t length = strlen(name), tail = strlen(end);
    bool fits = length > tail && strcmp(name + length - tail, end) == 0;
    return (fr_text){name, fits ? length - tail : 0};
}

static size_t values_of(const fr_tensor *tensor) {
    return (size_t)(tensor->bytes / sizeof(float));
}

static fr_status take_sums(fr_imatrix *imatrix, const char *path, const fr_tensors *tensors, fr_text name,
                           const fr_tensor *sums) {
    char other[FR_IMATRIX_NAME_MAX + sizeof FR_IMATRIX_COUNTS];
    fr_imatrix_entry *entry;
    if (name.length > FR_IMATRIX_NAME_MAX) return fr_fail(FR_INPUT, "%s: the name %s is too long", path, sums->name);
    snprintf(other, sizeof other, "%.*s" FR_IMATRIX_COUNTS, FR_SHOW(name));
    const fr_tensor *counts = fr_tensors_find(tensors, other);
    if (!counts) return fr_fail(FR_INPUT, "%s has %s without %s", path, sums->name, other);
    if (sums->type != FR_F32 || counts->type != FR_F32)
        return fr_fail(FR_INPUT, "%s: %s and its counts must be F32", path, sums->name);
    size_t values = values_of(sums), matrices = values_of(counts);
    if (matrices == 0 || values == 0 || values % matrices)
        return fr_fail(FR_INPUT, "%s: %s has %zu values for %zu counts", path, sums->name, values, matrices);
    FR_TRY(add_entry(imatrix, name, values, &entry));
    for (size_t i = 0; i < values; i++) {
        float count = float_at(counts->data, i / (values / matrices));
        if (!(count >= 0 && count <= 0x1.fffffep127f))
            return fr_fail(FR_INPUT, "%s: %s has a count of %g", path, other, (double)count);
        FR_TRY(take_mean(path, entry, i, count > 0 ? float_at(sums->data, i) : 1, count));
    }
    return FR_OK;
}

static fr_status take_tensors(fr_imatrix *imatrix, const char *path, const fr_tensors *tensors) {
    for (size_t i = 0; i < tensors->count; i++) {
        const fr_tensor *tensor = &tensors->items[i];
        fr_text sums = stem_of(tensor->name, FR_IMATRIX_SUMS), counts = stem_of(tensor->name, FR_IMATRIX_COUNTS);
        char other[2 * FR_IMATRIX_NAME_MAX];
        if (sums.length > 0) FR_TRY(take_sums(imatrix, path, tensors, sums, tensor));
        if (counts.length == 0) continue;
        snprintf(other, sizeof other, "%.*s" FR_IMATRIX_SUMS, FR_SHOW(counts));
        if (!fr_tensors_find(tensors, other))
            return fr_fail(FR_INPUT, "%s has %s without its sums", path, tensor->name);
    }
    return FR_OK;
}

static fr_status take_keys(fr_imatrix *imatrix, const fr_gguf *gguf) {
    const fr_gguf_value *datasets;
    int64_t chunks, size;
    FR_TRY(fr_gguf_array(gguf, FR_IMATRIX_DATASETS, FR_GGUF_STRING, &datasets));
    if (!datasets || !fr_gguf_find(gguf, FR_IMATRIX_CHUNKS) || !fr_gguf_find(gguf, FR_IMATRIX_CHUNK_SIZE))
        return fr_fail(FR_INPUT, "%s is a GGUF file, but no importance matrix", gguf->path);
    FR_TRY(fr_gguf_int(gguf, FR_IMATRIX_CHUNKS, 0, UINT32_MAX, 0, &chunks));
    FR_TRY(fr_gguf_int(gguf, FR_IMATRIX_CHUNK_SIZE, 0, UINT32_MAX, 0, &size));
    imatrix->chunks = (uint32_t)chunks;
    size_t at = 0;
    return datasets->count > 0 ? keep_dataset(imatrix, fr_gguf_next(datasets, &at)) : FR_OK;
}

static fr_status read_gguf(fr_imatrix *imatrix, const fr_map *map) {
    fr_gguf gguf = {0};
    fr_tensors tensors = {0}, unread = {0};
    fr_status status = fr_gguf_read(&gguf, map, 0, &tensors, &unread);
    if (status == FR_OK) status = take_keys(imatrix, &gguf);
    if (status == FR_OK) status = take_tensors(imatrix, map->path, &tensors);
    fr_gguf_close(&gguf);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    return status;
}

/* --------------------------------------------------------------------------------------------------- the older form */

typedef struct cursor {
    const char *path;
    const uint8_t *bytes;
    size_t left;
} cursor;

static fr_status take(cursor *c, size_t size, const uint8_t **bytes) {
    if (size > c->left) return fr_fail(FR_INPUT, "%s ends too early for an importance matrix", c->path);
    *bytes = c->bytes;
    c->bytes += size;
    c->left -= size;
    return FR_OK;
}

/* Reads a count in [low, high]; `what` names the counted things in the error line. */
static fr_status take_count(cursor *c, const char *what, size_t low, size_t high, size_t *count) {
    const uint8_t *bytes = NULL;
    FR_TRY(take(c, 4, &bytes));
    int32_t number = (int32_t)(uint32_t)fr_little_endian(bytes, 4);
    if (number < 0 || (size_t)number < low || (size_t)number > high)
        return fr_fail(FR_INPUT, "%s is no importance matrix: %d %s", c->path, number, what);
    *count = (size_t)number;
    return FR_OK;
}

static fr_status take_old_entry(fr_imatrix *imatrix, cursor *c) {
    size_t length, calls, values;
    const uint8_t *name = NULL, *data = NULL;
    fr_imatrix_entry *entry;
    FR_TRY(take_count(c, "bytes of a name", 1, FR_IMATRIX_NAME_MAX, &length));
    FR_TRY(take(c, length, &name));
    if (memchr(name, 0, length)) return fr_fail(FR_INPUT, "%s has a NUL in a name", c->path);
    FR_TRY(take_count(c, "calls", 0, INT32_MAX, &calls));
    FR_TRY(take_count(c, "values", 1, INT32_MAX, &values));
    FR_TRY(take(c, values * sizeof(float), &data));
    FR_TRY(add_entry(imatrix, (fr_text){(const char *)name, length}, values, &entry));
    for (size_t i = 0; i < values; i++) FR_TRY(take_mean(c->path, entry, i, float_at(data, i), (float)calls));
    return FR_OK;
}

static fr_status read_old(fr_imatrix *imatrix, const fr_map *map) {
    cursor c = {map->path, map->bytes, map->size};
    size_t entries, chunks, length;
    const uint8_t *dataset = NULL;
    FR_TRY(take_count(&c, "entries", 1, FR_IMATRIX_ENTRIES_MAX, &entries));
    for (size_t i = 0; i < entries; i++) FR_TRY(take_old_entry(imatrix, &c));
    if (c.left == 0) return FR_OK;
    FR_TRY(take_count(&c, "chunks", 0, INT32_MAX, &chunks));
    imatrix->chunks = (uint32_t)chunks;
    if (c.left == 0) return FR_OK;
    FR_TRY(take_count(&c, "bytes of a text's name", 0, INT32_MAX, &length));
    FR_TRY(take(&c, length, &dataset));
    return keep_dataset(imatrix, (fr_text){(const char *)dataset, length});
}

/* --------------------------------------------------------------------------------------------------- the whole file */

static fr_status read_map(fr_imatrix *imatrix, const fr_map *map) {
    *imatrix = (fr_imatrix){0};
    bool gguf = map->size >= 4 && memcmp(map->bytes, "GGUF", 4) == 0;
    fr_status status = gguf ? read_gguf(imatrix, map) : read_old(imatrix, map);
    if (status == FR_OK) status = sort(imatrix, map->path);
    if (status != FR_OK) fr_imatrix_close(imatrix);
    return status;
}

fr_status fr_imatrix_open(fr_imatrix *imatrix, const char *path) {
    fr_map map;
    *imatrix = (fr_imatrix){0};
    FR_TRY(fr_map_open(&map, path, true));
    fr_status status = read_map(imatrix, &map);
    fr_map_close(&map);
    return status;
}

fr_status fr_imatrix_open_bytes(fr_imatrix *imatrix, const void *bytes, size_t size, const char *name) {
    fr_map map;
    *imatrix = (fr_imatrix){0};
    FR_TRY(fr_map_lend(&map, bytes, size, name));
    fr_status status = read_map(imatrix, &map);
    fr_map_close(&map);
    return status;
}
