/* libFuzzer's target for processor_config.json and preprocessor_config.json: the input is that file in the folder of a
 * vision encoder, which then reads a picture.
 *
 * In: bytes. Out: nothing, unless the sanitizers find something. */
#include "tests/fuzz/harness.h"

#define TOWER "tests/data/vision/tower"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fr_checkpoint files;
    static fuzz_file processor;
    static fr_image image;
    fuzz_tower tower;
    if (!files.path) {
        const char *folder = fuzz_folder();
        processor = fuzz_file_new();
        fuzz_link(folder, "config.json", TOWER "/config.json");
        fuzz_link(folder, "model.safetensors", TOWER "/model.safetensors");
        fuzz_link(folder, "preprocessor_config.json", processor.path);
        fuzz_link(folder, "processor_config.json", processor.path); /* this file is read first */
        fuzz_open_files(&files, folder);
        if (fr_image_open(&image, TOWER "/grown.png") != FR_OK) die(fr_last_error(), "");
    }
    fuzz_file_write(&processor, bytes, size, NULL, 0);
    fuzz_tower_open(&tower, &files);
    if (tower.vision) fuzz_show(&tower, &image);
    fuzz_inputs_read += tower.vision != NULL;
    fuzz_tower_close(&tower);
    return 0;
}
