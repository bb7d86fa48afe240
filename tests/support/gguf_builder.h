/* Writes GGUF files for suites piece by piece, so that a suite can make any piece wrong.
 *
 * In: numbers and texts. Out: bytes in memory, or a file. The functions check nothing. */
#ifndef FR_TESTS_GGUF_BUILDER_H
#define FR_TESTS_GGUF_BUILDER_H

#include "formats/gguf.h"

typedef struct fr_builder {
    uint8_t *bytes;
    size_t size;
} fr_builder;

void fr_build_free(fr_builder *builder);
void fr_build_bytes(fr_builder *builder, const void *bytes, size_t size);
void fr_build_zeros(fr_builder *builder, size_t size);
void fr_build_u32(fr_builder *builder, uint32_t value);
void fr_build_u64(fr_builder *builder, uint64_t value);
void fr_build_string(fr_builder *builder, const char *text);

/* Adds the magic, version 3 and the two counts. */
void fr_build_header(fr_builder *builder, uint64_t tensors, uint64_t keys);

/* Each of these functions adds a key and its value. */
void fr_build_key(fr_builder *builder, const char *key, fr_gguf_type type);
void fr_build_key_u32(fr_builder *builder, const char *key, uint32_t value);
void fr_build_key_f32(fr_builder *builder, const char *key, float value);
void fr_build_key_bool(fr_builder *builder, const char *key, int value);
void fr_build_key_string(fr_builder *builder, const char *key, const char *value);
void fr_build_key_array(fr_builder *builder, const char *key, fr_gguf_type element, uint64_t count);

/* Adds the entry of a tensor. `dim` has the sizes, with the fastest-changing dimension first, as in the file. If it is
 * NULL, the sizes are left out. */
void fr_build_tensor(fr_builder *builder, const char *name, uint32_t dims, const uint64_t *dim, uint32_t type,
                     uint64_t offset);

/* Adds zeros until the length is a multiple of the alignment. */
void fr_build_align(fr_builder *builder, size_t alignment);

void fr_build_write(const fr_builder *builder, const char *path);

#endif
