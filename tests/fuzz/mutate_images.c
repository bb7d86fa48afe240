/* Damages pictures and the files of vision encoders many times in one process, and reads each result.
 *
 * In: the number of mutations per file (default 100) and a seed (default 1). Out: exit status 0 if every damaged file
 * was either used or refused with one clear line. A crash, a hang, a sanitizer's report or a bad error line is a
 * failure. Must be built with -fsanitize=address,undefined. */
#include <dirent.h>
#include <unistd.h>

#include "kernels/dispatch.h"
#include "src/engine/vision/image_resize.h"
#include "src/engine/vision/vision.h"
#include "tests/fuzz/png.h"

#define IMAGES "tests/data/images"
#define TOWER  "tests/data/vision/tower"

#define TOKENS_MAX 1000 /* larger pictures are skipped, because they are slow under a sanitizer */

static void use_picture(const char *path) {
    fr_image image, resized;
    if (refused(fr_image_open(&image, path))) return;
    if (!refused(fr_image_resize(&image, FR_RESAMPLE_BICUBIC, 28, 14, &resized))) fr_image_close(&resized);
    fr_image_close(&image);
}

static fr_status open_tower(const char *folder, fr_checkpoint *files, fr_weights *weights, fr_vision **vision) {
    const fr_kernels *kernels;
    fr_status status = fr_kernels_select(NULL, &kernels);
    if (status == FR_OK) status = fr_checkpoint_open(files, folder, true);
    if (status == FR_OK) status = fr_weights_open(weights, files);
    return status == FR_OK ? fr_vision_open(weights, kernels, 40, vision) : status;
}

/* Opens the vision encoder of a folder, and runs the folder's smallest picture through it. */
static void use_tower(const char *folder) {
    char path[512];
    fr_plan plan = {.threads = 1, .cpu = {-1}, .nodes = 1};
    fr_checkpoint files = {0};
    fr_weights weights = {0};
    fr_vision *vision = NULL;
    fr_image image;
    fr_image_grid grid;
    fr_vision_rows rows;
    fr_pool *pool;
    snprintf(path, sizeof path, "%s/grown.png", folder);
    if (fr_pool_open(&plan, &pool) != FR_OK || fr_image_open(&image, path) != FR_OK) die("can't open", path);
    if (!refused(open_tower(folder, &files, &weights, &vision)) &&
        !refused(fr_vision_grid(vision, image.width, image.height, &grid)) && grid.rows * grid.columns < TOKENS_MAX &&
        !refused(fr_vision_run(vision, pool, 1, &image, &rows)))
        fr_vision_rows_close(&rows);
    fr_vision_close(vision);
    fr_weights_close(&weights);
    fr_checkpoint_close(&files);
    fr_image_close(&image);
    fr_pool_close(pool);
}

/* Makes `count` damaged versions of source/name, each from the original. Writes each version to copy/name and reads
 * it. */
static void run_file(const char *source, const char *copy, const char *name, size_t count) {
    char from[512], to[512];
    snprintf(from, sizeof from, "%s/%s", source, name);
    snprintf(to, sizeof to, "%s/%s", copy, name);
    blob original = read_blob(from), damaged = {malloc(original.size + 1), 0};
    if (!damaged.bytes) die("no memory for", name);
    for (size_t i = 0; i < count; i++) {
        memcpy(damaged.bytes, original.bytes, original.size);
        damaged.size = original.size;
        mutate(&damaged);
        if (strstr(name, ".png") && draw(4)) seal(&damaged);
        write_blob(to, &damaged);
        if (strcmp(source, TOWER) == 0)
            use_tower(copy);
        else
            use_picture(to);
    }
    write_blob(to, &original);
    free(original.bytes);
    free(damaged.bytes);
    printf("%s: %zu mutations\n", from, count);
}

static void run_pictures(const char *copy, size_t count) {
    DIR *entries = opendir(IMAGES);
    if (!entries) die("can't read", IMAGES);
    for (struct dirent *entry; (entry = readdir(entries));)
        if (strstr(entry->d_name, "png-") || strstr(entry->d_name, "jpeg-") || strstr(entry->d_name, "webp-") ||
            strstr(entry->d_name, "gif-"))
            run_file(IMAGES, copy, entry->d_name, count);
    closedir(entries);
}

int main(int argc, char **argv) {
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
    char copy[] = "/tmp/forerun-mutate-XXXXXX", command[128];
    seed_mutations(argc > 2 ? strtoul(argv[2], NULL, 10) : 1);
    if (!mkdtemp(copy)) die("can't make", copy);
    snprintf(command, sizeof command, "cp %s/* '%s' && chmod u+w '%s'/*", TOWER, copy, copy);
    if (system(command) != 0) die("can't copy", TOWER);
    run_pictures(copy, count);
    run_file(TOWER, copy, "config.json", count);
    run_file(TOWER, copy, "preprocessor_config.json", count);
    run_file(TOWER, copy, "model.safetensors", count);
    snprintf(command, sizeof command, "rm -rf '%s'", copy);
    return system(command) == 0 ? 0 : 1;
}
