/* libFuzzer's target for a base's predictions, what perplexity compares with: any bytes as the file, read to its end.
 *
 * In: bytes. Out: nothing, unless the sanitizers find something. */
#include "tests/fuzz/harness.h"
#include "tools/cli/base.h"

static void read_rows(fr_base *base) {
    float *row = malloc(base->vocab * sizeof *row);
    if (!row) die("no memory for", "a row");
    for (size_t rows = base->chunks * fr_base_rows(base->chunk); rows; rows--)
        if (!fr_base_read(base, row)) abort(); /* the length of the file was right */
    free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fuzz_file file;
    fr_base base;
    if (!file.fd) file = fuzz_file_new();
    fuzz_file_write(&file, bytes, size, NULL, 0);
    fuzz_hush(true);
    if (fr_base_open(&base, file.path) == 0) {
        fuzz_inputs_read++;
        read_rows(&base);
    }
    fr_base_close(&base);
    fuzz_hush(false);
    return 0;
}
