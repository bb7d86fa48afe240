/* Writes the bytes of a GGUF file in file order (gguf_write.h). */
#include "formats/gguf_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "quant/packed.h"

#define VERSION 3

/* ------------------------------------------------------------------------------------------------------------ bytes */

static void append(fr_gguf_writer *writer, fr_bytes *bytes, const void *data, size_t size) {
    if (writer->status != FR_OK) return;
    if (bytes->capacity - bytes->size < size) {
        size_t capacity = 2 * bytes->capacity + size + 256;
        uint8_t *grown = realloc(bytes->data, capacity);
        if (!grown) {
            writer->status = fr_fail_memory("the head of a GGUF file", capacity);
            return;
        }
        bytes->data = grown;
        bytes->capacity = capacity;
    }
    if (size > 0) memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

/* Appends an unsigned integer of `size` bytes, lowest byte first. */
static void append_integer(fr_gguf_writer *writer, fr_bytes *bytes, uint64_t value, size_t size) {
    uint8_t little[8];
    for (size_t i = 0; i < size; i++) little[i] = (uint8_t)(value >> 8 * i);
    append(writer, bytes, little, size);
}

static void append_text(fr_gguf_writer *writer, fr_bytes *bytes, fr_text text) {
    append_integer(writer, bytes, text.length, 8);
    append(writer, bytes, text.bytes, text.length);
}

/* --------------------------------------------------------------------------------------------------------- metadata */

static void begin_key(fr_gguf_writer *writer, const char *key, fr_gguf_type type) {
    size_t below = key[0] == '.' ? strlen(writer->architecture) : 0;
    append_integer(writer, &writer->keys, below + strlen(key), 8);
    append(writer, &writer->keys, writer->architecture, below);
    append(writer, &writer->keys, key, strlen(key));
    append_integer(writer, &writer->keys, type, 4);
    writer->key_count++;
}

void fr_gguf_writer_open(fr_gguf_writer *writer, FILE *out, const char *architecture) {
    *writer = (fr_gguf_writer){.out = out, .architecture = architecture};
    if (architecture) fr_gguf_put_string(writer, "general.architecture", architecture);
}

void fr_gguf_writer_close(fr_gguf_writer *writer) {
    free(writer->keys.data);
    free(writer->tensors.data);
    free(writer->sizes.data);
    *writer = (fr_gguf_writer){0};
}

void fr_gguf_put_text(fr_gguf_writer *writer, const char *key, fr_text value) {
    begin_key(writer, key, FR_GGUF_STRING);
    fr_gguf_add_text(writer, value);
}

void fr_gguf_put_string(fr_gguf_writer *writer, const char *key, const char *value) {
    fr_gguf_put_text(writer, key, (fr_text){value, strlen(value)});
}

void fr_gguf_put_u32(fr_gguf_writer *writer, const char *key, uint32_t value) {
    begin_key(writer, key, FR_GGUF_U32);
    fr_gguf_add_u32(writer, value);
}

void fr_gguf_put_i32(fr_gguf_writer *writer, const char *key, int32_t value) {
    begin_key(writer, key, FR_GGUF_I32);
    fr_gguf_add_u32(writer, (uint32_t)value);
}

void fr_gguf_put_f32(fr_gguf_writer *writer, const char *key, float value) {
    begin_key(writer, key, FR_GGUF_F32);
    fr_gguf_add_f32(writer, value);
}

void fr_gguf_put_bool(fr_gguf_writer *writer, const char *key, bool value) {
    begin_key(writer, key, FR_GGUF_BOOL);
    fr_gguf_add_bool(writer, value);
}

void fr_gguf_put_value(fr_gguf_writer *writer, const fr_gguf_value *value) {
    append_text(writer, &writer->keys, value->key);
    append_integer(writer, &writer->keys, value->type, 4);
    writer->key_count++;
    if (value->type == FR_GGUF_ARRAY) {
        append_integer(writer, &writer->keys, value->element, 4);
        append_integer(writer, &writer->keys, value->count, 8);
    }
    if (value->type == FR_GGUF_STRING) append_integer(writer, &writer->keys, value->bytes, 8);
    append(writer, &writer->keys, value->data, value->bytes);
}

void fr_gguf_put_array(fr_gguf_writer *writer, const char *key, fr_gguf_type element, uint64_t count) {
    begin_key(writer, key, FR_GGUF_ARRAY);
    append_integer(writer, &writer->keys, element, 4);
    append_integer(writer, &writer->keys, count, 8);
}

void fr_gguf_add_text(fr_gguf_writer *writer, fr_text value) {
    append_text(writer, &writer->keys, value);
}

void fr_gguf_add_u32(fr_gguf_writer *writer, uint32_t value) {
    append_integer(writer, &writer->keys, value, 4);
}

void fr_gguf_add_f32(fr_gguf_writer *writer, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    fr_gguf_add_u32(writer, bits);
}

void fr_gguf_add_bool(fr_gguf_writer *writer, bool value) {
    append_integer(writer, &writer->keys, value, 1);
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

static uint64_t aligned(uint64_t size) {
    return (size + FR_GGUF_ALIGNMENT - 1) / FR_GGUF_ALIGNMENT * FR_GGUF_ALIGNMENT;
}

void fr_gguf_put_tensor(fr_gguf_writer *writer, const char *name, fr_dtype type, bool packed, uint32_t dims,
                        const uint64_t *shape) {
    uint64_t cols = dims ? shape[dims - 1] : 1, rows = dims > 1 ? shape[dims - 2] : 1;
    uint64_t size = packed ? fr_packed_row_bytes(type, cols) : fr_dtype_row_bytes(type, cols);
    if (packed) rows = (rows + FR_TILE_FEATURES - 1) / FR_TILE_FEATURES * FR_TILE_FEATURES;
    append_text(writer, &writer->tensors, (fr_text){name, strlen(name)});
    append_integer(writer, &writer->tensors, dims, 4);
    for (uint32_t i = dims; i-- > 0;) {
        append_integer(writer, &writer->tensors, shape[i], 8);
        if (i + 2 < dims) size *= shape[i];
    }
    size *= rows;
    append_integer(writer, &writer->tensors, fr_gguf_type_id(type, packed), 4);
    append_integer(writer, &writer->tensors, writer->data_size, 8);
    append(writer, &writer->sizes, &size, sizeof size);
    writer->tensor_count++;
    writer->data_size += aligned(size);
}

static fr_status put_out(fr_gguf_writer *writer, const void *bytes, size_t count) {
    if (count > 0 && writer->status == FR_OK && fwrite(bytes, 1, count, writer->out) != count)
        writer->status = fr_fail(FR_MACHINE, "the GGUF file can't be written: %m");
    return writer->status;
}

static fr_status pad(fr_gguf_writer *writer, uint64_t size) {
    static const uint8_t zeros[FR_GGUF_ALIGNMENT];
    return put_out(writer, zeros, aligned(size) - size);
}

fr_status fr_gguf_write_header(fr_gguf_writer *writer) {
    fr_bytes head = {0};
    append(writer, &head, "GGUF", 4);
    append_integer(writer, &head, VERSION, 4);
    append_integer(writer, &head, writer->tensor_count, 8);
    append_integer(writer, &head, writer->key_count, 8);
    put_out(writer, head.data, head.size);
    put_out(writer, writer->keys.data, writer->keys.size);
    put_out(writer, writer->tensors.data, writer->tensors.size);
    pad(writer, head.size + writer->keys.size + writer->tensors.size);
    free(head.data);
    return writer->status;
}

fr_status fr_gguf_write_data(fr_gguf_writer *writer, const void *bytes, size_t count) {
    uint64_t size = 0;
    if (writer->current < writer->tensor_count)
        memcpy(&size, writer->sizes.data + writer->current * sizeof size, sizeof size);
    if (writer->status == FR_OK && count > size - writer->current_done)
        writer->status = fr_fail(FR_USAGE, "a GGUF tensor gets more data than were announced");
    FR_TRY(put_out(writer, bytes, count));
    writer->current_done += count;
    if (writer->current_done < size) return FR_OK;
    writer->current++;
    writer->current_done = 0;
    return pad(writer, size);
}

fr_status fr_gguf_write_end(fr_gguf_writer *writer) {
    FR_TRY(writer->status);
    if (writer->current < writer->tensor_count) return fr_fail(FR_USAGE, "a GGUF file ends before its last tensor");
    return fflush(writer->out) == 0 ? FR_OK : fr_fail(FR_MACHINE, "the GGUF file can't be written: %m");
}
