/* libFuzzer's target for pictures. The input is read as a PNG, JPEG, WebP or GIF file and then run through the vision
 * encoder.
 *
 * In: any bytes. If a PNG is refused, it is tried again with its checksums corrected. Out: a crash if a sanitizer finds
 * an error. */
#include "src/engine/vision/image_resize.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/png.h"

#define TOWER "tests/data/vision/tower"

/* The settings of the fixture, but with such low limits that a picture takes very little time. */
static const char processor[] = "{\"size\":{\"shortest_edge\":300,\"longest_edge\":900},\"patch_size\":6}";

static void open_tower(fuzz_tower *tower) {
    static fr_checkpoint files;
    const char *folder = fuzz_folder();
    fuzz_file file = fuzz_file_new();
    fuzz_file_write(&file, processor, sizeof processor - 1, NULL, 0);
    fuzz_link(folder, "config.json", TOWER "/config.json");
    fuzz_link(folder, "model.safetensors", TOWER "/model.safetensors");
    fuzz_link(folder, "preprocessor_config.json", file.path);
    fuzz_open_files(&files, folder);
    fuzz_tower_open(tower, &files);
    if (!tower->vision) die(fr_last_error(), "");
}

static bool open_image(fr_image *image, const uint8_t *bytes, size_t size) {
    static fuzz_file file;
    if (!file.fd) file = fuzz_file_new();
    fuzz_file_write(&file, bytes, size, NULL, 0);
    if (!refused(fr_image_open(image, file.path))) return true;
    blob sealed = {malloc(size + 1), size};
    if (!sealed.bytes) die("no memory for", "a picture");
    memcpy(sealed.bytes, bytes, size);
    seal(&sealed);
    fuzz_file_write(&file, sealed.bytes, size, NULL, 0);
    free(sealed.bytes);
    return !refused(fr_image_open(image, file.path));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fuzz_tower tower;
    fr_image image, resized;
    if (!tower.vision) open_tower(&tower);
    if (!open_image(&image, bytes, size)) return 0;
    fuzz_inputs_read++;
    if (!refused(fr_image_resize(&image, FR_RESAMPLE_BICUBIC, 28, 14, &resized))) fr_image_close(&resized);
    fuzz_show(&tower, &image);
    fr_image_close(&image);
    return 0;
}
