/* Reads the safetensors header and checks all of it before it returns a tensor.
 *
 * In: a mapped file (layout: safetensors.h). Out: its tensors in the order of their bytes. The caller may rely on three
 * facts. Every tensor's bytes are inside the file. No byte belongs to two tensors. A tensor has as many bytes as its
 * type and shape need. */
#include "formats/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/json.h"

#define LENGTH_BYTES    8
#define HEADER_MAX      ((uint64_t)100000000)
#define NAME_LENGTH_MAX 256                   /* leaves room for the reason in an error line */
#define DIM_MAX         ((json_int_t)1 << 48) /* the limit of fr_dtype_row_bytes */

typedef struct entry {
    fr_tensor tensor;
    uint64_t begin, end; /* offsets, counted from the end of the header */
} entry;

typedef struct header {
    const fr_map *map;
    uint64_t data_begin, data_size; /* offset of the data in the file, and their size */
    entry *entries;
    size_t count;
} header;

static uint64_t read_u64(const uint8_t *bytes) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

static fr_status read_header(const fr_map *map, header *head, json_t **root) {
    const char *path = map->path;
    if (map->size < LENGTH_BYTES)
        return fr_fail(FR_INPUT, "%s: %zu bytes are too few for a safetensors file", path, map->size);
    FR_TRY(fr_map_fill(map, 0, LENGTH_BYTES));
    uint64_t length = read_u64(map->bytes);
    if (length > map->size - LENGTH_BYTES)
        return fr_fail(FR_INPUT, "%s: a header of %llu bytes in a file of %zu: cut short, or no safetensors file", path,
                       (unsigned long long)length, map->size);
    if (length > HEADER_MAX)
        return fr_fail(FR_INPUT, "%s: a header of %llu bytes, and at most %llu are read", path,
                       (unsigned long long)length, (unsigned long long)HEADER_MAX);
    head->data_begin = LENGTH_BYTES + length;
    head->data_size = map->size - head->data_begin;
    FR_TRY(fr_map_fill(map, LENGTH_BYTES, head->data_begin));
    const char *text = (const char *)map->bytes + LENGTH_BYTES;
    if (length == 0 || text[0] != '{') return fr_fail(FR_INPUT, "%s: the header is not a JSON object", path);
    return fr_json_parse(text, length, path, root);
}

static fr_status read_shape(const char *path, const json_t *json, fr_tensor *tensor) {
    size_t dims = json_array_size(json);
    if (!json_is_array(json)) return fr_fail(FR_INPUT, "%s: tensor %s: shape is not an array", path, tensor->name);
    if (dims > FR_DIMS_MAX)
        return fr_fail(FR_INPUT, "%s: tensor %s: %zu dimensions, and at most %d are read", path, tensor->name, dims,
                       FR_DIMS_MAX);
    for (size_t i = 0; i < dims; i++) {
        const json_t *dim = json_array_get(json, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0 || json_integer_value(dim) > DIM_MAX)
            return fr_fail(FR_INPUT, "%s: tensor %s: dimension %zu is no whole number from 0 to 2^48", path,
                           tensor->name, i);
        tensor->shape[i] = (uint64_t)json_integer_value(dim);
    }
    tensor->dims = (uint32_t)dims;
    return FR_OK;
}

static fr_status read_span(const header *head, const json_t *json, entry *item) {
    const char *path = head->map->path, *name = item->tensor.name;
    const json_t *begin = json_array_get(json, 0), *end = json_array_get(json, 1);
    if (json_array_size(json) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return fr_fail(FR_INPUT, "%s: tensor %s: data_offsets are not two whole numbers", path, name);
    json_int_t first = json_integer_value(begin), last = json_integer_value(end);
    if (first >= 0 && last >= first && (uint64_t)last > head->data_size)
        return fr_fail(FR_INPUT,
                       "%s: tensor %s: cut short: its data_offsets %lld to %lld go beyond the file's %llu "
                       "bytes of data: is its download finished?",
                       path, name, (long long)first, (long long)last, (unsigned long long)head->data_size);
    if (first < 0 || last < first)
        return fr_fail(FR_INPUT, "%s: tensor %s: data_offsets %lld to %lld in a file with %llu bytes of data", path,
                       name, (long long)first, (long long)last, (unsigned long long)head->data_size);
    item->begin = (uint64_t)first;
    item->end = (uint64_t)last;
    item->tensor.bytes = item->end - item->begin;
    item->tensor.data = head->map->bytes + head->data_begin + item->begin;
    return FR_OK;
}

/* Checks that the tensor's type and shape need exactly as many bytes as its span has. If their product overflows, the
 * span is too small for it. */
static fr_status check_size(const char *path, const fr_tensor *tensor) {
    uint64_t bytes = fr_dtype_row_bytes(tensor->type, 1);
    bool overflow = false;
    for (uint32_t i = 0; i < tensor->dims; i++) overflow |= __builtin_mul_overflow(bytes, tensor->shape[i], &bytes);
    if (!overflow && bytes == tensor->bytes) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s: its shape in %s does not take the %llu bytes of its data_offsets", path,
                   tensor->name, tensor->type_name, (unsigned long long)tensor->bytes);
}

static fr_status read_entry(const header *head, const char *name, const json_t *json, entry *item) {
    const char *path = head->map->path;
    *item = (entry){.tensor.name = name};
    if (strlen(name) > NAME_LENGTH_MAX)
        return fr_fail(FR_INPUT, "%s: a tensor name of %zu bytes, and at most %d are read", path, strlen(name),
                       NAME_LENGTH_MAX);
    if (!json_is_object(json)) return fr_fail(FR_INPUT, "%s: tensor %s is not an object", path, name);
    const char *type = json_string_value(json_object_get(json, "dtype"));
    if (!type) return fr_fail(FR_INPUT, "%s: tensor %s: dtype is not a string", path, name);
    item->tensor.type = fr_dtype_from_name(type);
    /* block types are GGUF's and unknown in this format */
    if (fr_dtype_block(item->tensor.type) > 1) item->tensor.type = FR_DTYPE_COUNT;
    item->tensor.type_name = type;
    FR_TRY(read_shape(path, json_object_get(json, "shape"), &item->tensor));
    FR_TRY(read_span(head, json_object_get(json, "data_offsets"), item));
    return item->tensor.type < FR_DTYPE_COUNT ? check_size(path, &item->tensor) : FR_OK;
}

static fr_status read_entries(header *head, json_t *root) {
    size_t count = json_object_size(root);
    head->entries = calloc(count + 1, sizeof *head->entries); /* + 1 because a file without tensors is valid */
    if (!head->entries) return fr_fail_memory(head->map->path, count * sizeof *head->entries);
    const char *name;
    json_t *value;
    json_object_foreach (root, name, value) {
        if (strcmp(name, "__metadata__") != 0)
            FR_TRY(read_entry(head, name, value, &head->entries[head->count++]));
        else if (!json_is_object(value))
            return fr_fail(FR_INPUT, "%s: __metadata__ is not an object", head->map->path);
    }
    return FR_OK;
}

static int by_span(const void *left, const void *right) {
    const entry *a = left, *b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

/* Sorts the spans. Checks that each span begins where the span before it ends, and that the last span ends with the
 * file. */
static fr_status check_cover(header *head) {
    const char *path = head->map->path;
    qsort(head->entries, head->count, sizeof *head->entries, by_span);
    uint64_t at = 0;
    for (size_t i = 0; i < head->count; i++) {
        const entry *item = &head->entries[i];
        if (item->begin != at)
            return fr_fail(FR_INPUT, "%s: tensor %s begins at byte %llu of the data, %s byte %llu", path,
                           item->tensor.name, (unsigned long long)item->begin,
                           item->begin < at ? "inside a tensor that ends at" : "after a hole from",
                           (unsigned long long)at);
        at = item->end;
    }
    if (at != head->data_size)
        return fr_fail(FR_INPUT, "%s: the tensors end at byte %llu of %llu bytes of data", path, (unsigned long long)at,
                       (unsigned long long)head->data_size);
    return FR_OK;
}

static fr_status read_tensors(header *head, json_t *root, uint32_t file, fr_tensors *tensors, fr_tensors *unread) {
    FR_TRY(read_entries(head, root));
    FR_TRY(check_cover(head));
    for (size_t i = 0; i < head->count; i++) {
        fr_tensor *tensor = &head->entries[i].tensor;
        tensor->file = file;
        FR_TRY(fr_tensors_add(tensor->type < FR_DTYPE_COUNT ? tensors : unread, tensor, head->map->path));
    }
    return FR_OK;
}

fr_status fr_safetensors_read(const fr_map *map, uint32_t file, fr_tensors *tensors, fr_tensors *unread) {
    header head = {.map = map};
    json_t *root = NULL;
    FR_TRY(read_header(map, &head, &root));
    fr_status status = read_tensors(&head, root, file, tensors, unread);
    free(head.entries);
    json_decref(root);
    return status;
}
