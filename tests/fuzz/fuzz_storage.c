/* libFuzzer's target for folders with quantized weights. The input is config.json, a NUL, and the header of
 * model.safetensors, which is JSON too. The target appends as many bytes of data as the header's tensors need.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. If a folder is accepted, its values are checked and all
 * its stored rows are decoded. */
#include <stdlib.h>
#include <string.h>

#include "formats/storage.h"
#include "tests/fuzz/harness.h"

enum { DATA_MAX = 1 << 16, COLS_MAX = 1 << 16 };

/* Returns how many bytes of data the valid tensors of a header need. */
static size_t data_of(const uint8_t *header, size_t size) {
    json_t *root = json_loadb((const char *)header, size, 0, NULL), *tensor;
    const char *name;
    json_int_t past = 0;
    json_object_foreach (root, name, tensor) {
        json_int_t end = json_integer_value(json_array_get(json_object_get(tensor, "data_offsets"), 1));
        if (end > past) past = end;
    }
    json_decref(root);
    return past < DATA_MAX ? (size_t)past : DATA_MAX;
}

static void read_rows(const fr_storage *s, float *row) {
    size_t cols = s->cols < COLS_MAX ? s->cols : COLS_MAX;
    (void)fr_storage_check(s, 0, s->rows, "input");
    for (size_t r = 0; r < s->rows; r++) {
        fr_storage_decode(s, r, 0, cols, row);
        fr_storage_decode(s, r, s->cols - cols, s->cols, row);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fuzz_file config, model;
    static const char *folder;
    static uint8_t data[8 + 2 * DATA_MAX];
    static float row[COLS_MAX];
    fuzz_halves parts = fuzz_divide(bytes, size, 0);
    if (!folder) {
        config = fuzz_file_new();
        model = fuzz_file_new();
        folder = fuzz_folder();
        fuzz_link(folder, "config.json", config.path);
        fuzz_link(folder, "model.safetensors", model.path);
        for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 2654435761u >> 24);
    }
    if (!parts.second || parts.second_size > DATA_MAX) return 0;
    uint64_t length = parts.second_size;
    size_t behind = data_of(parts.second, parts.second_size);
    memcpy(data, &length, sizeof length);
    memcpy(data + sizeof length, parts.second, parts.second_size);
    memset(data + sizeof length + parts.second_size, size % 2, 64 < behind ? 64 : behind);
    fuzz_file_write(&config, parts.first, parts.first_size, NULL, 0);
    fuzz_file_write(&model, data, sizeof length + parts.second_size + behind, NULL, 0);
    fr_checkpoint files;
    if (refused(fr_checkpoint_open(&files, folder, size % 2))) return 0;
    fuzz_inputs_read++;
    for (size_t i = 0; i < files.tensors.count; i++) {
        const fr_storage *s = files.tensors.items[i].storage;
        const fr_tensor *of[FR_STORAGE_PARTS];
        size_t count = s ? fr_storage_parts(s, of) : 0;
        for (size_t p = 0; p < count; p++) {
            const fr_map *map = &files.files[of[p]->file];
            size_t at = (size_t)((const uint8_t *)of[p]->data - map->bytes);
            (void)fr_map_fill(map, at, at + of[p]->bytes);
        }
        if (s) read_rows(s, row);
    }
    fr_checkpoint_close(&files);
    return 0;
}
