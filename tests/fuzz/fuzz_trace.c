/* libFuzzer's target for traces. The input is read as a file that --trace wrote, and the verb report makes a web page
 * of it.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error, or if the page has text that a browser would run. */
/* suite: links=command */
#include "tests/fuzz/harness.h"
#include "tools/cli/page.h"

static void write_page(const fr_record *record) {
    char *page = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&page, &length);
    if (!out) die("no memory for", "a page");
    fr_page_write(record, out);
    if (fclose(out) != 0 || memmem(page, length, "<script", strlen("<script"))) abort();
    free(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    fr_record record;
    fuzz_hush(true);
    if (fr_record_read(&record, "trace", (const char *)bytes, size) == 0) {
        fuzz_inputs_read++;
        write_page(&record);
    }
    fr_record_free(&record);
    fuzz_hush(false);
    return 0;
}
