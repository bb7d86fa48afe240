/* Tests models from folders that other tools have quantized: their logits, that every way of running gives the same
 * bits, and what the command prints about them.
 *
 * tests/data/storages/whole is a mixture of experts in mlx-lm's form, with stacked experts, a router of 8 bits, and a
 * quantized embedding table and head. transformers computed its expected logits from the dequantized weights
 * (tests/references/storages.py). whole-fp4 has weights of types NVFP4 and MXFP4 in the form of compressed-tensors
 * (tests/references/storages_floats.py). whole-latent has stacks of latent attention's heads; mlx-lm computed its
 * expected logits (tests/references/storages_latent.py). */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"
#include "formats/safetensors.h"
#include "formats/storage.h"
#include "kernels/dispatch.h"
#include "src/engine/weights/weights.h"
#include "tests/support/command.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define WHOLE "tests/data/storages/whole"
#define FP4   "tests/data/storages/whole-fp4"

enum { VOCAB = 320 };

static char folder[64];

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-stored-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    static const char *const files[] = {"config.json", "model.safetensors", "model.gguf"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(in_folder(files[i]));
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Writes the ids of a reference's prompt to `list`, separated by commas. Returns the number of ids. */
static size_t list_ids(const char *from, size_t prompt, char *list, size_t size) {
    char path[128];
    snprintf(path, sizeof path, "%s/reference.json", from);
    json_t *reference = fr_load_json(path);
    const json_t *ids = json_array_get(json_object_get(reference, "prompts"), prompt), *id;
    size_t i, used = 0, count = json_array_size(ids);
    json_array_foreach (ids, i, id)
        used += (size_t)snprintf(list + used, size - used, "%s%lld", i ? "," : "", json_integer_value(id));
    json_decref(reference);
    return count;
}

/* Runs `forerun logits` on a prompt of the reference `from`. The bytes of the logits are in the command's standard
 * output. */
static fr_command run_logits(const char *model, const char *from, size_t prompt, const char *options) {
    char ids[512];
    list_ids(from, prompt, ids, sizeof ids);
    return fr_command_ok("logits -m %s --ids %s -o - -ctk f32 -ctv f32 %s", model, ids, options);
}

/* Fails the test if a logit differs from the expected logit by more than `part` of the largest expected logit. */
static void compare(const fr_command *got, const char *from, size_t prompt, float part) {
    char name[64], path[128];
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    snprintf(path, sizeof path, "%s/reference.safetensors", from);
    require(fr_map_open(&map, path, true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    snprintf(name, sizeof name, "prompt.%zu.logits", prompt);
    const fr_tensor *logits = fr_tensors_find(&tensors, name);
    size_t count = (size_t)logits->bytes / sizeof(float);
    float largest = 0, furthest = 0;
    ck_assert_uint_eq(got->out_length, logits->bytes);
    for (size_t i = 0; i < count; i++) {
        float value, wanted;
        memcpy(&value, got->out + i * sizeof value, sizeof value);
        memcpy(&wanted, (const uint8_t *)logits->data + i * sizeof wanted, sizeof wanted);
        largest = fmaxf(largest, fabsf(wanted));
        furthest = fmaxf(furthest, fabsf(value - wanted));
    }
    ck_assert_msg(furthest <= part * largest, "%g of %g", (double)furthest, (double)largest);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
}

/* The reference was computed with float activations, but the engine quantizes activations to 8 bits, so the bound is
 * wide. In a row of prompt 2, two experts are so close that rounding chooses another expert. So prompt 1 is used. The
 * test of a float32 file below shows that the weights are exactly right. */
START_TEST(logits_are_near_those_of_the_dequantized_weights) {
    fr_command c = run_logits(WHOLE, WHOLE, 1, "");
    compare(&c, WHOLE, 1, 5e-2F);
    fr_command_free(&c);
}
END_TEST

START_TEST(bits_are_the_same_however_it_is_run) {
    static const char *const ways[] = {"-t 1", "-t 3", "--isa scalar", "--no-mmap", "-ub 1"};
    fr_command first = run_logits(WHOLE, WHOLE, 2, "-t 2");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        fr_command other = run_logits(WHOLE, WHOLE, 2, ways[i]);
        ck_assert_uint_eq(other.out_length, first.out_length);
        ck_assert_msg(memcmp(other.out, first.out, first.out_length) == 0, "%s", ways[i]);
        fr_command_free(&other);
    }
    fr_command_free(&first);
}
END_TEST

/* A float32 file loses nothing, so its logits must keep the narrow bound of float models. */
START_TEST(quantize_makes_a_file_of_it) {
    fr_command c = fr_command_ok("quantize -m " WHOLE " --type f32 -o %s", in_folder("model.gguf"));
    ck_assert_msg(strstr(c.err, "were quantized before"), "%s", c.err);
    fr_command_free(&c);
    for (size_t prompt = 1; prompt <= 2; prompt++) {
        c = run_logits(in_folder("model.gguf"), WHOLE, prompt, "");
        compare(&c, WHOLE, prompt, 5e-5F);
        fr_command_free(&c);
    }
    c = fr_command_ok("quantize -m " WHOLE " --type q8_0 -o %s", in_folder("model.gguf"));
    fr_command_free(&c);
    c = run_logits(in_folder("model.gguf"), WHOLE, 2, "");
    compare(&c, WHOLE, 2, 5e-2F);
    fr_command_free(&c);
}
END_TEST

static const char *const others[] = {"tests/data/storages/whole-fp4", "tests/data/storages/whole-latent"};

/* When a folder with FP4 weights is loaded, the weights are copied to GGUF's blocks, without the scale of the matrix.
 * When the folder is converted to a file of another type, the file must not be made from these copies. In a folder of
 * mlx-lm, the heads of latent attention are stacks, as in GGUF. */
START_TEST(other_folders_run_and_become_files) {
    const char *model = others[_i];
    fr_command first = run_logits(model, model, 0, "-t 2"), c = run_logits(model, model, 0, "-t 1 --no-mmap -ub 1");
    compare(&first, model, 0, 5e-2F);
    ck_assert_uint_eq(first.out_length, c.out_length);
    ck_assert_mem_eq(first.out, c.out, c.out_length);
    fr_command_free(&first);
    fr_command_free(&c);
    c = fr_command_ok("quantize -m %s --type f32 -o %s", model, in_folder("model.gguf"));
    fr_command_free(&c);
    c = run_logits(in_folder("model.gguf"), model, 0, "");
    compare(&c, model, 0, 5e-5F);
    fr_command_free(&c);
}
END_TEST

START_TEST(inspect_names_the_storage) {
    fr_command c = fr_command_ok("inspect -m " WHOLE);
    ck_assert_msg(strstr(c.out, "storage        58 matrices of MLX, 4 bits, groups of 64: 4.50 bits a weight\n"), "%s",
                  c.out);
    ck_assert_msg(strstr(c.out, "storage        2 matrices of MLX, 8 bits, groups of 64: 8.50 bits a weight\n"), "%s",
                  c.out);
    fr_command_free(&c);
    c = fr_command_ok("inspect -m " WHOLE " -o json");
    json_t *said = json_loads(c.out, 0, NULL), *of = json_array_get(json_object_get(said, "storages"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(of, "method")), "MLX");
    ck_assert_int_eq(json_integer_value(json_object_get(of, "matrices")), 58);
    json_decref(said);
    fr_command_free(&c);
}
END_TEST

/* Writes a copy of the folder in which one 16-bit value of a tensor is changed. */
static void write_changed(const char *tensor, size_t at, uint16_t bits) {
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    require(fr_map_open(&map, WHOLE "/model.safetensors", true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    size_t place = (size_t)((const uint8_t *)fr_tensors_find(&tensors, tensor)->data - map.bytes) + at;
    uint8_t *bytes = malloc(map.size);
    memcpy(bytes, map.bytes, map.size);
    memcpy(bytes + place, &bits, sizeof bits);
    FILE *out = fopen(in_folder("model.safetensors"), "wb");
    ck_assert(out && fwrite(bytes, map.size, 1, out) == 1);
    fclose(out);
    json_t *config = fr_load_json(WHOLE "/config.json");
    ck_assert_int_eq(json_dump_file(config, in_folder("config.json"), 0), 0);
    json_decref(config);
    free(bytes);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
}

/* In each case one scale or bias is not finite. It belongs to a layer's matrix, to the embedding table, or to an
 * expert. */
START_TEST(a_scale_that_is_not_finite_ends_in_a_line) {
    static const char *const tensors[] = {"model.layers.1.self_attn.q_proj.scales", "model.embed_tokens.biases",
                                          "model.layers.0.mlp.switch_mlp.up_proj.scales"};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        char line[128];
        write_changed(tensors[i], 6, 0x7fc0);
        snprintf(line, sizeof line, "tensor %s has nan at index 3, which is no scale", tensors[i]);
        for (int mapped = 0; mapped < 2; mapped++) {
            char text[256];
            snprintf(text, sizeof text, "generate -m %s --ids 1,2 -n 1 %s", folder, mapped ? "" : "--no-mmap");
            fr_command c = fr_command_run(text, NULL);
            ck_assert_int_eq(c.status, 1);
            ck_assert_msg(strstr(c.err, line), "%s", c.err);
            fr_command_free(&c);
        }
    }
}
END_TEST

/* -------------------------------------------------------------------------------------------------------- matrices */

static const char *const kinds[] = {
    "awq",          "gptq-act",  "ct-w4a16-asym",  "ct-int8",      "ct-fp8-channel", "ct-fp8-tensor",
    "ct-fp8-block", "ct-nvfp4",  "modelopt-nvfp4", "modelopt-fp8", "mlx-3bit",       "mlx-8bit",
    "mlx-mxfp4",    "mlx-nvfp4", "mlx-mxfp8",      "ct-mxfp4",     "ct-mxfp8",       "fp8-tensor"};

/* Checks a loaded matrix against the values to which its stored form decodes. Compares its rows, and its product with a
 * row of activations. Kernels may quantize activations in blocks of 32 columns, with a step of 1/127 of the block's
 * largest value. So the product may have an error of half a step for each column. */
static void check_matrix(const fr_matrix *m, const float *wanted, const char *kind) {
    enum { COLS_MAX = 256, ROWS_MAX = 64 };
    float x[COLS_MAX], y[ROWS_MAX], row[COLS_MAX];
    fr_arena arena = {0};
    fr_workspace workspace;
    const fr_kernels *kernels;
    ck_assert(m->features <= ROWS_MAX && m->cols <= COLS_MAX);
    require(fr_kernels_select(NULL, &kernels));
    require(fr_arena_open(&arena, 1 << 16, "a workspace"));
    fr_workspace_layout(&workspace, kernels, &arena, m->packed, NULL, 1, m->cols);
    for (size_t c = 0; c < m->cols; c++) x[c] = sinf((float)(7 * c + 1));
    fr_matrix_input_row(&workspace, 0, x, m->cols);
    fr_matrix_apply_part(&workspace, m, 0, m->features, &(fr_matrix_rows){y, m->features, x, m->cols, 1});
    for (size_t o = 0; o < m->features; o++) {
        double sum = 0, size = 0;
        fr_matrix_decode(m, o, row);
        for (size_t c = 0; c < m->cols; c++) {
            double value = (double)wanted[o * m->cols + c];
            ck_assert_msg(fabs((double)row[c] - value) <= 2e-7 * fabs(value), "%s: row %zu, column %zu: %g, not %g",
                          kind, o, c, (double)row[c], value);
            sum += value * (double)x[c];
            size += fabs(value);
        }
        double bound = m->packed ? size * 0.5 / 127 : size * 1e-6;
        ck_assert_msg(fabs((double)y[o] - sum) <= bound, "%s: row %zu: %g, not %g", kind, o, (double)y[o], sum);
    }
    fr_arena_close(&arena);
}

START_TEST(matrices_have_the_values_of_their_storage) {
    static const char name[] = "model.layers.0.self_attn.k_proj.weight";
    char path[128];
    snprintf(path, sizeof path, "tests/data/storages/%s", kinds[_i]);
    for (int way = 0; way < 4; way++) {
        fr_plan plan = {.threads = 1 + (size_t)way / 2, .nodes = 1, .oversubscribed = true};
        fr_checkpoint files;
        fr_weights weights;
        fr_matrix matrix;
        fr_pool *pool;
        for (size_t i = 0; i < plan.threads; i++) plan.cpu[i] = -1;
        require(fr_checkpoint_open(&files, path, true));
        const fr_storage *s = fr_tensors_find(&files.tensors, name)->storage;
        size_t rows = s->rows, cols = s->cols;
        float *wanted = calloc(rows * cols, sizeof *wanted);
        for (size_t r = 0; r < rows; r++) fr_storage_decode(s, r, 0, cols, wanted + r * cols);
        fr_checkpoint_close(&files);
        require(fr_checkpoint_open(&files, path, way % 2));
        require(fr_weights_open(&weights, &files));
        require(fr_bind_matrix(&weights, "", name, rows, cols, FR_STREAMED, &matrix));
        require(fr_pool_open(&plan, &pool));
        require(fr_weights_place(&weights, pool, NULL, NULL));
        check_matrix(&matrix, wanted, kinds[_i]);
        fr_pool_close(pool);
        fr_weights_close(&weights);
        fr_checkpoint_close(&files);
        free(wanted);
    }
}
END_TEST

FR_SUITE("stored weights") {
    TCase *tests = tcase_create("stored weights");
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_loop_test(tests, matrices_have_the_values_of_their_storage, 0, sizeof kinds / sizeof *kinds);
    tcase_add_test(tests, logits_are_near_those_of_the_dequantized_weights);
    tcase_add_test(tests, bits_are_the_same_however_it_is_run);
    tcase_add_test(tests, quantize_makes_a_file_of_it);
    tcase_add_loop_test(tests, other_folders_run_and_become_files, 0, sizeof others / sizeof *others);
    tcase_add_test(tests, inspect_names_the_storage);
    tcase_add_test(tests, a_scale_that_is_not_finite_ends_in_a_line);
}
