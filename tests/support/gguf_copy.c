/* Implements gguf_copy.h: copies GGUF files with other tensors. */
#include "tests/support/gguf_copy.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/checkpoint.h"
#include "tests/support/require.h"

void fr_gguf_copy(const char *from, const char *to, fr_gguf_copied *copied) {
    fr_checkpoint files;
    fr_gguf_writer w;
    FILE *out = fopen(to, "wb");
    ck_assert_ptr_nonnull(out);
    require(fr_checkpoint_open(&files, from, true));
    fr_gguf_writer_open(&w, out, files.gguf->architecture);
    for (size_t i = 1; i < files.gguf->count; i++)
        fr_gguf_put_value(&w, &files.gguf->values[i]); /* value 0, the architecture, is already written */
    copied(&files.tensors, &w, false);
    require(fr_gguf_write_header(&w));
    copied(&files.tensors, &w, true);
    require(fr_gguf_write_end(&w));
    fr_gguf_writer_close(&w);
    ck_assert_int_eq(fclose(out), 0);
    fr_checkpoint_close(&files);
}

void fr_gguf_hide_key(const char *from, const char *to, const char *key) {
    fr_map map;
    require(fr_map_open(&map, from, true));
    size_t size = map.size;
    uint8_t *bytes = malloc(size), *at;
    memcpy(bytes, map.bytes, size);
    fr_map_close(&map);
    ck_assert_ptr_nonnull(at = memmem(bytes, size, key, strlen(key)));
    at[strlen(key) - 1] = '_';
    FILE *out = fopen(to, "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(bytes, 1, size, out), size);
    ck_assert_int_eq(fclose(out), 0);
    free(bytes);
}
