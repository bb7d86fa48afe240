/* Implements gguf_builder.h: writes GGUF files piece by piece. */
#include "tests/support/gguf_builder.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fr_build_free(fr_builder *builder) {
    free(builder->bytes);
    *builder = (fr_builder){0};
}

void fr_build_bytes(fr_builder *builder, const void *bytes, size_t size) {
    builder->bytes = realloc(builder->bytes, builder->size + size + 1);
    ck_assert_ptr_nonnull(builder->bytes);
    if (size) memcpy(builder->bytes + builder->size, bytes, size);
    builder->size += size;
}

void fr_build_zeros(fr_builder *builder, size_t size) {
    for (size_t i = 0; i < size; i++) fr_build_bytes(builder, "", 1);
}

void fr_build_u32(fr_builder *builder, uint32_t value) {
    for (int i = 0; i < 4; i++) fr_build_bytes(builder, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

void fr_build_u64(fr_builder *builder, uint64_t value) {
    for (int i = 0; i < 8; i++) fr_build_bytes(builder, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

void fr_build_string(fr_builder *builder, const char *text) {
    fr_build_u64(builder, strlen(text));
    fr_build_bytes(builder, text, strlen(text));
}

void fr_build_header(fr_builder *builder, uint64_t tensors, uint64_t keys) {
    fr_build_bytes(builder, "GGUF", 4);
    fr_build_u32(builder, 3);
    fr_build_u64(builder, tensors);
    fr_build_u64(builder, keys);
}

void fr_build_key(fr_builder *builder, const char *key, fr_gguf_type type) {
    fr_build_string(builder, key);
    fr_build_u32(builder, type);
}

void fr_build_key_u32(fr_builder *builder, const char *key, uint32_t value) {
    fr_build_key(builder, key, FR_GGUF_U32);
    fr_build_u32(builder, value);
}

void fr_build_key_f32(fr_builder *builder, const char *key, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    fr_build_key(builder, key, FR_GGUF_F32);
    fr_build_u32(builder, bits);
}

void fr_build_key_bool(fr_builder *builder, const char *key, int value) {
    fr_build_key(builder, key, FR_GGUF_BOOL);
    fr_build_bytes(builder, &(uint8_t){(uint8_t)value}, 1);
}

void fr_build_key_string(fr_builder *builder, const char *key, const char *value) {
    fr_build_key(builder, key, FR_GGUF_STRING);
    fr_build_string(builder, value);
}

void fr_build_key_array(fr_builder *builder, const char *key, fr_gguf_type element, uint64_t count) {
    fr_build_key(builder, key, FR_GGUF_ARRAY);
    fr_build_u32(builder, element);
    fr_build_u64(builder, count);
}

void fr_build_tensor(fr_builder *builder, const char *name, uint32_t dims, const uint64_t *dim, uint32_t type,
                     uint64_t offset) {
    fr_build_string(builder, name);
    fr_build_u32(builder, dims);
    for (uint32_t i = 0; dim && i < dims; i++) fr_build_u64(builder, dim[i]);
    fr_build_u32(builder, type);
    fr_build_u64(builder, offset);
}

void fr_build_align(fr_builder *builder, size_t alignment) {
    fr_build_zeros(builder, (alignment - builder->size % alignment) % alignment);
}

void fr_build_write(const fr_builder *builder, const char *path) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(builder->bytes, 1, builder->size, file), builder->size);
    ck_assert_int_eq(fclose(file), 0);
}
