/* Implements noise_model.h: writes GGUF files whose weights are noise. */
#include "tests/support/noise_model.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "formats/gguf_write.h"
#include "tests/support/block_cases.h"

enum { COLS_MAX = 256, BYTES_MAX = 512 };

/* Returns true if a block of noise decodes to values about as large as those of real weights. This is true for about
 * one block in four. */
static bool as_large_as_weights(fr_dtype type, const uint8_t *block) {
    float values[COLS_MAX], largest = 0;
    size_t cols = fr_dtype_block(type);
    fr_dtype_decode(type, block, values, cols);
    for (size_t i = 0; i < cols; i++) {
        if (!isfinite(values[i])) return false;
        largest = fmaxf(largest, fabsf(values[i]));
    }
    return largest > 0x1p-8f && largest < 1;
}

static bool replaces(const fr_tensor *t, fr_dtype type) {
    return t->type == FR_Q8_0 && t->dims > 1 && t->shape[t->dims - 1] % fr_dtype_block(type) == 0;
}

static fr_status write_noise(fr_gguf_writer *writer, const fr_tensor *t, fr_dtype type) {
    uint8_t block[BYTES_MAX];
    size_t cols = fr_dtype_block(type), size = fr_dtype_row_bytes(type, cols);
    uint64_t blocks = t->shape[t->dims - 1] / cols;
    for (uint32_t d = 0; d + 1 < t->dims; d++) blocks *= t->shape[d];
    for (; blocks; blocks--) {
        do
            for (size_t i = 0; i < size; i++) block[i] = (uint8_t)fr_random_bits();
        while (!as_large_as_weights(type, block));
        FR_TRY(fr_gguf_write_data(writer, block, size));
    }
    return FR_OK;
}

static fr_status write_all(fr_gguf_writer *writer, const fr_gguf *gguf, const fr_tensors *tensors, fr_dtype type) {
    static const char first_key[] = "general.architecture"; /* the writer has already written this key */
    size_t replaced = 0;
    for (size_t i = 0; i < gguf->count; i++)
        if (strncmp(gguf->values[i].key.bytes, first_key, sizeof first_key - 1) != 0)
            fr_gguf_put_value(writer, &gguf->values[i]);
    for (size_t i = 0; i < tensors->count; i++) {
        const fr_tensor *t = &tensors->items[i];
        fr_gguf_put_tensor(writer, t->name, replaces(t, type) ? type : t->type, false, t->dims, t->shape);
        replaced += replaces(t, type);
    }
    ck_assert_uint_gt(replaced, 0);
    FR_TRY(fr_gguf_write_header(writer));
    for (size_t i = 0; i < tensors->count; i++) {
        const fr_tensor *t = &tensors->items[i];
        FR_TRY(replaces(t, type) ? write_noise(writer, t, type) : fr_gguf_write_data(writer, t->data, t->bytes));
    }
    return fr_gguf_write_end(writer);
}

void fr_noise_model(const char *from, fr_dtype type, const char *to) {
    fr_map map;
    fr_gguf gguf;
    fr_tensors tensors = {0}, unread = {0};
    fr_gguf_writer writer;
    FILE *out = fopen(to, "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(fr_map_open(&map, from, true), FR_OK);
    ck_assert_int_eq(fr_gguf_read(&gguf, &map, 0, &tensors, &unread), FR_OK);
    /* Each type has its own seed, so its noise stays the same when the list of types grows. The types from Q4_K to Q3_K
     * keep the seeds of their older positions in the list, two places earlier. */
    bool older = type >= FR_Q4_K && type <= FR_Q3_K;
    fr_random_start(older ? type - 2 : type);
    fr_gguf_writer_open(&writer, out, gguf.architecture);
    ck_assert_msg(write_all(&writer, &gguf, &tensors, type) == FR_OK, "%s", fr_last_error());
    fr_gguf_writer_close(&writer);
    ck_assert_int_eq(fclose(out), 0);
    fr_tensors_free(&unread);
    fr_tensors_free(&tensors);
    fr_gguf_close(&gguf);
    fr_map_close(&map);
}
