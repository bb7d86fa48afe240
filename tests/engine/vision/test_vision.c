/* Compares the vision encoder with transformers step by step, from a picture's bytes to its embeddings. Also tests that
 * the bits are the same for any number of threads and any instruction set. Also tests the positions of prompts with
 * pictures.
 *
 * There are two vision encoders. One is that of the GLM-OCR reference, as published and as llama.cpp converts it. The
 * other has odd widths; its pictures are shrunk, enlarged or left as they are (tests/data/vision/make_cases.py). */
/* suite: hostile threads */
#include <check.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/safetensors.h"
#include "kernels/cpu.h"
#include "kernels/dispatch.h"
#include "src/engine/vision/image_resize.h"
#include "src/engine/vision/tower.h"
#include "tests/support/suite.h"

#define LAYERS_MAX 8

/* A picture of a fixture. `prefix` begins the names of its reference tensors (PREFIX.NAME). */
typedef struct subject {
    const char *folder, *picture, *prefix;
    const char *mmproj; /* the file of the vision encoder, or NULL if the encoder is in the folder */
} subject;

static const subject subjects[] = {
    {"tests/data/glm-ocr", "image/digits.png", "image", NULL},
    {"tests/data/vision/tower", "shrunk.png", "shrunk", NULL},
    {"tests/data/vision/tower", "grown.png", "grown", NULL},
    {"tests/data/vision/tower", "stays.png", "stays", NULL},
    {"tests/data/glm-ocr", "image/digits.png", "image", "tests/data/glm-ocr/mmproj-bf16.gguf"},
};

/* ------------------------------------------------------------------------------------------------- opening files */

typedef struct bench {
    const subject *subject;
    fr_map map;
    fr_tensors reference;
    fr_checkpoint files;
    fr_weights weights;
    fr_vision *vision;
    fr_image image;
} bench;

/* Returns the width of the text model for which the vision encoder is made, or 0 if the configuration does not state
 * it. */
static size_t text_width(const json_t *config) {
    return (size_t)json_integer_value(json_object_get(json_object_get(config, "vision_config"), "out_hidden_size"));
}

static fr_pool *open_pool(size_t threads) {
    fr_plan plan = {.threads = threads, .nodes = 1, .oversubscribed = true};
    fr_pool *pool;
    for (size_t i = 0; i < threads; i++) plan.cpu[i] = -1;
    ck_assert_int_eq(fr_pool_open(&plan, &pool), FR_OK);
    return pool;
}

static void open_bench(bench *b, const subject *who, const char *isa) {
    char path[256];
    const fr_kernels *kernels;
    fr_tensors unread = {0};
    *b = (bench){.subject = who};
    snprintf(path, sizeof path, "%s/reference.safetensors", who->folder);
    ck_assert_msg(fr_map_open(&b->map, path, true) == FR_OK, "%s", fr_last_error());
    ck_assert_int_eq(fr_safetensors_read(&b->map, 0, &b->reference, &unread), FR_OK);
    fr_tensors_free(&unread);
    ck_assert_int_eq(fr_kernels_select(isa, &kernels), FR_OK);
    ck_assert_msg(fr_checkpoint_open(&b->files, who->mmproj ? who->mmproj : who->folder, true) == FR_OK, "%s",
                  fr_last_error());
    ck_assert_int_eq(fr_weights_open(&b->weights, &b->files), FR_OK);
    ck_assert(who->mmproj || fr_vision_exists(&b->weights));
    ck_assert_msg(fr_vision_open(&b->weights, kernels, text_width(b->files.config), &b->vision) == FR_OK, "%s",
                  fr_last_error());
    fr_pool *pool = open_pool(1);
    ck_assert_int_eq(fr_weights_place(&b->weights, pool, NULL, NULL), FR_OK);
    fr_pool_close(pool);
    snprintf(path, sizeof path, "%s/%s", who->folder, who->picture);
    ck_assert_msg(fr_image_open(&b->image, path) == FR_OK, "%s", fr_last_error());
}

static void close_bench(bench *b) {
    fr_image_close(&b->image);
    fr_vision_close(b->vision);
    fr_weights_close(&b->weights);
    fr_checkpoint_close(&b->files);
    fr_tensors_free(&b->reference);
    fr_map_close(&b->map);
}

/* Returns the reference's tensor of this name, or NULL if there is none. */
static const fr_tensor *expected(const bench *b, const char *name) {
    char full[128];
    snprintf(full, sizeof full, "%s.%s", b->subject->prefix, name);
    return fr_tensors_find(&b->reference, full);
}

/* ---------------------------------------------------------------------------------------------------- comparison */

static void check_floats(const float *got, const fr_tensor *reference, size_t from, size_t count, double tolerance,
                         const char *what) {
    const float *values = reference->data;
    ck_assert_int_eq(reference->type, FR_F32);
    ck_assert_uint_le((from + count) * sizeof(float), reference->bytes);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(fabs((double)got[i] - values[from + i]) <= tolerance, "%s: value %zu is %g, transformers has %g",
                      what, i, (double)got[i], (double)values[from + i]);
}

static void check_pixels(const fr_image *image, const fr_tensor *reference, const char *what) {
    ck_assert_uint_eq(reference->shape[0], image->height);
    ck_assert_uint_eq(reference->shape[1], image->width);
    ck_assert_msg(memcmp(reference->data, image->rgb, reference->bytes) == 0, "%s: other bytes", what);
}

static fr_image resize(const bench *b, fr_image_grid *grid) {
    fr_image resized;
    const fr_vision_config *c = &b->vision->config;
    size_t unit = c->patch * c->merge;
    ck_assert_int_eq(fr_vision_grid(b->vision, b->image.width, b->image.height, grid), FR_OK);
    ck_assert_int_eq(fr_image_resize(&b->image, FR_RESAMPLE_BICUBIC, grid->columns * unit, grid->rows * unit, &resized),
                     FR_OK);
    return resized;
}

START_TEST(pixel_values_are_those_of_the_processor) {
    bench b;
    fr_image_grid grid;
    float values[4096];
    open_bench(&b, &subjects[_i], NULL);
    const fr_vision_config *c = &b.vision->config;
    if (expected(&b, "pixels_rgb")) check_pixels(&b.image, expected(&b, "pixels_rgb"), "picture");
    fr_image resized = resize(&b, &grid);
    fr_vision_token tokens[1024];
    ck_assert_uint_le(grid.rows * grid.columns, 1024);
    fr_vision_order(c, grid, tokens);
    const int64_t *thw = expected(&b, "grid_thw")->data;
    ck_assert_int_eq(thw[1], (int64_t)(grid.rows * c->merge));
    ck_assert_int_eq(thw[2], (int64_t)(grid.columns * c->merge));
    check_pixels(&resized, expected(&b, "resized_rgb"), "resized");
    const fr_tensor *reference = expected(&b, "pixel_values");
    for (size_t patch = 0; patch < reference->shape[0]; patch++) {
        size_t row, column, count = reference->shape[1];
        ck_assert_uint_eq(count, 3 * c->frames * c->patch * c->patch);
        fr_vision_place(c, grid, tokens, patch, &row, &column);
        fr_vision_patch(c, &resized, row, column, values);
        check_floats(values, reference, patch * count, count, 1e-6, "pixel values");
    }
    fr_image_close(&resized);
    close_bench(&b);
}
END_TEST

/* A picture that runs through the vision encoder. `streams` keeps its rows: first the rows of the patches, then the
 * rows after each block. */
typedef struct watched {
    fr_vision_activations activations;
    float *streams[LAYERS_MAX + 1];
} watched;

static void run_watched(void *context, const fr_team *team) {
    watched *w = context;
    size_t bytes = w->activations.patches * w->activations.vision->config.hidden * sizeof(float);
    fr_vision_embed(team, &w->activations);
    memcpy(w->streams[0], w->activations.x, bytes);
    for (size_t i = 0; i < w->activations.vision->config.layers; i++) {
        fr_vision_block(team, &w->activations, i);
        memcpy(w->streams[i + 1], w->activations.x, bytes);
    }
    fr_vision_merge(team, &w->activations);
}

START_TEST(every_layer_is_that_of_transformers) {
    bench b;
    watched w;
    fr_arena arena = {0};
    open_bench(&b, &subjects[_i], NULL);
    const fr_vision_config *c = &b.vision->config;
    w.activations = (fr_vision_activations){.vision = b.vision};
    fr_image resized = resize(&b, &w.activations.grid);
    size_t tokens = w.activations.grid.rows * w.activations.grid.columns, values;
    w.activations.image = &resized;
    w.activations.patches = tokens * c->merge * c->merge;
    w.activations.rows = calloc(tokens * c->out, sizeof(float));
    values = w.activations.patches * c->hidden;
    for (size_t i = 0; i <= c->layers; i++) w.streams[i] = calloc(values, sizeof(float));
    fr_vision_activations_layout(&w.activations, &arena, 1);
    ck_assert_int_eq(fr_arena_open(&arena, arena.used, "activations"), FR_OK);
    fr_vision_activations_layout(&w.activations, &arena, 1);
    fr_pool *pool = open_pool(1);
    fr_pool_run(pool, run_watched, &w);
    const fr_tensor *layers = expected(&b, "vision_layers");
    for (size_t i = 0; layers && i <= c->layers; i++)
        check_floats(w.streams[i], layers, i * values, values, 1e-4, "a layer");
    check_floats(w.activations.merged, expected(&b, "vision_before_merger"), 0, tokens * c->out, 1e-4,
                 "before the merger");
    check_floats(w.activations.rows, expected(&b, "vision_embeddings"), 0, tokens * c->out, 1e-4, "embeddings");
    for (size_t i = 0; i <= c->layers; i++) free(w.streams[i]);
    free(w.activations.rows);
    fr_pool_close(pool);
    fr_arena_close(&arena);
    fr_image_close(&resized);
    close_bench(&b);
}
END_TEST

/* Runs pictures of all sizes up to 5 by 5 units. The memory for each run is computed from the picture's size. If it
 * were too small, the run would fail. There is hardly any spare memory, because the rows of 160 bytes are not a
 * multiple of the number to which the arena rounds allocations. */
START_TEST(a_picture_of_any_size_is_seen) {
    enum { MOST = 5 };
    bench b;
    open_bench(&b, &subjects[1], NULL);
    const fr_vision_config *c = &b.vision->config;
    size_t unit = c->patch * c->merge, odd = 0;
    fr_pool *pool = open_pool(2);
    uint8_t *rgb = calloc(MOST * unit * MOST * unit, 3);
    for (size_t size = 0; size < MOST * MOST; size++) {
        fr_image picture = {.rgb = rgb, .width = (1 + size % MOST) * unit, .height = (1 + size / MOST) * unit};
        fr_vision_rows rows;
        ck_assert_msg(fr_vision_run(b.vision, pool, 2, &picture, &rows) == FR_OK, "%zu by %zu: %s", picture.width,
                      picture.height, fr_last_error());
        odd += rows.count % 2;
        fr_vision_rows_close(&rows);
    }
    ck_assert_uint_gt(odd, 0);
    free(rgb);
    fr_pool_close(pool);
    close_bench(&b);
}
END_TEST

/* -------------------------------------------------------------------------------------------------- one answer */

static fr_vision_rows embeddings(const bench *b, size_t threads) {
    fr_vision_rows rows;
    fr_pool *pool = open_pool(threads);
    ck_assert_msg(fr_vision_run(b->vision, pool, threads, &b->image, &rows) == FR_OK, "%s", fr_last_error());
    fr_pool_close(pool);
    return rows;
}

static void check_same(const fr_vision_rows *rows, const fr_vision_rows *first, const char *what) {
    ck_assert_uint_eq(rows->count, first->count);
    ck_assert_uint_eq(rows->hidden, first->hidden);
    ck_assert_msg(memcmp(rows->rows, first->rows, rows->count * rows->hidden * sizeof(float)) == 0, "%s: other bits",
                  what);
}

START_TEST(any_number_of_threads_gives_the_same_bits) {
    bench b;
    open_bench(&b, &subjects[_i], NULL);
    fr_vision_rows first = embeddings(&b, 1);
    const fr_tensor *reference = expected(&b, "vision_embeddings");
    ck_assert_uint_eq(first.count * first.hidden * sizeof(float), reference->bytes);
    check_floats(first.rows, reference, 0, first.count * first.hidden, 1e-4, "embeddings");
    for (size_t threads = 2; threads <= 5; threads += threads - 1) {
        fr_vision_rows rows = embeddings(&b, threads);
        check_same(&rows, &first, "threads");
        fr_vision_rows_close(&rows);
    }
    fr_vision_rows_close(&first);
    close_bench(&b);
}
END_TEST

START_TEST(any_instruction_set_gives_the_same_bits) {
    bench scalar, b;
    const fr_kernels *kernels;
    open_bench(&scalar, &subjects[_i], "scalar");
    fr_vision_rows first = embeddings(&scalar, 1);
    for (fr_isa_level level = FR_ISA_SCALAR + 1; level < FR_ISA_WORDS; level++) {
        if (fr_kernels_select(fr_isa_word(level), &kernels) != FR_OK) continue;
        open_bench(&b, &subjects[_i], fr_isa_word(level));
        fr_vision_rows rows = embeddings(&b, 2);
        check_same(&rows, &first, fr_isa_word(level));
        fr_vision_rows_close(&rows);
        close_bench(&b);
    }
    fr_vision_rows_close(&first);
    close_bench(&scalar);
}
END_TEST

/* ------------------------------------------------------------------------------------------- sizes and positions */

static json_t *cases;

static void read_cases(void) {
    ck_assert_int_eq(fr_json_read("tests/data/vision/cases.json", 1 << 24, &cases), FR_OK);
}

static void free_cases(void) {
    json_decref(cases);
}

static size_t at(const json_t *array, size_t index) {
    return (size_t)json_integer_value(json_array_get(array, index));
}

START_TEST(sizes_are_those_of_the_processor) {
    bench b;
    size_t i, refused = 0;
    json_t *entry;
    open_bench(&b, &subjects[0], NULL);
    json_array_foreach (json_object_get(cases, "grids"), i, entry) {
        fr_image_grid grid = {0};
        fr_status status = fr_vision_grid(b.vision, at(entry, 0), at(entry, 1), &grid);
        ck_assert_msg(grid.columns == at(entry, 2) && grid.rows == at(entry, 3),
                      "%zu x %zu becomes %zu x %zu, the processor says %zu x %zu", at(entry, 0), at(entry, 1),
                      grid.columns, grid.rows, at(entry, 2), at(entry, 3));
        ck_assert((status == FR_OK) == (grid.rows > 0));
        refused += status == FR_INPUT;
    }
    ck_assert_uint_gt(refused, 0);
    close_bench(&b);
}
END_TEST

static fr_status place(const json_t *ids, const json_t *grids, int32_t (*places)[FR_MROPE_AXES], int64_t *next) {
    int32_t list[64];
    fr_image_grid pictures[4];
    size_t count = json_array_size(ids), images = json_array_size(grids);
    ck_assert_uint_le(count, 64);
    for (size_t i = 0; i < count; i++) list[i] = (int32_t)at(ids, i);
    for (size_t i = 0; i < images; i++)
        pictures[i] =
            (fr_image_grid){.rows = at(json_array_get(grids, i), 0), .columns = at(json_array_get(grids, i), 1)};
    return fr_mrope_positions(list, count, (int32_t)json_integer_value(json_object_get(cases, "image_id")), pictures,
                              images, places, next);
}

START_TEST(a_configuration_that_asks_for_too_much_is_refused) {
    bench b;
    fr_image_grid grid;
    open_bench(&b, &subjects[1], NULL);
    b.vision->config.min_pixels = 1 << 30;
    ck_assert_int_eq(fr_vision_grid(b.vision, 100, 100, &grid), FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), "patches of 6 x 6 pixels, more than 65536"), "%s", fr_last_error());
    close_bench(&b);
}
END_TEST

START_TEST(positions_are_those_of_transformers) {
    size_t i;
    json_t *entry;
    json_array_foreach (json_object_get(cases, "positions"), i, entry) {
        int32_t places[64][FR_MROPE_AXES];
        int64_t next;
        const json_t *expected_places = json_object_get(entry, "places");
        ck_assert_int_eq(place(json_object_get(entry, "ids"), json_object_get(entry, "grids"), places, &next), FR_OK);
        for (size_t t = 0; t < json_array_size(expected_places); t++)
            for (size_t a = 0; a < FR_MROPE_AXES; a++)
                ck_assert_int_eq(places[t][a], (int32_t)at(json_array_get(expected_places, t), a));
        ck_assert_int_eq(next, json_integer_value(json_object_get(entry, "next")));
    }
    ck_assert_uint_gt(i, 3);
}
END_TEST

START_TEST(the_reference_prompt_stands_where_the_reference_says) {
    bench b;
    open_bench(&b, &subjects[0], NULL);
    const fr_tensor *kinds = expected(&b, "mm_token_type_ids"), *ids = expected(&b, "position_ids");
    size_t count = kinds->shape[0];
    int32_t list[64], places[64][FR_MROPE_AXES];
    int64_t next;
    fr_image_grid grid;
    ck_assert_int_eq(fr_vision_grid(b.vision, b.image.width, b.image.height, &grid), FR_OK);
    for (size_t i = 0; i < count; i++) list[i] = (int32_t)((const int64_t *)kinds->data)[i];
    ck_assert_int_eq(fr_mrope_positions(list, count, 1, &grid, 1, places, &next), FR_OK);
    for (size_t a = 0; a < FR_MROPE_AXES; a++)
        for (size_t i = 0; i < count; i++) ck_assert_int_eq(places[i][a], ((const int64_t *)ids->data)[a * count + i]);
    ck_assert_int_eq(next, (int64_t)count - 15); /* rope_delta of reference.json */
    close_bench(&b);
}
END_TEST

/* A picture may have two runs of tokens. These runs must get the same positions as two pictures. */
START_TEST(runs_of_a_picture_stand_like_pictures) {
    static const int32_t ids[] = {1, 9, 9, 9, 9, 9, 9, 2, 3, 9, 9, 9, 9, 9, 9, 4, 9, 9, 5};
    enum { COUNT = sizeof ids / sizeof *ids };
    const fr_image_grid runs[] = {{.rows = 4, .columns = 3, .runs = 2}, {.rows = 1, .columns = 2, .runs = 1}},
                        pictures[] = {{.rows = 2, .columns = 3}, {.rows = 2, .columns = 3}, {.rows = 1, .columns = 2}};
    int32_t got[COUNT][FR_MROPE_AXES], expected[COUNT][FR_MROPE_AXES];
    int64_t next, expected_next;
    ck_assert_int_eq(fr_mrope_positions(ids, COUNT, 9, runs, 2, got, &next), FR_OK);
    ck_assert_int_eq(fr_mrope_positions(ids, COUNT, 9, pictures, 3, expected, &expected_next), FR_OK);
    ck_assert_mem_eq(got, expected, sizeof got);
    ck_assert_int_eq(next, expected_next);
}
END_TEST

START_TEST(image_tokens_must_fit_the_pictures) {
    static const struct {
        int32_t ids[6];
        size_t images, runs;
        const char *line;
    } wrong[] = {
        {{1, 9, 9, 9, 9, 2}, 0, 0, "the prompt has image tokens for more than the 0 images given"},
        {{1, 9, 9, 9, 2, 2}, 1, 0, "image 0 needs 2 x 2 = 4 image tokens, the prompt has 3 at token 1"},
        {{1, 1, 2, 2, 2, 2}, 1, 0, "1 images given, the prompt has image tokens for 0"},
        {{1, 9, 9, 9, 2, 2},
         1,
         2,
         "image 0 needs 2 runs of 2 image tokens each, the prompt has 3 in run 0, at token 1"},
        {{9, 9, 1, 9, 2, 2},
         1,
         2,
         "image 0 needs 2 runs of 2 image tokens each, the prompt has 1 in run 1, at token 3"},
        {{1, 9, 9, 2, 2, 2}, 1, 2, "image 0 needs 2 runs of image tokens, the prompt has 1"},
    };
    int32_t places[6][FR_MROPE_AXES];
    int64_t next;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const fr_image_grid grid = {.rows = 2, .columns = 2, .runs = wrong[i].runs};
        ck_assert_int_eq(fr_mrope_positions(wrong[i].ids, 6, 9, &grid, wrong[i].images, places, &next), FR_INPUT);
        ck_assert_str_eq(fr_last_error(), wrong[i].line);
    }
}
END_TEST

START_TEST(a_tower_that_does_not_fit_is_refused) {
    bench b;
    fr_vision *vision;
    open_bench(&b, &subjects[1], NULL);
    ck_assert_int_eq(fr_vision_open(&b.weights, b.vision->kernels, 41, &vision), FR_INPUT);
    ck_assert_ptr_null(vision);
    ck_assert_str_eq(fr_last_error(),
                     "tests/data/vision/tower: the vision tower gives rows of 40, the text model reads "
                     "rows of 41 (out_hidden_size)");
    json_t *tower = json_object_get(b.files.config, "vision_config");
    json_object_set_new(tower, "num_heads", json_integer(4));
    ck_assert_int_eq(fr_vision_open(&b.weights, b.vision->kernels, 40, &vision), FR_INPUT);
    json_object_set_new(tower, "num_heads", json_integer(3));
    json_object_set_new(tower, "patch_size", json_integer(7));
    ck_assert_int_eq(fr_vision_open(&b.weights, b.vision->kernels, 40, &vision), FR_INPUT);
    ck_assert_str_eq(fr_last_error(),
                     "preprocessor_config.json: patch_size is 6, the vision tower in config.json has 7");
    close_bench(&b);
}
END_TEST

/* Makes a folder with the odd vision encoder and these two configuration files of its picture processor. NULL means
 * that a file is missing. Reads the limits for pictures that these files set. */
static fr_status read_limits(const char *processor, const char *preprocessor, fr_vision_config *limits) {
    char folder[] = "/tmp/test_vision_XXXXXX", path[64], published[64], target[PATH_MAX];
    const char *const names[] = {"config.json", "model.safetensors", "processor_config.json",
                                 "preprocessor_config.json"};
    const char *const texts[] = {NULL, NULL, processor, preprocessor};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        snprintf(published, sizeof published, "tests/data/vision/tower/%s", names[i]);
        if (i < 2) ck_assert(realpath(published, target) && symlink(target, path) == 0);
        FILE *file = texts[i] ? fopen(path, "wb") : NULL;
        ck_assert(!texts[i] || (file && fputs(texts[i], file) >= 0 && fclose(file) == 0));
    }
    fr_checkpoint files;
    fr_weights weights;
    ck_assert_msg(fr_checkpoint_open(&files, folder, true) == FR_OK, "%s", fr_last_error());
    ck_assert_int_eq(fr_weights_open(&weights, &files), FR_OK);
    fr_status status = fr_vision_config_read(limits, &weights);
    fr_weights_close(&weights);
    fr_checkpoint_close(&files);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    ck_assert_int_eq(rmdir(folder), 0);
    return status;
}

#define REST              ", \"patch_size\": 6, \"temporal_patch_size\": 2, \"merge_size\": 2}"
#define SIZE(least, most) "{\"size\": {\"shortest_edge\": " #least ", \"longest_edge\": " #most "}" REST
#define NESTED(inner)     "{\"image_processor\": " inner ", \"processor_class\": \"Glm46VProcessor\"}"

/* transformers reads the picture processor from image_processor in processor_config.json. If that is missing, it reads
 * preprocessor_config.json. It never reads both. */
START_TEST(a_picture_processor_in_either_file) {
    static const struct {
        const char *processor, *preprocessor;
        int64_t least, most;
    } wanted[] = {
        {NULL, SIZE(784, 3136), 784, 3136},
        {NESTED(SIZE(784, 3136)), NULL, 784, 3136},
        {NESTED(SIZE(784, 3136)), SIZE(1, 2), 784, 3136},
        {NESTED("{\"size\": {\"longest_edge\": 20000}" REST), SIZE(1, 2), 12544, 20000},
        {NESTED("{\"do_resize\": true" REST), SIZE(1, 2), 12544, 11760000},
        {NESTED("null"), SIZE(784, 3136), 784, 3136},
        {SIZE(1, 2), SIZE(784, 3136), 784, 3136},
    };
    fr_vision_config c;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        ck_assert_msg(read_limits(wanted[i].processor, wanted[i].preprocessor, &c) == FR_OK, "%s", fr_last_error());
        ck_assert_int_eq(c.min_pixels, wanted[i].least);
        ck_assert_int_eq(c.max_pixels, wanted[i].most);
    }
    ck_assert_int_eq(read_limits(NESTED("{\"patch_size\": 7}"), NULL, &c), FR_INPUT);
    ck_assert_str_eq(fr_last_error(), "processor_config.json: image_processor: patch_size is 7, the vision tower in "
                                      "config.json has 6");
    ck_assert_int_eq(read_limits(NESTED("[]"), SIZE(784, 3136), &c), FR_INPUT);
    ck_assert_int_eq(read_limits("[]", SIZE(784, 3136), &c), FR_INPUT);
    ck_assert_int_eq(read_limits(NULL, "[]", &c), FR_INPUT);
}
END_TEST

FR_SUITE("vision") {
    const int all = sizeof subjects / sizeof *subjects;
    TCase *tower = tcase_create("tower"), *prompt = tcase_create("prompt");
    tcase_add_loop_test(tower, pixel_values_are_those_of_the_processor, 0, all);
    tcase_add_loop_test(tower, every_layer_is_that_of_transformers, 0, all);
    tcase_add_test(tower, a_picture_of_any_size_is_seen);
    tcase_add_test(tower, a_picture_processor_in_either_file);
    tcase_add_loop_test(tower, any_number_of_threads_gives_the_same_bits, 0, all);
    tcase_add_loop_test(tower, any_instruction_set_gives_the_same_bits, 0, all);
    tcase_add_test(tower, a_tower_that_does_not_fit_is_refused);
    tcase_add_checked_fixture(prompt, read_cases, free_cases);
    tcase_add_test(prompt, sizes_are_those_of_the_processor);
    tcase_add_test(prompt, a_configuration_that_asks_for_too_much_is_refused);
    tcase_add_test(prompt, positions_are_those_of_transformers);
    tcase_add_test(prompt, the_reference_prompt_stands_where_the_reference_says);
    tcase_add_test(prompt, runs_of_a_picture_stand_like_pictures);
    tcase_add_test(prompt, image_tokens_must_fit_the_pictures);
    suite_add_tcase(suite, tower);
    suite_add_tcase(suite, prompt);
}
