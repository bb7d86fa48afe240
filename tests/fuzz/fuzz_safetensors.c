/* libFuzzer's target for safetensors. It reads the header and loads the tensors that the header names.
 *
 * In: a safetensors file. It is read as it is. Then it is read again with another header length in its first eight
 * bytes, so that the header ends at its last brace; damage to the header usually moves this brace. Out: a crash if a
 * sanitizer finds an error, or if a tensor has more or fewer bytes than its shape and type require. Each tensor is
 * loaded in every way that its shape allows: as a matrix, a vector or indices. */
#include "formats/safetensors.h"
#include "tests/fuzz/harness.h"

static void check_bytes(const fr_tensor *tensor) {
    size_t values = 1;
    for (uint32_t i = 0; i < tensor->dims; i++)
        if (__builtin_mul_overflow(values, tensor->shape[i], &values)) abort();
    if (fr_dtype_row_bytes(tensor->type, values) != tensor->bytes) abort();
    if (tensor->bytes) (void)*((const volatile uint8_t *)tensor->data + tensor->bytes - 1);
}

static void bind(fr_weights *weights, const fr_tensor *tensor) {
    const float *vector;
    const int32_t *indices;
    fr_matrix matrix;
    const char *name = tensor->name;
    size_t rows = tensor->dims ? (size_t)tensor->shape[0] : 1;
    check_bytes(tensor);
    if (tensor->dims == 2 &&
        !refused(fr_bind_matrix(weights, "", name, rows, (size_t)tensor->shape[1], FR_STREAMED, &matrix)))
        return;
    if (refused(fr_bind_vector(weights, "", name, rows, &vector)))
        refused(fr_bind_indices(weights, "", name, rows, 1 << 20, &indices));
}

static bool read_file(const char *path) {
    fr_map map;
    fr_checkpoint files = {.path = (char *)(uintptr_t)path, .files = &map, .file_count = 1};
    fr_weights weights;
    bool read = false;
    if (refused(fr_map_open(&map, path, true))) return false;
    if (!refused(fr_safetensors_read(&map, 0, &files.tensors, &files.unread)) &&
        !refused(fr_weights_open(&weights, &files))) {
        for (size_t i = 0; i < files.tensors.count; i++) bind(&weights, &files.tensors.items[i]);
        fr_weights_close(&weights);
        read = true;
    }
    fr_tensors_free(&files.tensors);
    fr_tensors_free(&files.unread);
    fr_map_close(&map);
    return read;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fuzz_file file;
    if (!file.fd) file = fuzz_file_new();
    fuzz_file_write(&file, bytes, size, NULL, 0);
    bool read = read_file(file.path);
    const uint8_t *brace = size > 8 ? memrchr(bytes + 8, '}', size - 8) : NULL;
    if (!read && brace) {
        uint64_t length = (uint64_t)(brace + 1 - (bytes + 8));
        fuzz_file_write(&file, &length, sizeof length, bytes + 8, size - 8);
        read = read_file(file.path);
    }
    fuzz_inputs_read += read;
    return 0;
}
