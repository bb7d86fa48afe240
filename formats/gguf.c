/* Reads GGUF's header and checks all of it before it returns a value or a tensor.
 *
 * In: a mapped file (layout: gguf.h). Out: fr_gguf and tensors in the order of their bytes. The caller may rely on two
 * facts: every value and every tensor is inside the file, and a tensor has as many bytes as its type and shape
 * need. */
#include "formats/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "quant/packed.h"

#define NAME_LENGTH_MAX  256
#define ARCHITECTURE_MAX 64
#define DIM_MAX          ((uint64_t)1 << 48) /* largest dimension, the limit of fr_dtype_row_bytes */
#define ALIGNMENT_MAX    ((int64_t)1 << 20)
#define FILL_STEP        ((size_t)1 << 20) /* at least this many bytes are filled at a time */
#define SMALLEST_KEY     (8 + 1 + 4 + 1)   /* a name of one byte and a value of one byte, with their lengths and type */
#define SMALLEST_TENSOR  (8 + 1 + 4 + 0 + 4 + 8) /* a name of one byte, no dimensions, a type and an offset */

/* -------------------------------------------------------------------------------------------- reading in file order */

/* Holds a reading position in the file. The file may not be mapped, so each range is filled (fr_map_fill) before it is
 * read. */
typedef struct cursor {
    const fr_map *map;
    size_t at, filled; /* at: the next byte to read; filled: the end of the bytes that were filled */
    const char *kind;  /* "key" or "tensor" once the name of a key or tensor was read; "" before that */
    fr_text name;
} cursor;

static fr_status take(cursor *c, uint64_t n, const char *what, const uint8_t **bytes) {
    size_t left = c->map->size - c->at;
    if (n > left)
        return fr_fail(FR_INPUT, "%s: %s%s%.*s%scut short: %llu bytes for %s at byte %zu of %zu", c->map->path, c->kind,
                       *c->kind ? " " : "", FR_SHOW(c->name), *c->kind ? ": " : "", (unsigned long long)n, what, c->at,
                       c->map->size);
    if (c->at + n > c->filled) {
        size_t ahead = n < FILL_STEP ? FILL_STEP : n, end = c->at + (ahead < left ? ahead : left);
        FR_TRY(fr_map_fill(c->map, c->filled, end));
        c->filled = end;
    }
    *bytes = c->map->bytes + c->at;
    c->at += n;
    return FR_OK;
}

static fr_status take_u32(cursor *c, const char *what, uint32_t *value) {
    const uint8_t *bytes;
    FR_TRY(take(c, 4, what, &bytes));
    *value = (uint32_t)fr_little_endian(bytes, 4);
    return FR_OK;
}

static fr_status take_u64(cursor *c, const char *what, uint64_t *value) {
    const uint8_t *bytes;
    FR_TRY(take(c, 8, what, &bytes));
    *value = fr_little_endian(bytes, 8);
    return FR_OK;
}

static fr_status take_string(cursor *c, const char *what, fr_text *text) {
    uint64_t length;
    const uint8_t *bytes;
    FR_TRY(take_u64(c, what, &length));
    FR_TRY(take(c, length, what, &bytes));
    *text = (fr_text){(const char *)bytes, (size_t)length};
    return FR_OK;
}

/* Reads the name of a key or a tensor. Error lines use this name until the next name is read. */
static fr_status take_name(cursor *c, const char *kind, const char *what, fr_text *name) {
    c->kind = "";
    c->name = (fr_text){"", 0};
    FR_TRY(take_string(c, what, name));
    if (name->length == 0 || name->length > NAME_LENGTH_MAX)
        return fr_fail(FR_INPUT, "%s: %s of %zu bytes, expected 1 to %d", c->map->path, what, name->length,
                       NAME_LENGTH_MAX);
    if (memchr(name->bytes, 0, name->length))
        return fr_fail(FR_INPUT, "%s: %s has a zero byte in it", c->map->path, what);
    c->kind = kind;
    c->name = *name;
    return FR_OK;
}

/* --------------------------------------------------------------------------------------------------------- metadata */

static fr_status take_strings(cursor *c, fr_gguf_value *value) {
    size_t begin = c->at;
    fr_text text;
    for (uint64_t i = 0; i < value->count; i++) FR_TRY(take_string(c, "a string of an array", &text));
    value->data = c->map->bytes + begin;
    value->bytes = c->at - begin;
    return FR_OK;
}

/* Reads `count` elements of the value's element type. */
static fr_status take_elements(cursor *c, fr_gguf_value *value) {
    size_t size = fr_gguf_element_bytes(value->element);
    uint64_t bytes;
    if (size == 0) return take_strings(c, value);
    if (__builtin_mul_overflow(value->count, size, &bytes)) bytes = UINT64_MAX;
    FR_TRY(take(c, bytes, "a value", &value->data));
    value->bytes = (size_t)bytes;
    for (size_t i = 0; value->element == FR_GGUF_BOOL && i < value->bytes; i++)
        if (value->data[i] > 1)
            return fr_fail(FR_INPUT, "%s: key %.*s: a boolean is %d", c->map->path, FR_SHOW(value->key),
                           value->data[i]);
    return FR_OK;
}

static fr_status take_value(cursor *c, fr_gguf_value *value) {
    uint32_t type;
    FR_TRY(take_name(c, "key", "a key", &value->key));
    FR_TRY(take_u32(c, "a value's type", &type));
    bool array = type == FR_GGUF_ARRAY;
    value->type = type;
    value->count = 1;
    if (array) {
        FR_TRY(take_u32(c, "an array's type", &type));
        FR_TRY(take_u64(c, "an array's length", &value->count));
    }
    if (type >= FR_GGUF_TYPES || type == FR_GGUF_ARRAY)
        return fr_fail(FR_INPUT, "%s: key %.*s: %s type %u is not read", c->map->path, FR_SHOW(value->key),
                       array ? "an array's" : "a value's", type);
    value->element = type;
    if (type != FR_GGUF_STRING || array) return take_elements(c, value);
    fr_text text;
    FR_TRY(take_string(c, "a string", &text));
    value->data = (const uint8_t *)text.bytes;
    value->bytes = text.length;
    return FR_OK;
}

static int by_key(const void *left, const void *right, void *values) {
    const fr_gguf_value *v = values;
    return fr_text_compare(v[*(const uint32_t *)left].key, v[*(const uint32_t *)right].key);
}

static fr_status sort_keys(fr_gguf *gguf) {
    gguf->by_key = calloc(gguf->count + 1, sizeof *gguf->by_key);
    if (!gguf->by_key) return fr_fail_memory("a list of keys", gguf->count * sizeof *gguf->by_key);
    for (size_t i = 0; i < gguf->count; i++) gguf->by_key[i] = (uint32_t)i;
    qsort_r(gguf->by_key, gguf->count, sizeof *gguf->by_key, by_key, gguf->values);
    for (size_t i = 1; i < gguf->count; i++)
        if (by_key(&gguf->by_key[i - 1], &gguf->by_key[i], gguf->values) == 0)
            return fr_fail(FR_INPUT, "%s: key %.*s stands twice", gguf->path,
                           FR_SHOW(gguf->values[gguf->by_key[i]].key));
    return FR_OK;
}

static fr_status read_values(fr_gguf *gguf, cursor *c, uint64_t count) {
    if (count > FR_GGUF_KEYS_MAX || count > (c->map->size - c->at) / SMALLEST_KEY)
        return fr_fail(FR_INPUT, "%s: %llu keys in a file of %zu bytes: more than fit, or than are read (%zu)",
                       gguf->path, (unsigned long long)count, c->map->size, FR_GGUF_KEYS_MAX);
    gguf->values = calloc(count + 1, sizeof *gguf->values);
    if (!gguf->values) return fr_fail_memory("a list of keys", count * sizeof *gguf->values);
    gguf->count = count;
    for (size_t i = 0; i < count; i++) FR_TRY(take_value(c, &gguf->values[i]));
    return sort_keys(gguf);
}

static fr_status read_general(fr_gguf *gguf) {
    fr_text architecture;
    int64_t alignment;
    FR_TRY(fr_gguf_text(gguf, "general.architecture", &architecture));
    if (architecture.length > ARCHITECTURE_MAX ||
        (architecture.bytes && memchr(architecture.bytes, 0, architecture.length)))
        return fr_fail(FR_INPUT, "%s: key general.architecture is no name of at most %d bytes", gguf->path,
                       ARCHITECTURE_MAX);
    gguf->architecture = strndup(architecture.bytes ? architecture.bytes : "", architecture.length);
    if (!gguf->architecture) return fr_fail_memory("a name", architecture.length);
    FR_TRY(fr_gguf_int(gguf, "general.alignment", 1, ALIGNMENT_MAX, FR_GGUF_ALIGNMENT, &alignment));
    if (alignment & (alignment - 1))
        return fr_fail(FR_INPUT, "%s: key general.alignment is %lld, no power of two", gguf->path,
                       (long long)alignment);
    gguf->alignment = (uint64_t)alignment;
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

#define NO_ID UINT32_MAX

static const uint32_t type_ids[FR_DTYPE_COUNT] = {
    [FR_F32] = 0,         [FR_F16] = 1,     [FR_BF16] = 30,      [FR_Q8_0] = 8,     [FR_Q4_0] = 2,    [FR_Q4_1] = 3,
    [FR_Q5_0] = 6,        [FR_Q5_1] = 7,    [FR_IQ4_NL] = 20,    [FR_MXFP4] = 39,   [FR_Q4_K] = 12,   [FR_Q5_K] = 13,
    [FR_Q6_K] = 14,       [FR_IQ4_XS] = 23, [FR_Q2_K] = 10,      [FR_Q3_K] = 11,    [FR_IQ1_S] = 19,  [FR_IQ1_M] = 29,
    [FR_IQ2_XXS] = 16,    [FR_IQ2_XS] = 17, [FR_IQ2_S] = 22,     [FR_IQ3_XXS] = 18, [FR_IQ3_S] = 21,  [FR_TQ1_0] = 34,
    [FR_TQ2_0] = 35,      [FR_NVFP4] = 40,  [FR_Q1_0] = 41,      [FR_I32] = 26,     [FR_I64] = 27,    [FR_U8] = NO_ID,
    [FR_F8_E4M3] = NO_ID, [FR_Q2_0] = 42,   [FR_STORED] = NO_ID, [FR_I8] = NO_ID,   [FR_U32] = NO_ID, [FR_PQ2_0] = 142,
    [FR_PTQ1_0] = 143,
};

uint32_t fr_gguf_type_id(fr_dtype type, bool packed) {
    if (!packed) return type_ids[type];
    return type_ids[type] | (type == FR_Q1_0 || type == FR_Q2_0 ? FR_GGUF_PACKED_ANEW : FR_GGUF_PACKED);
}

fr_dtype fr_gguf_dtype(uint32_t id, bool *packed) {
    uint32_t layout = id & 0xFFFF0000;
    fr_dtype type = FR_F32;
    *packed = layout == FR_GGUF_PACKED || layout == FR_GGUF_PACKED_ANEW;
    while (type < FR_DTYPE_COUNT && (type_ids[type] == NO_ID || fr_gguf_type_id(type, *packed) != id)) type++;
    return *packed && type < FR_DTYPE_COUNT && !fr_packs(type) ? FR_DTYPE_COUNT : type;
}

typedef struct entry {
    fr_text name;
    fr_tensor tensor;
    uint64_t offset; /* offset of the tensor's data, counted from data_begin */
    uint32_t type_id;
} entry;

typedef struct header {
    const fr_map *map;
    uint64_t data_begin, data_size, alignment;
    entry *entries;
    size_t count;
} header;

static fr_status take_shape(cursor *c, entry *item) {
    fr_tensor *tensor = &item->tensor;
    FR_TRY(take_u32(c, "a tensor's dimensions", &tensor->dims));
    if (tensor->dims > FR_GGUF_DIMS_MAX)
        return fr_fail(FR_INPUT, "%s: tensor %.*s: %u dimensions, and at most %d are read", c->map->path,
                       FR_SHOW(item->name), tensor->dims, FR_GGUF_DIMS_MAX);
    for (uint32_t i = tensor->dims; i-- > 0;) {
        FR_TRY(take_u64(c, "a tensor's shape", &tensor->shape[i]));
        if (tensor->shape[i] > DIM_MAX)
            return fr_fail(FR_INPUT, "%s: tensor %.*s: a dimension of %llu, and at most 2^48 is read", c->map->path,
                           FR_SHOW(item->name), (unsigned long long)tensor->shape[i]);
    }
    return FR_OK;
}

/* Computes the bytes that type and shape need. If the number overflows, it becomes larger than any file. */
static fr_status measure(const char *path, entry *item) {
    fr_tensor *tensor = &item->tensor;
    uint64_t cols = tensor->dims ? tensor->shape[tensor->dims - 1] : 1;
    size_t block = fr_dtype_block(tensor->type);
    if (cols % block)
        return fr_fail(FR_INPUT, "%s: tensor %.*s: rows of %llu values are no multiple of %s's blocks of %zu", path,
                       FR_SHOW(item->name), (unsigned long long)cols, fr_dtype_name(tensor->type), block);
    uint64_t bytes = tensor->packed ? fr_packed_row_bytes(tensor->type, cols) : fr_dtype_row_bytes(tensor->type, cols);
    bool overflow = false;
    for (uint32_t i = 0; i + 1 < tensor->dims; i++) {
        uint64_t n = tensor->shape[i];
        bool of_rows = i + 2 == tensor->dims;
        if (tensor->packed && of_rows) n = (n + FR_TILE_FEATURES - 1) / FR_TILE_FEATURES * FR_TILE_FEATURES;
        overflow |= __builtin_mul_overflow(bytes, n, &bytes);
    }
    tensor->bytes = overflow ? UINT64_MAX : bytes;
    return FR_OK;
}

static fr_status take_tensor(cursor *c, entry *item) {
    fr_tensor *tensor = &item->tensor;
    FR_TRY(take_name(c, "tensor", "a tensor's name", &item->name));
    FR_TRY(take_shape(c, item));
    FR_TRY(take_u32(c, "a tensor's type", &item->type_id));
    FR_TRY(take_u64(c, "a tensor's offset", &item->offset));
    tensor->type = fr_gguf_dtype(item->type_id, &tensor->packed);
    if (tensor->packed && tensor->dims < 2)
        return fr_fail(FR_INPUT, "%s: tensor %.*s is packed, and no matrix", c->map->path, FR_SHOW(item->name));
    return tensor->type < FR_DTYPE_COUNT ? measure(c->map->path, item) : FR_OK;
}

static fr_status take_tensors(header *head, cursor *c, uint64_t count) {
    if (count > FR_GGUF_TENSORS_MAX || count > (c->map->size - c->at) / SMALLEST_TENSOR)
        return fr_fail(FR_INPUT, "%s: %llu tensors in a file of %zu bytes: more than fit, or than are read (%zu)",
                       c->map->path, (unsigned long long)count, c->map->size, FR_GGUF_TENSORS_MAX);
    head->entries = calloc(count + 1, sizeof *head->entries);
    if (!head->entries) return fr_fail_memory(c->map->path, count * sizeof *head->entries);
    head->count = count;
    for (size_t i = 0; i < count; i++) FR_TRY(take_tensor(c, &head->entries[i]));
    return FR_OK;
}

/* Finds where the tensors' data begin: at the next multiple of the alignment. A file without tensors may end before
 * that place. */
static void find_data(header *head, size_t at) {
    size_t begin = (at + head->alignment - 1) & ~(size_t)(head->alignment - 1);
    head->data_begin = begin < head->map->size ? begin : head->map->size;
    head->data_size = head->map->size - head->data_begin;
}

static int by_offset(const void *left, const void *right) {
    const entry *a = left, *b = right;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    return (a->tensor.bytes > b->tensor.bytes) - (a->tensor.bytes < b->tensor.bytes);
}

/* Changes the type of Q2_0 tensors to PQ2_0 if their offsets show that their blocks have 128 values. The first ternary
 * Bonsai models have such tensors: PrismML's type had the number that llama.cpp later gave to Q2_0, whose blocks have
 * 64 values. The change is made under two conditions. First, each of these tensors, read as PQ2_0 and padded, ends
 * exactly where the next tensor begins or the file ends. Second, at least one of them would be too large if it were
 * read as Q2_0. */
static void take_wide_q2_0(header *head) {
    bool shown = false;
    for (size_t i = 0; i < head->count; i++) {
        const entry *item = &head->entries[i];
        const fr_tensor *tensor = &item->tensor;
        if (tensor->type != FR_Q2_0 || tensor->packed) continue;
        uint64_t end = i + 1 < head->count ? head->entries[i + 1].offset : head->data_size;
        if (tensor->dims == 0 || tensor->shape[tensor->dims - 1] % fr_dtype_block(FR_PQ2_0) || end < item->offset)
            return;
        uint64_t room = end - item->offset, wide = tensor->bytes / 36 * 34;
        bool last = i + 1 == head->count;
        if (wide > room || (!last && room - wide >= head->alignment)) return;
        shown |= tensor->bytes > room;
    }
    for (size_t i = 0; shown && i < head->count; i++) {
        fr_tensor *tensor = &head->entries[i].tensor;
        if (tensor->type != FR_Q2_0 || tensor->packed) continue;
        tensor->type = FR_PQ2_0;
        tensor->bytes = tensor->bytes / 36 * 34; /* PQ2_0 takes 34 bytes for 128 values, where Q2_0 takes 36 */
    }
}

/* Sorts the tensors by offset. Checks that each is inside the file and begins after the end of the tensor before it. A
 * tensor of an unsupported type has an unknown size, which counts as 0. */
static fr_status place(header *head) {
    const char *path = head->map->path;
    qsort(head->entries, head->count, sizeof *head->entries, by_offset);
    take_wide_q2_0(head);
    uint64_t end = 0;
    const entry *before = head->entries;
    for (size_t i = 0; i < head->count; i++) {
        entry *item = &head->entries[i];
        if (item->offset % head->alignment)
            return fr_fail(FR_INPUT, "%s: tensor %.*s: offset %llu is no multiple of the alignment %llu", path,
                           FR_SHOW(item->name), (unsigned long long)item->offset, (unsigned long long)head->alignment);
        if (item->offset > head->data_size || item->tensor.bytes > head->data_size - item->offset)
            return fr_fail(FR_INPUT,
                           "%s: tensor %.*s: cut short: its data at offset %llu go beyond the file's %llu bytes: "
                           "is its download finished?",
                           path, FR_SHOW(item->name), (unsigned long long)item->offset,
                           (unsigned long long)head->data_size);
        if (item->offset < end)
            return fr_fail(FR_INPUT, "%s: tensor %.*s: offset %llu is inside tensor %.*s, which ends at %llu", path,
                           FR_SHOW(item->name), (unsigned long long)item->offset, FR_SHOW(before->name),
                           (unsigned long long)end);
        end = item->offset + item->tensor.bytes;
        before = item;
        item->tensor.data = head->map->bytes + head->data_begin + item->offset;
    }
    return FR_OK;
}

static fr_status add_tensors(const header *head, uint32_t file, fr_tensors *tensors, fr_tensors *unread) {
    for (size_t i = 0; i < head->count; i++) {
        entry *item = &head->entries[i];
        char name[NAME_LENGTH_MAX + 1], type[32];
        bool read = item->tensor.type < FR_DTYPE_COUNT;
        snprintf(name, sizeof name, "%.*s", FR_SHOW(item->name));
        snprintf(type, sizeof type, "GGUF %u", item->type_id);
        item->tensor.name = name;
        item->tensor.type_name = read ? NULL : type;
        item->tensor.file = file;
        FR_TRY(fr_tensors_add(read ? tensors : unread, &item->tensor, head->map->path));
    }
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------- file */

static fr_status check_magic(cursor *c, fr_gguf *gguf) {
    const uint8_t *magic = (const uint8_t *)"";
    if (c->map->size >= 4) FR_TRY(take(c, 4, "the magic number", &magic));
    if (strncmp((const char *)magic, "GGUF", 4) != 0)
        return fr_fail(FR_INPUT, "%s is neither a GGUF file nor a folder with config.json and model.safetensors",
                       c->map->path);
    FR_TRY(take_u32(c, "the version", &gguf->version));
    if (gguf->version == 2 || gguf->version == 3) return FR_OK;
    if (gguf->version == 2u << 24 || gguf->version == 3u << 24)
        return fr_fail(FR_INPUT, "%s: a big-endian GGUF file, and little-endian ones are read", c->map->path);
    return fr_fail(FR_INPUT, "%s: GGUF version %u, and 2 and 3 are read", c->map->path, gguf->version);
}

static fr_status read_all(fr_gguf *gguf, header *head, uint32_t file, fr_tensors *tensors, fr_tensors *unread) {
    cursor c = {.map = head->map, .kind = "", .name = {"", 0}};
    uint64_t tensor_count, key_count;
    FR_TRY(check_magic(&c, gguf));
    FR_TRY(take_u64(&c, "the tensor count", &tensor_count));
    FR_TRY(take_u64(&c, "the key count", &key_count));
    FR_TRY(read_values(gguf, &c, key_count));
    FR_TRY(read_general(gguf));
    head->alignment = gguf->alignment;
    FR_TRY(take_tensors(head, &c, tensor_count));
    find_data(head, c.at);
    gguf->data_begin = head->data_begin;
    FR_TRY(place(head));
    return add_tensors(head, file, tensors, unread);
}

fr_status fr_gguf_read(fr_gguf *gguf, const fr_map *map, uint32_t file, fr_tensors *tensors, fr_tensors *unread) {
    header head = {.map = map};
    *gguf = (fr_gguf){.path = map->path};
    fr_status status = read_all(gguf, &head, file, tensors, unread);
    free(head.entries);
    if (status != FR_OK) fr_gguf_close(gguf);
    return status;
}

void fr_gguf_close(fr_gguf *gguf) {
    free(gguf->values);
    free(gguf->by_key);
    free(gguf->architecture);
    *gguf = (fr_gguf){0};
}
