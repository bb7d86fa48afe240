/* Writing GGUF version 3 (gguf.h draws the file) from beginning to end, without going back: to files and pipes.
 *
 * In: metadata and what tensors there will be, in memory until fr_gguf_write_header; then the tensors' bytes, in the
 * order in which they were announced, in pieces of any size. Out: the file. Data are aligned to FR_GGUF_ALIGNMENT, the
 * padding comes by itself.
 *
 * A failure stays in the writer: the calls after it do nothing, and those that return a status return it again. */
#ifndef FR_FORMATS_GGUF_WRITE_H
#define FR_FORMATS_GGUF_WRITE_H

#include <stdio.h>

#include "formats/gguf.h"

typedef struct fr_bytes {
    uint8_t *data;
    size_t size, capacity;
} fr_bytes;

typedef struct fr_gguf_writer {
    FILE *out;
    const char *architecture; /* keys that begin with a point stand below it */
    fr_bytes keys, tensors;   /* as they will stand in the file */
    uint64_t key_count, tensor_count;
    fr_bytes sizes;                 /* uint64_t each: bytes of a tensor's data */
    uint64_t data_size;             /* of all tensors, padding included */
    uint64_t current, current_done; /* the tensor whose data come next, and how much of them has come */
    fr_status status;
} fr_gguf_writer;

/* out and architecture stay the caller's, and must outlive the writer. general.architecture is the first key; of
 * a file that is no model architecture is NULL, and there is no such key. */
void fr_gguf_writer_open(fr_gguf_writer *writer, FILE *out, const char *architecture);
void fr_gguf_writer_close(fr_gguf_writer *writer);

void fr_gguf_put_text(fr_gguf_writer *writer, const char *key, fr_text value);
void fr_gguf_put_string(fr_gguf_writer *writer, const char *key, const char *value);
void fr_gguf_put_u32(fr_gguf_writer *writer, const char *key, uint32_t value);
void fr_gguf_put_i32(fr_gguf_writer *writer, const char *key, int32_t value);
void fr_gguf_put_f32(fr_gguf_writer *writer, const char *key, float value);
void fr_gguf_put_bool(fr_gguf_writer *writer, const char *key, bool value);

/* Another file's value, as it is. */
void fr_gguf_put_value(fr_gguf_writer *writer, const fr_gguf_value *value);

/* An array: its head, then `count` elements of that type, with one of the functions below each. */
void fr_gguf_put_array(fr_gguf_writer *writer, const char *key, fr_gguf_type element, uint64_t count);
void fr_gguf_add_text(fr_gguf_writer *writer, fr_text value);
void fr_gguf_add_u32(fr_gguf_writer *writer, uint32_t value); /* I32 too: its bits */
void fr_gguf_add_f32(fr_gguf_writer *writer, float value);
void fr_gguf_add_bool(fr_gguf_writer *writer, bool value);

/* Announces a tensor of a type that GGUF has; shape slowest first. packed: in forerun's layout (FR_GGUF_PACKED). */
void fr_gguf_put_tensor(fr_gguf_writer *writer, const char *name, fr_dtype type, bool packed, uint32_t dims,
                        const uint64_t *shape);

/* Everything up to the first tensor's data. */
fr_status fr_gguf_write_header(fr_gguf_writer *writer);

/* The next bytes of the tensors' data, of one tensor at most. */
fr_status fr_gguf_write_data(fr_gguf_writer *writer, const void *bytes, size_t count);

/* All data have come, and the stream has taken them. */
fr_status fr_gguf_write_end(fr_gguf_writer *writer);

#endif
