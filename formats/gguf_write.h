/* Writes GGUF version 3 (gguf.h has the layout) from beginning to end, to files and pipes.
 *
 * In: metadata and descriptions of the tensors, kept in memory until fr_gguf_write_header; then the tensors' bytes, in
 * the order of their descriptions, in pieces of any size. Out: the file. Data are aligned to FR_GGUF_ALIGNMENT, and
 * the writer adds the padding.
 *
 * The writer remembers a failure: later calls do nothing, and those that return a status return it again. */
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
    const char *architecture; /* is put before keys that begin with a point */
    fr_bytes keys, tensors;   /* the keys and the tensors' descriptions, in the form in which they are written to the
                               * file */
    uint64_t key_count, tensor_count;
    fr_bytes sizes;                 /* the size of each tensor's data, one uint64_t for each tensor */
    uint64_t data_size;             /* bytes of all tensors, including padding */
    uint64_t current, current_done; /* current: the tensor whose data come next; current_done: how many bytes of these
                                     * data were written */
    fr_status status;
} fr_gguf_writer;

/* Begins a file. general.architecture becomes the first key. If architecture is NULL, the key is omitted, for a file
 * that is not a model. The writer does not copy or close `out` and `architecture`, which must outlive it. */
void fr_gguf_writer_open(fr_gguf_writer *writer, FILE *out, const char *architecture);
void fr_gguf_writer_close(fr_gguf_writer *writer);

void fr_gguf_put_text(fr_gguf_writer *writer, const char *key, fr_text value);
void fr_gguf_put_string(fr_gguf_writer *writer, const char *key, const char *value);
void fr_gguf_put_u32(fr_gguf_writer *writer, const char *key, uint32_t value);
void fr_gguf_put_i32(fr_gguf_writer *writer, const char *key, int32_t value);
void fr_gguf_put_f32(fr_gguf_writer *writer, const char *key, float value);
void fr_gguf_put_bool(fr_gguf_writer *writer, const char *key, bool value);

/* Copies a value of another file unchanged. */
void fr_gguf_put_value(fr_gguf_writer *writer, const fr_gguf_value *value);

/* Writes the head of an array. Then `count` elements of that type must be added, each by one of the fr_gguf_add
 * functions below. */
void fr_gguf_put_array(fr_gguf_writer *writer, const char *key, fr_gguf_type element, uint64_t count);
void fr_gguf_add_text(fr_gguf_writer *writer, fr_text value);
void fr_gguf_add_u32(fr_gguf_writer *writer, uint32_t value); /* also adds an I32, passed as its 32 bits */
void fr_gguf_add_f32(fr_gguf_writer *writer, float value);
void fr_gguf_add_bool(fr_gguf_writer *writer, bool value);

/* Describes a tensor of a type that GGUF has; the first dimension of `shape` is the slowest. If `packed` is true, the
 * tensor's data are in forerun's packed layout (FR_GGUF_PACKED). */
void fr_gguf_put_tensor(fr_gguf_writer *writer, const char *name, fr_dtype type, bool packed, uint32_t dims,
                        const uint64_t *shape);

/* Writes everything up to the first tensor's data. */
fr_status fr_gguf_write_header(fr_gguf_writer *writer);

/* Writes the next bytes of the tensors' data. The bytes of one call must belong to one tensor. */
fr_status fr_gguf_write_data(fr_gguf_writer *writer, const void *bytes, size_t count);

/* Fails if data are missing, or if the stream could not take all of them. */
fr_status fr_gguf_write_end(fr_gguf_writer *writer);

#endif
