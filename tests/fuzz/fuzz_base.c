/* libFuzzer's target for files of base logits, with which the verb perplexity compares a model. The input is such a
 * file and is read to its end.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. */
/* suite: links=command */
#include "tests/fuzz/harness.h"
#include "tools/cli/baseline.h"

static void read_rows(fr_baseline *baseline) {
    float *row = malloc(baseline->vocab * sizeof *row);
    if (!row) die("no memory for", "a row");
    for (size_t rows = baseline->chunks * fr_baseline_rows(baseline->chunk); rows; rows--)
        if (!fr_baseline_read(baseline, row)) abort(); /* the file's length was checked, so every row exists */
    free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fuzz_file file;
    fr_baseline baseline;
    if (!file.fd) file = fuzz_file_new();
    fuzz_file_write(&file, bytes, size, NULL, 0);
    fuzz_hush(true);
    if (fr_baseline_open(&baseline, file.path) == 0) {
        fuzz_inputs_read++;
        read_rows(&baseline);
    }
    fr_baseline_close(&baseline);
    fuzz_hush(false);
    return 0;
}
