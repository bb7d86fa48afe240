/* The main function of libFuzzer's targets in builds without libFuzzer. It runs stored inputs and some mutations of
 * each input.
 *
 * In: the number of mutations of each file, and then folders of inputs. The mutations are the same in every run. Out: a
 * line with the number of inputs that were run. The exit status is 1 if there was no input, or if the target read no
 * input to its end. If the code has an error, a sanitizer finds it and ends the program. */
#include <dirent.h>

#include "tests/fuzz/harness.h"

/* Runs an input in an allocation of exactly its size, so that a sanitizer reports any read past its end. */
static void run(const blob *input) {
    uint8_t *bytes = malloc(input->size ? input->size : 1);
    if (!bytes) die("no memory for", "an input");
    memcpy(bytes, input->bytes, input->size);
    LLVMFuzzerTestOneInput(bytes, input->size);
    free(bytes);
}

static size_t run_file(const char *path, size_t mutations) {
    blob original = read_blob(path), damaged = {malloc(original.size + 1), 0};
    if (!damaged.bytes) die("no memory for", path);
    seed_mutations(1);
    run(&original);
    for (size_t i = 0; i < mutations; i++) {
        memcpy(damaged.bytes, original.bytes, original.size);
        damaged.size = original.size;
        mutate(&damaged);
        run(&damaged);
    }
    free(original.bytes);
    free(damaged.bytes);
    return 1 + mutations;
}

static size_t run_folder(const char *folder, size_t mutations) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    size_t inputs = 0;
    if (count < 0) die("can't read", folder);
    for (int i = 0; i < count; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') inputs += run_file(path, mutations);
        free(entries[i]);
    }
    free(entries);
    return inputs;
}

int main(int argc, char **argv) {
    size_t inputs = 0;
    if (argc < 3) die("usage: MUTATIONS FOLDER...", "");
    for (int i = 2; i < argc; i++) inputs += run_folder(argv[i], strtoul(argv[1], NULL, 10));
    printf("%zu inputs, of which %zu could be read\n", inputs, fuzz_inputs_read);
    return inputs && fuzz_inputs_read ? 0 : 1;
}
