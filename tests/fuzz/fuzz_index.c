/* libFuzzer's target for the index of a sharded model. The input is model.safetensors.index.json.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. The folder has two shards: first.safetensors with the
 * tensors a and b, and second.safetensors with the tensors c and d. The library does not read the type of d. */
#include "tests/fuzz/harness.h"

static void write_shard(const fuzz_file *file, const char *header, size_t data) {
    uint8_t bytes[512] = {0};
    uint64_t length = strlen(header);
    memcpy(bytes, &length, sizeof length);
    memcpy(bytes + sizeof length, header, length);
    fuzz_file_write(file, bytes, sizeof length + length + data, NULL, 0);
}

static const char *make_folder(const char *index) {
    const char *folder = fuzz_folder();
    fuzz_file config = fuzz_file_new(), first = fuzz_file_new(), second = fuzz_file_new();
    fuzz_file_write(&config, "{}", 2, NULL, 0);
    write_shard(&first,
                "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[8,16]}}",
                16);
    write_shard(&second,
                "{\"c\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[0,2]},"
                "\"d\":{\"dtype\":\"F8_E5M2\",\"shape\":[2],\"data_offsets\":[2,4]}}",
                4);
    fuzz_link(folder, "config.json", config.path);
    fuzz_link(folder, "first.safetensors", first.path);
    fuzz_link(folder, "second.safetensors", second.path);
    fuzz_link(folder, "model.safetensors.index.json", index);
    return folder;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fuzz_file index;
    static const char *folder;
    fr_checkpoint files;
    if (!folder) {
        index = fuzz_file_new();
        folder = make_folder(index.path);
    }
    fuzz_file_write(&index, bytes, size, NULL, 0);
    if (refused(fr_checkpoint_open(&files, folder, size % 2))) return 0;
    fuzz_inputs_read++;
    fr_checkpoint_close(&files);
    return 0;
}
