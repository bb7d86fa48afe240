/* libFuzzer's target for the files of questions with which the verb perplexity scores a model (HellaSwag, Winogrande,
 * multiple choice). The first byte chooses the kind, and the rest is the file, which is read to its end.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. */
/* suite: links=command */
#include <string.h>

#include "tests/fuzz/harness.h"
#include "tools/cli/task_files.h"

static size_t sum; /* sum of all bytes of all texts; makes sure that each byte is read */

static void walk(fr_task_text text) {
    for (size_t i = 0; i < text.length; i++) sum += (unsigned char)text.bytes[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fr_task_take *const kinds[] = {fr_task_take_hellaswag, fr_task_take_winogrande, fr_task_take_answers};
    if (size == 0) return 0;
    fr_task_take *take = kinds[bytes[0] % 3];
    char *copy = malloc(size - 1);
    if (!copy) die("no memory for", "a file");
    memcpy(copy, bytes + 1, size - 1);
    fr_task_text file = {.bytes = copy, .length = size - 1};
    size_t left = SIZE_MAX;
    if (take == fr_task_take_answers && fr_task_take_head(&file, &left)) left = 0;
    fr_task task = {.count = 1};
    const char *fault = NULL;
    for (; left && !fault && task.count; left--) {
        fault = take(&file, &task);
        for (size_t i = 0; !fault && i < task.count; i++) {
            walk(task.before);
            walk(task.word[i]);
            walk(task.after);
        }
    }
    fuzz_inputs_read += !fault;
    free(copy);
    return 0;
}
