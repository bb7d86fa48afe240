/* libFuzzer's target for the tokenizer in a GGUF file's metadata: any bytes as the file; then texts to ids and back.
 *
 * In: bytes. Out: nothing, unless the sanitizers find something. */
#include "tests/fuzz/harness.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fuzz_file file;
    fr_tokenizer *tokenizer;
    if (!file.fd) file = fuzz_file_new();
    fuzz_file_write(&file, bytes, size, NULL, 0);
    if (refused(fr_tokenizer_open(file.path, NULL, &tokenizer))) return 0;
    fuzz_inputs_read++;
    fuzz_use_tokenizer(tokenizer);
    fr_tokenizer_close(tokenizer);
    return 0;
}
