/* Implements model_tables.h: reads the tables of model files, and writes files with changed tables. */
#include "tests/fuzz/model_tables.h"

#include <jansson.h>
#include <stdarg.h>

enum {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_ALIGNMENT = 32
};

/* ---------------------------------------------------------------------------------------------------------- reading */

static void read_safetensors(model_table *t, const char *path) {
    uint64_t length;
    const char *name;
    json_t *entry;
    json_error_t error;
    memcpy(&length, t->file.bytes, sizeof length);
    json_t *root = json_loadb((const char *)t->file.bytes + sizeof length, length, JSON_REJECT_DUPLICATES, &error);
    if (!root) die("not read:", path);
    t->data_begin = sizeof length + length;
    t->tensors = calloc(json_object_size(root) + 1, sizeof *t->tensors);
    json_object_foreach (root, name, entry) {
        table_tensor *tensor = &t->tensors[t->tensor_count];
        const json_t *shape = json_object_get(entry, "shape"), *span = json_object_get(entry, "data_offsets");
        if (strcmp(name, "__metadata__") == 0) continue;
        snprintf(tensor->name, sizeof tensor->name, "%s", name);
        snprintf(tensor->type, sizeof tensor->type, "%s", json_string_value(json_object_get(entry, "dtype")));
        for (; tensor->dims < json_array_size(shape); tensor->dims++)
            tensor->shape[tensor->dims] = (uint64_t)json_integer_value(json_array_get(shape, tensor->dims));
        tensor->begin = (uint64_t)json_integer_value(json_array_get(span, 0));
        tensor->end = (uint64_t)json_integer_value(json_array_get(span, 1));
        t->tensor_count++;
    }
    json_decref(root);
}

typedef struct reader {
    const uint8_t *at;
} reader;

static uint64_t take(reader *r, size_t size) {
    uint64_t value = 0;
    memcpy(&value, r->at, size);
    r->at += size;
    return value;
}

static void take_string(reader *r, char *text, size_t size) {
    size_t length = take(r, 8);
    snprintf(text, size, "%.*s", (int)length, (const char *)r->at);
    r->at += length;
}

static void pass_value(reader *r, uint32_t type) {
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == GGUF_STRING) {
        size_t length = take(r, 8);
        r->at += length;
    } else if (type == GGUF_ARRAY) {
        uint32_t element = (uint32_t)take(r, 4);
        for (uint64_t count = take(r, 8); count > 0; count--) pass_value(r, element);
    } else {
        r->at += sizes[type];
    }
}

static size_t alignment_of(const model_table *t) {
    uint32_t alignment = GGUF_ALIGNMENT;
    for (size_t i = 0; i < t->key_count; i++)
        if (strcmp(t->keys[i].name, "general.alignment") == 0 && t->keys[i].type == GGUF_U32)
            memcpy(&alignment, t->keys[i].value, sizeof alignment);
    return alignment ? alignment : 1;
}

static void read_gguf(model_table *t) {
    reader r = {t->file.bytes + 8};
    t->tensor_count = take(&r, 8);
    t->key_count = take(&r, 8);
    t->tensors = calloc(t->tensor_count + 1, sizeof *t->tensors);
    t->keys = calloc(t->key_count + 1, sizeof *t->keys);
    for (size_t i = 0; i < t->key_count; i++) {
        take_string(&r, t->keys[i].name, sizeof t->keys[i].name);
        t->keys[i].type = (uint32_t)take(&r, 4);
        t->keys[i].value = r.at;
        pass_value(&r, t->keys[i].type);
        t->keys[i].size = (size_t)(r.at - t->keys[i].value);
    }
    for (size_t i = 0; i < t->tensor_count; i++) {
        table_tensor *tensor = &t->tensors[i];
        take_string(&r, tensor->name, sizeof tensor->name);
        tensor->dims = take(&r, 4);
        for (size_t d = 0; d < tensor->dims; d++) tensor->shape[d] = take(&r, 8);
        snprintf(tensor->type, sizeof tensor->type, "%u", (unsigned)take(&r, 4));
        tensor->begin = take(&r, 8);
    }
    size_t end = (size_t)(r.at - t->file.bytes), alignment = alignment_of(t);
    t->data_begin = (end + alignment - 1) / alignment * alignment;
}

void table_read(model_table *table, const char *path) {
    *table = (model_table){.file = read_blob(path)};
    table->gguf = table->file.size > 4 && memcmp(table->file.bytes, "GGUF", 4) == 0;
    if (table->gguf)
        read_gguf(table);
    else
        read_safetensors(table, path);
}

void table_free(model_table *table) {
    free(table->file.bytes);
    table_free_copy(table);
}

model_table table_copy(const model_table *from) {
    model_table copy = *from;
    size_t tensors = (from->tensor_count + 1) * sizeof *copy.tensors, keys = (from->key_count + 1) * sizeof *copy.keys;
    copy.tensors = memcpy(malloc(tensors), from->tensors, tensors - sizeof *copy.tensors);
    copy.keys = malloc(keys);
    if (from->key_count) memcpy(copy.keys, from->keys, keys - sizeof *copy.keys);
    return copy;
}

void table_free_copy(model_table *table) {
    free(table->tensors);
    free(table->keys);
}

/* ---------------------------------------------------------------------------------------------------------- writing */

typedef struct writer {
    blob out;
    size_t capacity;
} writer;

static void put(writer *w, const void *bytes, size_t size) {
    if (w->out.size + size > w->capacity) {
        w->capacity = 2 * (w->out.size + size);
        w->out.bytes = realloc(w->out.bytes, w->capacity);
        if (!w->out.bytes) die("no memory for", "a file");
    }
    memcpy(w->out.bytes + w->out.size, bytes, size);
    w->out.size += size;
}

static void put_number(writer *w, uint64_t value, size_t size) {
    put(w, &value, size);
}

static void put_string(writer *w, const char *text) {
    put_number(w, strlen(text), 8);
    put(w, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void put_text(writer *w, const char *format, ...) {
    char text[1024];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    put(w, text, (size_t)length);
}

/* A written file leaves out the data between t->hole and t->hole_end. Returns the offset that `offset` becomes in a
 * written file. */
static uint64_t moved(const model_table *t, uint64_t offset) {
    return offset >= t->hole_end ? offset - (t->hole_end - t->hole) : offset;
}

static void write_safetensors(const model_table *t, writer *w) {
    put_number(w, 0, 8);
    put_text(w, "{");
    for (size_t i = 0; i < t->tensor_count; i++) {
        const table_tensor *tensor = &t->tensors[i];
        put_text(w, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "", tensor->name, tensor->type);
        for (size_t d = 0; d < tensor->dims; d++)
            put_text(w, "%s%llu", d ? "," : "", (unsigned long long)tensor->shape[d]);
        put_text(w, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)moved(t, tensor->begin),
                 (unsigned long long)moved(t, tensor->end));
    }
    put_text(w, "}");
    uint64_t length = w->out.size - 8;
    memcpy(w->out.bytes, &length, sizeof length);
}

static void write_gguf(const model_table *t, writer *w) {
    put(w, t->file.bytes, 8);
    put_number(w, t->tensor_count, 8);
    put_number(w, t->key_count, 8);
    for (size_t i = 0; i < t->key_count; i++) {
        put_string(w, t->keys[i].name);
        put_number(w, t->keys[i].type, 4);
        put(w, t->keys[i].value, t->keys[i].size);
    }
    for (size_t i = 0; i < t->tensor_count; i++) {
        const table_tensor *tensor = &t->tensors[i];
        put_string(w, tensor->name);
        put_number(w, tensor->dims, 4);
        for (size_t d = 0; d < tensor->dims; d++) put_number(w, tensor->shape[d], 8);
        put_number(w, strtoul(tensor->type, NULL, 10), 4);
        put_number(w, tensor->begin, 8);
    }
    for (size_t alignment = alignment_of(t); w->out.size % alignment && w->out.size < 1 << 20;) put_number(w, 0, 1);
}

blob table_write(const model_table *table) {
    writer w = {0};
    if (table->gguf)
        write_gguf(table, &w);
    else
        write_safetensors(table, &w);
    const uint8_t *data = table->file.bytes + table->data_begin;
    put(&w, data, table->hole);
    put(&w, data + table->hole_end, table->file.size - table->data_begin - table->hole_end);
    return w.out;
}
