/* Compares models that read pictures with transformers, one kind of model after the other: pixel values, the layers and
 * rows of the vision encoder, logits after pictures, greedy text and drafts.
 *
 * Each folder tests/data/vision/NAME is a small model with random weights (cut_models.py). It also has what
 * transformers 5.24 computed from its pictures and prompts. If FR_VISION_FIXTURES is set in the environment, it names
 * another place for such folders, relative to tests/data/models. */
/* suite: hostile damaged threads */
#include <check.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu.h"
#include "kernels/dispatch.h"
#include "src/engine/model/model.h"
#include "src/engine/vision/tower.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

static const char *const kinds[] = {"qwen3.5",      "qwen3-vl",     "qwen3-vl-moe",   "qwen2.5-vl", "gemma3",
                                    "gemma4-dense", "gemma4-e",     "gemma4-unified", "smolvlm",    "mistral3",
                                    "idefics3",     "gemma3-crops", "ministral3"};

/* Indexes of the kinds that also have two GGUF files from llama.cpp: one of the text model and one of the vision
 * encoder. */
static const int paired[] = {0, 2, 3, 4, 5, 6, 7, 8, 9};

enum { KINDS = sizeof kinds / sizeof *kinds, TEXT = 48, PICTURES_MAX = 4 };

static void open_fixture(fr_reference *r, int kind, const fr_options *options) {
    char name[200];
    const char *place = getenv("FR_VISION_FIXTURES");
    snprintf(name, sizeof name, "%s%s", place ? place : "../vision/", kinds[kind]);
    fr_reference_open(r, name, options);
}

static fr_options *make_options(int chunk) {
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_CONTEXT, 512));
    require(fr_options_set(options, FR_OPT_CHUNK, chunk));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, 3));
    return options;
}

static fr_pool *open_pool(size_t threads) {
    fr_plan plan = {.threads = threads, .nodes = 1, .oversubscribed = true};
    fr_pool *pool;
    for (size_t i = 0; i < threads; i++) plan.cpu[i] = -1;
    require(fr_pool_open(&plan, &pool));
    return pool;
}

static const char *picture_file(const fr_reference *r, size_t index) {
    static char path[400];
    const json_t *entry = json_array_get(json_object_get(r->info, "images"), index);
    snprintf(path, sizeof path, "%s/%s", r->folder, json_string_value(json_object_get(entry, "file")));
    return path;
}

static const fr_tensor *find(const fr_reference *r, size_t picture, const char *name) {
    char full[128];
    snprintf(full, sizeof full, "image.%zu.%s", picture, name);
    return fr_tensors_find(&r->tensors, full);
}

/* Fails the test if a value differs from the expected value by more than `bound` times the largest expected value. */
static void compare(const float *got, const float *expected, size_t count, double bound, const char *what) {
    double largest = 0, worst = 0;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)expected[i]));
        worst = fmax(worst, fabs((double)got[i] - (double)expected[i]));
    }
    ck_assert_msg(worst <= bound * largest, "%s: a value differs by %g, the largest is %g", what, worst, largest);
}

/* ---------------------------------------------------------------------------------------------- the vision encoder */

/* A picture that runs through the vision encoder. `streams` keeps its rows: first the rows of the patches, then the
 * rows after each layer. */
typedef struct watched {
    fr_vision_activations a;
    float *streams; /* [layers + 1, patches, hidden] */
} watched;

static void run_watched(void *context, const fr_team *team) {
    watched *w = context;
    size_t values = w->a.patches * w->a.vision->config.hidden;
    fr_vision_embed(team, &w->a);
    memcpy(w->streams, w->a.x, values * sizeof(float));
    for (size_t i = 0; i < w->a.vision->config.layers; i++) {
        fr_vision_block(team, &w->a, i);
        memcpy(w->streams + (i + 1) * values, w->a.x, values * sizeof(float));
    }
    fr_vision_merge(team, &w->a);
}

/* Returns true if transformers orders all patches of a picture row by row. Otherwise transformers puts the patches of
 * one token next to each other. */
static bool row_by_row(const fr_vision *vision) {
    const fr_tower *tower = vision->config.tower;
    return tower == &fr_tower_gemma3 || tower == &fr_tower_gemma4 || tower == &fr_tower_idefics3 ||
           tower == &fr_tower_pixtral;
}

/* Returns the position of the patch in transformers' order. */
static size_t place_of(const watched *w, size_t patch) {
    const fr_vision_config *c = &w->a.vision->config;
    size_t row, column;
    if (!row_by_row(w->a.vision)) return patch;
    fr_vision_place(c, w->a.grid, w->a.tokens, patch, &row, &column);
    return row * w->a.grid.columns * c->merge + column;
}

/* Returns value number `value` of a patch as transformers' processor gives it. The processors of Gemma 3, Idefics 3 and
 * Pixtral give the values of each view as a picture, ordered by channel. For Gemma 4 the result is 2 * (x - 0.5) of the
 * processor's value x, because the model, not the processor, computes this. */
static double pixel_of(const fr_vision_config *c, const fr_tensor *pixels, size_t view, size_t patch, size_t value,
                       size_t row, size_t column) {
    const float *all = pixels->data;
    size_t area = c->patch * c->patch;
    if (c->tower == &fr_tower_gemma4) return 2 * (all[patch * pixels->shape[1] + value] - 0.5);
    if (pixels->dims < 4) return all[patch * pixels->shape[1] + value];
    size_t high = pixels->shape[pixels->dims - 2], wide = pixels->shape[pixels->dims - 1];
    size_t y = row * c->patch + value % area / c->patch, x = column * c->patch + value % c->patch;
    return all[((view * FR_VISION_CHANNELS + value / area) * high + y) * wide + x];
}

static void check_layers(const fr_reference *r, size_t index, const fr_vision *vision, size_t views, size_t view,
                         const fr_image *resized, fr_image_grid grid) {
    const fr_vision_config *c = &vision->config;
    const fr_tensor *layers = find(r, index, "vision_layers"), *pixels = find(r, index, "pixel_values");
    size_t tokens = grid.rows * grid.columns;
    fr_arena arena = {0};
    watched w = {.a = {.vision = vision, .image = resized, .grid = grid, .patches = tokens * c->merge * c->merge}};
    if (!layers) return;
    size_t values = w.a.patches * c->hidden, width = FR_VISION_CHANNELS * c->frames * c->patch * c->patch;
    w.a.rows = calloc(tokens, fr_vision_row_width(vision) * sizeof(float));
    w.streams = calloc((c->layers + 1) * values, sizeof(float));
    fr_vision_activations_layout(&w.a, &arena, 1);
    require(fr_arena_open(&arena, arena.used, "activations"));
    fr_vision_activations_layout(&w.a, &arena, 1);
    fr_pool *pool = open_pool(1);
    fr_pool_run(pool, run_watched, &w);
    /* the reference may have only the first few patches of a picture */
    size_t kept = layers->shape[layers->dims - 2] * c->hidden;
    ck_assert_uint_eq(layers->shape[0], c->layers + 1);
    ck_assert_uint_eq(layers->dims == 4 ? layers->shape[1] : 1, views);
    ck_assert_uint_le(kept, values);
    float *ordered = calloc(values, sizeof *ordered);
    for (size_t i = 0; i <= c->layers; i++) {
        for (size_t p = 0; p < w.a.patches; p++)
            memcpy(ordered + place_of(&w, p) * c->hidden, w.streams + i * values + p * c->hidden,
                   c->hidden * sizeof *ordered);
        compare(ordered, (const float *)layers->data + (i * views + view) * kept, kept, 5e-5, "a layer");
    }
    free(ordered);
    /* The processor puts the patches of one token next to each other, and orders the tokens row by row. It does so even
     * if the vision encoder divides the picture into windows. */
    float *patch = calloc(width, sizeof *patch);
    if (pixels->dims == 2) ck_assert_uint_eq(pixels->shape[1], width);
    for (size_t p = 0; p < w.a.patches; p++) {
        size_t row, column, parts = c->merge * c->merge, at = w.a.tokens[p / parts].place * parts + p % parts;
        if (row_by_row(vision)) at = place_of(&w, p);
        if (pixels->dims == 2 && at >= pixels->shape[0]) continue; /* the reference has only the first few patches */
        fr_vision_place(c, grid, w.a.tokens, p, &row, &column);
        fr_vision_patch(c, resized, row, column, patch);
        for (size_t i = 0; i < width; i++)
            ck_assert_double_le(fabs((double)patch[i] - pixel_of(c, pixels, view, at, i, row, column)), 1e-6);
    }
    free(patch);
    fr_pool_close(pool);
    fr_arena_close(&arena);
    free(w.streams);
    free(w.a.rows);
}

static void check_rows(const fr_reference *r, size_t index, const fr_vision_rows *rows) {
    size_t out = rows->hidden, deep = 0;
    while (find(r, index, "deepstack.0") && deep < FR_VISION_DEEPSTACK_MAX) {
        char name[32];
        snprintf(name, sizeof name, "deepstack.%zu", deep);
        if (!find(r, index, name)) break;
        deep++;
    }
    const fr_tensor *main = find(r, index, "vision_embeddings");
    out = main->shape[1];
    ck_assert_uint_eq(main->shape[0], rows->count);
    ck_assert_uint_eq(rows->hidden % out, 0);
    if (deep) ck_assert_uint_eq(rows->hidden, out * (1 + deep));
    float *part = calloc(rows->count * out, sizeof *part);
    for (size_t i = 0; i <= deep; i++) {
        char name[32];
        snprintf(name, sizeof name, i ? "deepstack.%zu" : "vision_embeddings", i - 1);
        for (size_t t = 0; t < rows->count; t++)
            memcpy(part + t * out, rows->rows + t * rows->hidden + i * out, out * sizeof *part);
        compare(part, find(r, index, name)->data, rows->count * out, 5e-5, name);
    }
    free(part);
}

/* Compares a picture's bytes with view number `view` of a tensor. In the tensor, the views are one after the other. */
static void check_bytes(const fr_image *image, const fr_tensor *expected, size_t view, const char *what) {
    if (!expected) return;
    size_t bytes = image->width * image->height * FR_VISION_CHANNELS;
    ck_assert_uint_eq(expected->shape[expected->dims - 3], image->height);
    ck_assert_uint_eq(expected->shape[expected->dims - 2], image->width);
    ck_assert_uint_le((view + 1) * bytes, expected->bytes);
    ck_assert_msg(memcmp((const uint8_t *)expected->data + view * bytes, image->rgb, bytes) == 0,
                  "%s: other bytes in view %zu", what, view);
}

/* Checks the views of a picture: their bytes, the values of their patches, and the layers of the vision encoder. */
static void check_views(const fr_reference *r, size_t index, const fr_vision *vision, const fr_image *image) {
    const fr_tensor *tiles = find(r, index, "tiles_rgb");
    fr_vision_tiling tiling;
    fr_image_grid grid;
    fr_image canvas, view;
    require(fr_vision_grid(vision, image->width, image->height, &grid));
    require(fr_vision_tile(&vision->config, image->width, image->height, &tiling));
    require(fr_vision_canvas(&vision->config, &tiling, image, &canvas));
    size_t views = fr_vision_views(&tiling);
    const fr_image_grid one = {.rows = grid.rows / views, .columns = grid.columns};
    if (tiles) ck_assert_uint_eq(tiles->shape[0], views);
    for (size_t i = 0; i < views; i++) {
        require(fr_vision_view(&vision->config, &tiling, one, canvas.rgb ? &canvas : image, i, &view));
        check_bytes(&view, tiles ? tiles : find(r, index, "resized_rgb"), tiles ? i : 0, "the resized picture");
        check_layers(r, index, vision, views, i, &view, one);
        fr_image_close(&view);
    }
    fr_image_close(&canvas);
}

START_TEST(rows_are_those_of_transformers) {
    fr_reference r;
    open_fixture(&r, _i, NULL);
    const fr_vision *vision = r.model->vision;
    ck_assert_ptr_nonnull(vision);
    size_t count = json_array_size(json_object_get(r.info, "images"));
    ck_assert_uint_gt(count, 1);
    for (size_t i = 0; i < count; i++) {
        fr_image image;
        require(fr_image_open(&image, picture_file(&r, i)));
        check_bytes(&image, find(&r, i, "pixels_rgb"), 0, "the picture");
        check_views(&r, i, vision, &image);
        fr_vision_rows rows[3];
        for (size_t threads = 1; threads <= 3; threads++) {
            fr_pool *pool = open_pool(threads);
            require(fr_vision_run(vision, pool, threads, &image, &rows[threads - 1]));
            fr_pool_close(pool);
        }
        check_rows(&r, i, &rows[0]);
        for (size_t other = 1; other < 3; other++)
            ck_assert_mem_eq(rows[other].rows, rows[0].rows, rows[0].count * rows[0].hidden * sizeof(float));
        for (size_t all = 0; all < 3; all++) fr_vision_rows_close(&rows[all]);
        fr_image_close(&image);
    }
    fr_reference_close(&r);
}
END_TEST

/* Checks the number of tiles into which a picture of this size is cut. `line` is a line of
 * tests/data/vision/cuts.json. */
static void check_cut(const fr_vision *vision, const char *kind, const size_t *line, size_t count) {
    fr_vision_tiling t;
    fr_image_grid grid = {0};
    fr_status status = fr_vision_grid(vision, line[0], line[1], &grid);
    require(fr_vision_tile(&vision->config, line[0], line[1], &t));
    if (strcmp(kind, "mistral3") == 0) {
        bool none = line[2] == 0 || line[3] == 0;
        ck_assert_int_eq(status, none ? FR_INPUT : FR_OK);
        if (none) return;
        ck_assert_uint_eq(grid.rows, line[2]);
        ck_assert_uint_eq(grid.columns, line[3]);
        ck_assert_uint_eq(grid.runs, line[2]);
    } else if (strcmp(kind, "smolvlm") == 0) {
        const size_t got[] = {t.size[0][0], t.size[0][1], t.size[1][0], t.size[1][1], t.rows, t.columns};
        ck_assert_mem_eq(got, line + 2, sizeof got);
        ck_assert_uint_eq(grid.runs, t.rows * t.columns + 1);
    } else {
        ck_assert_uint_eq(t.rows * t.columns, (count - 2) / 2);
        for (size_t i = 0; i < t.rows * t.columns; i++) {
            size_t left = i % t.columns * t.width, top = i / t.columns * t.height;
            ck_assert_uint_eq(left + line[2 + 2 * i] < line[0] ? t.width : line[0] - left, line[2 + 2 * i]);
            ck_assert_uint_eq(top + line[3 + 2 * i] < line[1] ? t.height : line[1] - top, line[3 + 2 * i]);
        }
    }
}

/* cuts.json has a line for each of many picture sizes. tests/references/vision.py got these lines from transformers'
 * processors. */
START_TEST(pictures_are_cut_as_by_the_processors) {
    static const int cut[] = {8, 9, 11};
    json_t *all = json_load_file("tests/data/vision/cuts.json", 0, NULL), *entry;
    ck_assert_ptr_nonnull(all);
    for (size_t k = 0; k < sizeof cut / sizeof *cut; k++) {
        fr_reference r;
        size_t i;
        open_fixture(&r, cut[k], NULL);
        json_array_foreach (json_object_get(all, kinds[cut[k]]), i, entry) {
            size_t line[32] = {0}, count = json_array_size(entry);
            ck_assert_uint_le(count, sizeof line / sizeof *line);
            for (size_t n = 0; n < count; n++) line[n] = (size_t)json_integer_value(json_array_get(entry, n));
            check_cut(r.model->vision, kinds[cut[k]], line, count);
        }
        ck_assert_uint_gt(i, 100);
        fr_reference_close(&r);
    }
    json_decref(all);
}
END_TEST

/* A limit on the number of tokens must cut a picture into fewer tiles, or give it fewer rows and columns of tokens. */
START_TEST(limits_make_fewer_tokens) {
    static const struct {
        int kind;
        int64_t tokens; /* 0: no limit */
        size_t expected, runs;
        const char *line; /* a part of the error line that refuses the limit, or NULL if it is accepted */
    } cases[] = {
        {8, 0, 20, 5, NULL}, {8, 20, 20, 5, NULL},
        {8, 19, 4, 1, NULL}, {8, 3, 0, 0, "sees at least one square of 24 x 24 pixels, more than 432"},
        {9, 0, 12, 3, NULL}, {9, 11, 6, 2, NULL},
        {9, 1, 1, 1, NULL},  {11, 4, 0, 0, "resizes all pictures to one size"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fr_reference r;
        fr_image_grid grid;
        fr_options *options = fr_options_new();
        open_fixture(&r, cases[i].kind, NULL);
        require(fr_options_set(options, FR_OPT_IMAGE_MAX_TOKENS, cases[i].tokens));
        fr_status status = fr_vision_limit(r.model->vision, options);
        ck_assert_int_eq(status, cases[i].line ? FR_INPUT : FR_OK);
        if (cases[i].line) {
            ck_assert_msg(strstr(fr_last_error(), cases[i].line), "%s", fr_last_error());
        } else {
            require(fr_vision_grid(r.model->vision, 640, 480, &grid));
            ck_assert_uint_eq(grid.rows * grid.columns, cases[i].expected);
            ck_assert_uint_eq(grid.runs, cases[i].runs);
        }
        fr_options_free(options);
        fr_reference_close(&r);
    }
}
END_TEST

/* Compares sizes with those that transformers' processor computed (make_sizes.py). */
START_TEST(sizes_are_those_of_qwens_processor) {
    fr_reference r;
    json_t *sizes = json_load_file("tests/data/vision/sizes.json", 0, NULL), *entry;
    size_t i, refused = 0;
    fr_reference_open(&r, "../vision/qwen3.5", NULL);
    ck_assert_ptr_nonnull(sizes);
    json_array_foreach (sizes, i, entry) {
        size_t at[4];
        fr_image_grid grid = {0};
        for (size_t n = 0; n < 4; n++) at[n] = (size_t)json_integer_value(json_array_get(entry, n));
        fr_status status = fr_vision_grid(r.model->vision, at[0], at[1], &grid);
        ck_assert_msg(grid.columns == at[2] && grid.rows == at[3],
                      "%zu x %zu becomes %zu x %zu tokens, the processor has %zu x %zu", at[0], at[1], grid.columns,
                      grid.rows, at[2], at[3]);
        refused += status == FR_INPUT;
    }
    ck_assert_uint_gt(i, 500);
    ck_assert_uint_gt(refused, 0);
    json_decref(sizes);
    fr_reference_close(&r);
}
END_TEST

START_TEST(any_instruction_set_gives_the_same_rows) {
    fr_vision_rows first = {0};
    const fr_kernels *kernels;
    for (fr_isa_level level = FR_ISA_SCALAR; level < FR_ISA_WORDS; level++) {
        if (fr_kernels_select(fr_isa_word(level), &kernels) != FR_OK) continue;
        fr_reference r;
        fr_options *options = fr_options_new();
        require(fr_options_set_text(options, FR_OPT_ISA, fr_isa_word(level)));
        open_fixture(&r, _i, options);
        fr_image image;
        fr_vision_rows rows;
        require(fr_image_open(&image, picture_file(&r, 0)));
        fr_pool *pool = open_pool(2);
        require(fr_vision_run(r.model->vision, pool, 2, &image, &rows));
        if (first.count)
            ck_assert_mem_eq(rows.rows, first.rows, rows.count * rows.hidden * sizeof(float));
        else
            first = rows;
        if (first.rows != rows.rows) fr_vision_rows_close(&rows);
        fr_pool_close(pool);
        fr_image_close(&image);
        fr_options_free(options);
        fr_reference_close(&r);
    }
    fr_vision_rows_close(&first);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ texts */

/* Returns a prompt's ids. If the reference has greedy text after the prompt, the first `generated` ids of this text
 * follow. */
static int32_t *ids_of(const fr_reference *r, size_t prompt, size_t generated, size_t *count) {
    size_t index;
    json_t *entry, *ids = json_deep_copy(json_array_get(json_object_get(r->info, "prompts"), prompt));
    json_array_foreach (json_object_get(r->info, "greedy"), index, entry)
        for (size_t i = 0; i < generated && (size_t)json_integer_value(json_object_get(entry, "prompt")) == prompt; i++)
            json_array_append(ids, json_array_get(json_object_get(entry, "tokens"), i));
    int32_t *all = fr_json_ids_of(ids, count);
    json_decref(ids);
    return all;
}

static void show(fr_session *session, const fr_reference *r, size_t prompt) {
    const json_t *list = json_array_get(json_object_get(r->info, "prompt_pictures"), prompt);
    fr_picture *pictures[PICTURES_MAX];
    size_t count = json_array_size(list);
    ck_assert_uint_le(count, PICTURES_MAX);
    for (size_t i = 0; i < count; i++)
        require(fr_picture_open(picture_file(r, (size_t)json_integer_value(json_array_get(list, i))), r->model,
                                &pictures[i]));
    require(fr_session_show(session, (const fr_picture *const *)pictures, count));
    for (size_t i = 0; i < count; i++) fr_picture_close(pictures[i]);
}

static void check_logits(const fr_reference *r, size_t prompt, int chunk, size_t vocab) {
    fr_session *session;
    fr_options *options = make_options(chunk);
    size_t count, expected_count,
        from = (size_t)json_integer_value(json_array_get(json_object_get(r->info, "logits_from"), prompt));
    int32_t *ids = ids_of(r, prompt, 0, &count);
    const float *expected = fr_reference_floats(r, &expected_count, "prompt.%zu.logits", prompt);
    fr_rows all = {malloc(count * vocab * sizeof(float)), 0, count * vocab};
    require(fr_session_open(r->model, r->drafter, options, &session));
    show(session, r, prompt);
    require(fr_session_logits(session, ids, count, 0, fr_rows_collect, &all));
    ck_assert_uint_eq(all.count - from * vocab, expected_count);
    compare(all.values + from * vocab, expected, expected_count, 5e-5, "logits");
    fr_session_close(session);
    fr_options_free(options);
    free(all.values);
    free(ids);
}

/* A chat template's text with pictures must be tokenized to the same ids that transformers' processor gives. */
START_TEST(prompts_are_those_of_the_processor) {
    fr_reference r;
    size_t prompt;
    json_t *entry;
    open_fixture(&r, _i, NULL);
    /* The library has a note for templates that can't show pictures. It must not give the note here, even if the
     * vocabulary also has another family's tokens. */
    ck_assert_ptr_null(fr_chat_note(fr_model_tokenizer(r.model), true));
    json_array_foreach (json_object_get(r.info, "prompt_text"), prompt, entry) {
        const json_t *list = json_array_get(json_object_get(r.info, "prompt_pictures"), prompt);
        size_t count, expected_count, pictures_count = json_array_size(list);
        int32_t *ids, *expected = ids_of(&r, prompt, 0, &expected_count);
        fr_picture *pictures[PICTURES_MAX];
        if (json_is_string(entry)) {
            fr_marked_text text = {strdup(json_string_value(entry)), json_string_length(entry), malloc(sizeof(fr_span)),
                                   1};
            text.trusted[0] = (fr_span){0, text.length};
            for (size_t i = 0; i < pictures_count; i++)
                require(fr_picture_open(picture_file(&r, (size_t)json_integer_value(json_array_get(list, i))), r.model,
                                        &pictures[i]));
            require(fr_pictures_spell(r.model, (const fr_picture *const *)pictures, pictures_count, &text));
            require(fr_tokenize_marked(fr_model_tokenizer(r.model), &text, &ids, &count));
            ck_assert_uint_eq(count, expected_count);
            ck_assert_mem_eq(ids, expected, count * sizeof *ids);
            for (size_t i = 0; i < pictures_count; i++) fr_picture_close(pictures[i]);
            free(text.trusted);
            free(text.text);
            free(ids);
        }
        free(expected);
    }
    fr_reference_close(&r);
}
END_TEST

START_TEST(logits_are_those_of_transformers) {
    static const int chunks[] = {1, 7, 512};
    fr_reference r;
    open_fixture(&r, _i, NULL);
    size_t vocab = (size_t)fr_model_fact(r.model, FR_FACT_VOCAB);
    for (size_t run = 0; run < 3; run++)
        for (size_t prompt = 0; prompt < json_array_size(json_object_get(r.info, "prompts")); prompt++)
            check_logits(&r, prompt, chunks[run], vocab);
    fr_reference_close(&r);
}
END_TEST

static void step_to(fr_session *session, int32_t *ids, size_t count) {
    for (size_t made = 0, got, accepted; made < count; made += got)
        require(fr_session_step(session, ids + made, count - made, &got, &accepted));
}

static void check_accepted(const fr_reference *r, size_t prompt, const fr_session *session) {
    const uint8_t *lengths;
    size_t rounds = fr_session_accepted_lengths(session, &lengths), index, at;
    json_t *loop, *round;
    json_array_foreach (json_object_get(json_object_get(r->info, "draft"), "loop"), index, loop) {
        if ((size_t)json_integer_value(json_object_get(loop, "prompt")) != prompt) continue;
        json_t *expected = json_object_get(loop, "rounds");
        /* The last round is left out: it ends at 48 ids or has no room for a draft. */
        size_t whole = json_array_size(expected) - 1;
        ck_assert(rounds == whole + 1 || rounds == whole);
        json_array_foreach (expected, at, round)
            if (at < whole) ck_assert_int_eq(lengths[at], json_integer_value(json_object_get(round, "accepted")));
    }
}

/* Generates the text after each prompt. The ids must be the reference's with any chunk, with and without drafts. With
 * the model's own drafter, the numbers of accepted drafts must be the reference's too. */
static void check_texts(const fr_reference *r) {
    static const int chunks[] = {1, 7, 512};
    size_t index;
    json_t *entry;
    json_array_foreach (json_object_get(r->info, "greedy"), index, entry)
        for (size_t run = 0; run < 6; run++) {
            size_t prompt = (size_t)json_integer_value(json_object_get(entry, "prompt")), count, whole;
            fr_session *session;
            fr_options *options = make_options(chunks[run % 3]);
            int32_t *ids = ids_of(r, prompt, 0, &count), *all = ids_of(r, prompt, TEXT, &whole), got[TEXT];
            if (run >= 3 && !r->drafter) require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, "ngram"));
            require(fr_session_open(r->model, run < 3 ? NULL : r->drafter, options, &session));
            show(session, r, prompt);
            require(fr_session_prompt(session, ids, count));
            step_to(session, got, TEXT);
            ck_assert_uint_eq(whole, count + TEXT);
            ck_assert_mem_eq(got, all + count, sizeof got);
            if (run >= 3 && r->drafter) check_accepted(r, prompt, session);
            fr_session_close(session);
            fr_options_free(options);
            free(ids);
            free(all);
        }
}

START_TEST(texts_are_those_of_transformers) {
    fr_reference r;
    open_fixture(&r, _i, NULL);
    check_texts(&r);
    fr_reference_close(&r);
}
END_TEST

/* All prompts run together, in rounds that limit the number of prompt rows. Each prompt must give the same ids as when
 * it runs alone. */
START_TEST(neighbours_change_nothing) {
    enum { SESSIONS_MAX = 8 };
    static int32_t made[SESSIONS_MAX][TEXT + FR_STEP_MAX];
    fr_reference r;
    fr_engine *engine;
    fr_session *sessions[SESSIONS_MAX];
    size_t said[SESSIONS_MAX] = {0}, whole, prompt_count, index;
    json_t *entry, *greedy;
    open_fixture(&r, _i, NULL);
    greedy = json_object_get(r.info, "greedy");
    size_t count = json_array_size(greedy), left = count;
    fr_options *options = make_options(64);
    ck_assert_uint_le(count, SESSIONS_MAX);
    require(fr_engine_open(r.model, r.drafter, options, count, &engine));
    json_array_foreach (greedy, index, entry) {
        size_t prompt = (size_t)json_integer_value(json_object_get(entry, "prompt"));
        int32_t *ids = ids_of(&r, prompt, 0, &prompt_count);
        require(fr_engine_session(engine, options, &sessions[index]));
        show(sessions[index], &r, prompt);
        require(fr_session_put(sessions[index], ids, prompt_count));
        free(ids);
    }
    for (size_t round = 0; left > 0; round++) {
        fr_round rounds[SESSIONS_MAX];
        size_t of[SESSIONS_MAX], n = 0;
        for (size_t i = 0; i < count; i++)
            if (said[i] < TEXT) {
                of[n] = i;
                rounds[n++] = (fr_round){.session = sessions[i], .ids = made[i] + said[i], .limit = FR_STEP_MAX};
            }
        fr_engine_set_piece(engine, round * 7 % 64);
        require(fr_engine_step(engine, rounds, n));
        for (size_t i = 0; i < n; i++) {
            ck_assert_msg(rounds[i].status == FR_OK, "%s", rounds[i].error);
            said[of[i]] += rounds[i].count;
            left -= said[of[i]] >= TEXT;
        }
    }
    json_array_foreach (greedy, index, entry) {
        size_t prompt = (size_t)json_integer_value(json_object_get(entry, "prompt"));
        int32_t *all = ids_of(&r, prompt, TEXT, &whole);
        ck_assert_mem_eq(made[index], all + whole - TEXT, TEXT * sizeof *all);
        fr_session_close(sessions[index]);
        free(all);
    }
    fr_engine_close(engine);
    fr_options_free(options);
    fr_reference_close(&r);
}
END_TEST

/* At a picture, the drafter's rows must have the picture's embeddings and the positions of the target's rows. */
START_TEST(drafts_are_those_of_the_reference) {
    fr_reference r;
    size_t index, vocab;
    json_t *item;
    open_fixture(&r, _i, NULL);
    vocab = (size_t)fr_model_fact(r.model, FR_FACT_VOCAB);
    json_array_foreach (json_object_get(json_object_get(r.info, "draft"), "cases"), index, item) {
        size_t prompt = (size_t)json_integer_value(json_object_get(item, "prompt")), count, expected_count;
        int32_t *ids = ids_of(&r, prompt, (size_t)json_integer_value(json_object_get(item, "n_generated")), &count);
        const float *expected =
            fr_reference_floats(&r, &expected_count, "%s.logits", json_string_value(json_object_get(item, "case")));
        fr_session *session;
        fr_options *options = make_options(7);
        fr_rows all = {malloc(expected_count * sizeof(float)), 0, expected_count};
        require(fr_session_open(r.model, r.drafter, options, &session));
        show(session, &r, prompt);
        require(fr_session_draft_logits(session, ids, count, expected_count / vocab, fr_rows_collect, &all));
        compare(all.values, expected, expected_count, 5e-5, "drafts");
        fr_session_close(session);
        fr_options_free(options);
        free(all.values);
        free(ids);
    }
    fr_reference_close(&r);
}
END_TEST

/* ---------------------------------------------------------------------------------------------- pairs of GGUF files */

/* Opens llama.cpp's two files instead of the folder's model. The files lack the limits for pictures and the width of
 * windows. So both are copied from the folder's vision encoder. */
static void open_pair(fr_reference *r, int kind) {
    char text[320], tower[320];
    open_fixture(r, kind, NULL);
    const fr_vision_config c = r->model->vision->config;
    fr_drafter_close(r->drafter);
    fr_model_close(r->model);
    r->drafter = NULL;
    snprintf(text, sizeof text, "%s/text.gguf", r->folder);
    snprintf(tower, sizeof tower, "%s/mmproj.gguf", r->folder);
    fr_options *options = fr_options_new();
    require(fr_options_set_text(options, FR_OPT_MMPROJ, tower));
    require(fr_model_open(text, options, &r->model));
    if (fr_model_fact(r->model, FR_FACT_MTP_LAYERS) > 0) require(fr_drafter_open(NULL, r->model, NULL, &r->drafter));
    fr_options_free(options);
    fr_vision_config *own = &r->model->vision->config;
    size_t token = own->patch * own->patch * own->merge * own->merge;
    if (strncmp(kinds[kind], "qwen", 4) == 0) {
        ck_assert_int_eq(own->min_pixels, (int64_t)(8 * token));
        ck_assert_int_eq(own->max_pixels, (int64_t)(4096 * token));
    } else
        ck_assert_int_eq(own->max_pixels, strncmp(kinds[kind], "gemma4", 6) == 0 ? (int64_t)(280 * token) : 0);
    own->min_pixels = c.min_pixels;
    own->max_pixels = c.max_pixels;
    own->window = c.window;
    ck_assert_mem_eq(own->windowed, c.windowed, sizeof c.windowed);
    ck_assert_uint_eq(own->deepstack, c.deepstack);
}

START_TEST(pairs_have_the_logits_of_transformers) {
    fr_reference r;
    open_pair(&r, paired[_i]);
    size_t vocab = (size_t)fr_model_fact(r.model, FR_FACT_VOCAB);
    for (size_t prompt = 0; prompt < json_array_size(json_object_get(r.info, "prompts")); prompt++)
        check_logits(&r, prompt, 7, vocab);
    fr_reference_close(&r);
}
END_TEST

START_TEST(pairs_write_the_text_of_transformers) {
    fr_reference r;
    open_pair(&r, paired[_i]);
    check_texts(&r);
    fr_reference_close(&r);
}
END_TEST

/* ----------------------------------------------------------------------------------------------- configurations */

/* Each case sets one member of vision_config, or of the picture processor's file, to a JSON value. The value null
 * removes the member. */
static const struct {
    int kind;
    const char *file, *key, *value, *line; /* if line is NULL, the model is accepted */
} changes[] = {
    {8, "config.json", "hidden_act", "\"quick_gelu\"", "hidden_act quick_gelu of the vision tower is not built"},
    {8, "config.json", "image_size", "5", "no whole number of tokens"},
    {8, "preprocessor_config.json", "max_image_size", "{\"longest_edge\": 18}", "a tile of 18 x 18 pixels is no whole"},
    {8, "preprocessor_config.json", "max_image_size", "{\"longest_edge\": 12}", NULL},
    {8, "preprocessor_config.json", "size", "{\"width\": 9}", "size has neither longest_edge nor width and height"},
    {8, "preprocessor_config.json", "size", "{\"width\": 9, \"height\": 40}", NULL},
    {8, "preprocessor_config.json", "resample", "5", "is 5, not in 1 to 3"},
    {9, "config.json", "hidden_act", "\"relu\"", "hidden_act relu of the vision tower is not built"},
    {9, "config.json", "head_dim", "10", "a vision tower of width 24 with 2 heads of 10 is not built"},
    {9, "config.json", "rope_parameters", "{\"rope_type\": \"yarn\"}",
     "rope_type yarn of the vision tower is not built"},
    {9, "preprocessor_config.json", "do_center_crop", "true", "do_center_crop is not built"},
    {9, "preprocessor_config.json", "do_resize", "false", "do_resize false is not built"},
    {9, "preprocessor_config.json", "size", "{\"width\": 9, \"height\": 40}", NULL},
    {11, "preprocessor_config.json", "pan_and_scan_min_crop_size", "0", "is 0, not in 1 to"},
    {11, "preprocessor_config.json", "pan_and_scan_max_num_crops", "null", NULL},
    {11, "preprocessor_config.json", "size", "{\"height\": 30}", "pictures of 24 x 30 are not built"},
    {0, "config.json", "num_position_embeddings", "26", "num_position_embeddings is 26, which is no square"},
    {0, "config.json", "num_position_embeddings", "36", "tensor model.visual.pos_embed.weight has shape [25, 24]"},
    {0, "config.json", "hidden_act", "\"silu\"", "hidden_act silu of the vision tower is not built"},
    {0, "config.json", "out_hidden_size", "48", "gives rows of 48, the text model reads rows of 32"},
    {0, "config.json", "num_heads", "5", "a vision tower of width 24 with 5 heads"},
    {0, "config.json", "depth", "3", "tensor model.visual.blocks.2.norm1.weight is missing"},
    {0, "config.json", "deepstack_visual_indexes", "[0]", "deepstack_merger_list.0.norm.weight is missing"},
    {0, "preprocessor_config.json", "patch_size", "16", "patch_size is 16, the vision tower in config.json has 8"},
    {0, "preprocessor_config.json", "do_resize", "false", "do_resize false is not built"},
    {0, "preprocessor_config.json", "resample", "2", "is 2, not in 3 to 3"},
    {0, "preprocessor_config.json", "image_mean", "[0.5]", "image_mean must be 3 numbers"},
    {0, "preprocessor_config.json", "size", "null", NULL},
    {0, "preprocessor_config.json", "min_pixels", "0", "is 0, not in 1 to"},
    {1, "config.json", "deepstack_visual_indexes", "[0, 9]", "names a layer that is none of the tower's 3"},
    {1, "config.json", "deepstack_visual_indexes", "[0, -1]", "names a layer that is none of the tower's 3"},
    {1, "config.json", "deepstack_visual_indexes", "[0, 1.5]", "names a layer that is none of the tower's 3"},
    {1, "config.json", "deepstack_visual_indexes", "{}", "deepstack_visual_indexes must be an array"},
    {1, "config.json", "deepstack_visual_indexes", "[0, 1, 2, 0]", "has 4 layers, the text model only 3"},
    {3, "config.json", "fullatt_block_indexes", "[3]", "names a layer that is none of the tower's 3"},
    {3, "config.json", "window_size", "13", "a window of 13 pixels is smaller than a token of 14"},
    {3, "config.json", "hidden_act", "\"gelu\"", "hidden_act gelu of the vision tower is not built"},
};

enum { CHANGES = sizeof changes / sizeof *changes };

/* Makes a folder with the fixture and this change. The caller removes the folder. */
static void make_changed(int change, char *folder) {
    static const char *const names[] = {"config.json", "preprocessor_config.json", "model.safetensors"};
    char from[256], to[256], whole[PATH_MAX];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(from, sizeof from, "tests/data/vision/%s/%s", kinds[changes[change].kind], names[i]);
        snprintf(to, sizeof to, "%s/%s", folder, names[i]);
        if (strcmp(names[i], changes[change].file) != 0) {
            ck_assert(realpath(from, whole) && symlink(whole, to) == 0);
            continue;
        }
        json_t *root = json_load_file(from, 0, NULL), *tower = json_object_get(root, "vision_config");
        json_object_set_new(tower ? tower : root, changes[change].key,
                            json_loads(changes[change].value, JSON_DECODE_ANY, NULL));
        ck_assert_int_eq(json_dump_file(root, to, 0), 0);
        json_decref(root);
    }
}

START_TEST(a_configuration_is_taken_or_refused_in_a_line) {
    char folder[] = "/tmp/test_vision_models_XXXXXX", command[64];
    fr_model *model;
    make_changed(_i, folder);
    fr_status status = fr_model_open(folder, NULL, &model);
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    ck_assert_msg((status == FR_OK) == !changes[_i].line, "%s", fr_last_error());
    if (changes[_i].line)
        ck_assert_msg(strstr(fr_last_error(), changes[_i].line), "%s: %s", changes[_i].line, fr_last_error());
    else
        fr_model_close(model);
}
END_TEST

FR_SUITE("vision_models") {
    TCase *tests = tcase_create("models");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, rows_are_those_of_transformers, 1, KINDS);
    tcase_add_test(tests, sizes_are_those_of_qwens_processor);
    tcase_add_test(tests, pictures_are_cut_as_by_the_processors);
    tcase_add_test(tests, limits_make_fewer_tokens);
    tcase_add_loop_test(tests, any_instruction_set_gives_the_same_rows, 0, KINDS);
    tcase_add_loop_test(tests, prompts_are_those_of_the_processor, 0, KINDS);
    tcase_add_loop_test(tests, logits_are_those_of_transformers, 0, KINDS);
    tcase_add_loop_test(tests, texts_are_those_of_transformers, 0, KINDS);
    tcase_add_loop_test(tests, neighbours_change_nothing, 0, KINDS);
    tcase_add_loop_test(tests, drafts_are_those_of_the_reference, 0, KINDS);
    tcase_add_loop_test(tests, pairs_have_the_logits_of_transformers, 0, sizeof paired / sizeof *paired);
    tcase_add_loop_test(tests, pairs_write_the_text_of_transformers, 0, sizeof paired / sizeof *paired);
    suite_add_tcase(suite, tests);
    tests = tcase_create("damaged");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, rows_are_those_of_transformers, 0, 1);
    tcase_add_loop_test(tests, a_configuration_is_taken_or_refused_in_a_line, 0, CHANGES);
    suite_add_tcase(suite, tests);
}
