/* libFuzzer's target for processor_config.json and preprocessor_config.json. The input is the content of both files, in
 * the folders of several vision encoders. Each encoder then reads a picture.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. */
#include "tests/fuzz/harness.h"

#define PICTURE "tests/data/vision/tower/grown.png"

/* The first vision encoder converts a picture to one run of tokens, the other three to several runs. */
static const char *const towers[] = {"tests/data/vision/tower", "tests/data/vision/gemma3-crops",
                                     "tests/data/vision/smolvlm", "tests/data/vision/mistral3"};

enum { TOWERS = sizeof towers / sizeof *towers };

static void link_from(const char *folder, const char *from, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", from, name);
    fuzz_link(folder, name, path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fr_checkpoint files[TOWERS];
    static fuzz_file processor;
    static fr_image image;
    fuzz_tower tower;
    if (!files[0].path) {
        processor = fuzz_file_new();
        for (size_t i = 0; i < TOWERS; i++) {
            const char *folder = fuzz_folder();
            link_from(folder, towers[i], "config.json");
            link_from(folder, towers[i], "model.safetensors");
            fuzz_link(folder, "preprocessor_config.json", processor.path);
            fuzz_link(folder, "processor_config.json", processor.path); /* this file is read first */
            fuzz_open_files(&files[i], folder);
        }
        if (fr_image_open(&image, PICTURE) != FR_OK) die(fr_last_error(), "");
    }
    fuzz_file_write(&processor, bytes, size, NULL, 0);
    bool read = false;
    for (size_t i = 0; i < TOWERS; i++) {
        fuzz_tower_open(&tower, &files[i]);
        if (tower.vision) fuzz_show(&tower, &image);
        read |= tower.vision != NULL;
        fuzz_tower_close(&tower);
    }
    fuzz_inputs_read += read;
    return 0;
}
