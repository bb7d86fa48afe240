/* libFuzzer's target for a published tokenizer. The input is tokenizer.json, tokenizer_config.json,
 * special_tokens_map.json and added_tokens.json, with a NUL between two files. Texts are then tokenized and decoded.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. */
#include "tests/fuzz/harness.h"

enum { FILES = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const char *const names[FILES] = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                                             "added_tokens.json"};
    static const char *folder;
    static fuzz_file files[FILES];
    fr_tokenizer *tokenizer;
    if (!folder) {
        folder = fuzz_folder();
        for (size_t i = 0; i < FILES; i++) {
            files[i] = fuzz_file_new();
            fuzz_link(folder, names[i], files[i].path);
        }
    }
    fuzz_halves halves = {.second = bytes, .second_size = size};
    for (size_t i = 0; i < FILES; i++) {
        if (halves.second)
            halves = fuzz_divide(halves.second, halves.second_size, '\0');
        else
            halves.first = NULL;
        fuzz_file_write(&files[i], halves.first ? (const void *)halves.first : "{}",
                        halves.first ? halves.first_size : 2, NULL, 0);
    }
    if (refused(fr_tokenizer_open(folder, NULL, &tokenizer))) return 0;
    fuzz_inputs_read++;
    fuzz_use_tokenizer(tokenizer);
    fr_tokenizer_close(tokenizer);
    return 0;
}
