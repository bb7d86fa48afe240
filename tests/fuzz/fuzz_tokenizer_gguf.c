/* libFuzzer's target for the tokenizer in a GGUF file's metadata. The input is the file. Its last byte chooses the
 * pre-tokenizer; 0 means the one that the file names. Texts are then tokenized and decoded.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. */
#include "forerun_lab.h"
#include "tests/fuzz/harness.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fuzz_file file;
    fr_tokenizer *tokenizer;
    if (!file.fd) file = fuzz_file_new();
    fuzz_file_write(&file, bytes, size, NULL, 0);
    fr_options *options = fr_options_new();
    const char *pre = size && bytes[size - 1] ? fr_lab_word(FR_LAB_PRE, bytes[size - 1] - 1u) : NULL;
    if (pre && fr_options_set_text(options, FR_OPT_TOKENIZER_PRE, pre) != FR_OK) __builtin_trap();
    bool open = !refused(fr_tokenizer_open(file.path, options, &tokenizer));
    fr_options_free(options);
    if (!open) return 0;
    fuzz_inputs_read++;
    fuzz_use_tokenizer(tokenizer);
    fr_tokenizer_close(tokenizer);
    return 0;
}
