/* libFuzzer's target for a published tokenizer: any bytes as tokenizer.json, and behind their first NUL as
 * tokenizer_config.json; then texts to ids and back.
 *
 * In: bytes. Out: nothing, unless the sanitizers find something. */
#include "tests/fuzz/harness.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const char *folder;
    static fuzz_file json, config;
    fr_tokenizer *tokenizer;
    if (!folder) {
        folder = fuzz_folder();
        json = fuzz_file_new();
        config = fuzz_file_new();
        fuzz_link(folder, "tokenizer.json", json.path);
        fuzz_link(folder, "tokenizer_config.json", config.path);
    }
    fuzz_halves halves = fuzz_divide(bytes, size, '\0');
    fuzz_file_write(&json, halves.first, halves.first_size, NULL, 0);
    fuzz_file_write(&config, halves.second ? (const void *)halves.second : "{}",
                    halves.second ? halves.second_size : 2, NULL, 0);
    if (refused(fr_tokenizer_open(folder, NULL, &tokenizer))) return 0;
    fuzz_inputs_read++;
    fuzz_use_tokenizer(tokenizer);
    fr_tokenizer_close(tokenizer);
    return 0;
}
