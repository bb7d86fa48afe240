/* Tests FP8 weights: the values of codes, the scales of blocks in a matrix that is divided at any place, quantize and
 * inspect with such files, and files that are refused.
 *
 * test_reference.c tests that a model with such weights (llama-fp8) gives the same results as transformers.
 * test_llama.c and check_kernels.c test that every instruction set gives the same results. The values of codes come
 * from torch and are in this model's reference.json. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "forerun_lab.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"
#include "quant/fp8.h"
#include "src/engine/weights/weights.h"
#include "tests/support/command.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define SOURCE FR_TEST_MODELS "llama-fp8"
#define LAYER  "model.layers.0."
#define Q      LAYER "self_attn.q_proj.weight"
#define SCALES Q "_scale_inv"

static char folder[64];
static float values[256]; /* torch's value for each code; NaN for the codes of NaN */

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-fp8-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    json_t *reference = fr_load_json(SOURCE "/reference.json"), *codes = json_object_get(reference, "codes");
    ck_assert_uint_eq(json_array_size(codes), 256);
    for (size_t i = 0; i < 256; i++) {
        const json_t *value = json_array_get(codes, i);
        values[i] = json_is_null(value) ? NAN : (float)json_real_value(value);
    }
    json_decref(reference);
}

static void remove_folder(void) {
    unlink(in_folder("config.json"));
    unlink(in_folder("model.safetensors"));
    unlink(in_folder("model.gguf"));
    ck_assert_int_eq(rmdir(folder), 0);
}

static bool same(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/* ------------------------------------------------------------------------------------------------------------ codes */

START_TEST(codes_are_as_torch_reads_them) {
    ck_assert(isnan(values[0x7f]) && isnan(values[0xff]) && signbit(values[0x80]));
    for (unsigned code = 0; code < 256; code++) {
        uint8_t byte = (uint8_t)code;
        float decoded, scale = 0x1.8p-11f;
        fr_fp8_decode(&byte, &scale, &decoded, 1);
        ck_assert_msg(same(fr_fp8_value(byte), values[code]), "code %u", code);
        ck_assert_msg(same(decoded, values[code] * scale), "code %u", code);
    }
}
END_TEST

START_TEST(nan_is_found_wherever_it_is) {
    uint8_t codes[40];
    for (size_t n = 0; n <= sizeof codes; n++)
        for (size_t at = 0; at <= n; at++)
            for (unsigned code = 0; code < 256; code++) {
                memset(codes, code & 0x7e, sizeof codes);
                if (at < n) codes[at] = (uint8_t)(code | 0x7f);
                ck_assert_uint_eq(fr_fp8_find_nan(codes, n), at);
            }
}
END_TEST

/* ------------------------------------------------------------------------------------------------ parts and stacks */

enum { STACK = 3, PART = 70, COLS = 150, DOWN = 2, ACROSS = 2 };

/* Writes a folder with FP8 weights: a tensor of STACK matrices with two parts each. If `alone` is true, it has only one
 * such matrix. All scales are different. */
static void write_stack(bool alone, uint8_t *codes, float *scales) {
    char header[512];
    size_t stack = alone ? 1 : STACK, bytes = stack * 2 * PART * COLS, count = stack * DOWN * ACROSS;
    const char *more = alone ? "" : "3,";
    snprintf(header, sizeof header,
             "{\"x\":{\"dtype\":\"F8_E4M3\",\"shape\":[%s%d,%d],\"data_offsets\":[0,%zu]},\"x_scale_inv\":{\"dtype\":"
             "\"F32\",\"shape\":[%s%d,%d],\"data_offsets\":[%zu,%zu]}}",
             more, 2 * PART, COLS, bytes, more, DOWN, ACROSS, bytes, bytes + count * sizeof *scales);
    for (size_t i = 0; i < bytes; i++) {
        codes[i] = (uint8_t)(i * 2654435761u >> 13);
        if ((codes[i] & 0x7f) == 0x7f) codes[i] = 0;
    }
    for (size_t i = 0; i < count; i++) scales[i] = 0.01f + 0.001f * (float)i;
    uint64_t length = strlen(header);
    FILE *out = fopen(in_folder("model.safetensors"), "wb");
    ck_assert(fwrite(&length, sizeof length, 1, out) && fwrite(header, length, 1, out) &&
              fwrite(codes, bytes, 1, out) && fwrite(scales, sizeof *scales, count, out) == count);
    fclose(out);
    out = fopen(in_folder("config.json"), "wb");
    fputs("{}", out);
    fclose(out);
}

/* Checks the decoded rows of a matrix. Also checks that the matrix's product with a row is the product of the decoded
 * rows with this row. */
static void check_matrix(const fr_matrix *matrix, size_t index, const uint8_t *codes, const float *scales) {
    float row[COLS], x[COLS], got[PART], expected;
    fr_workspace workspace = {0};
    require(fr_kernels_select(NULL, &workspace.kernels));
    for (size_t i = 0; i < COLS; i++) x[i] = sinf((float)i);
    fr_matrix_apply_part(&workspace, matrix, 16, PART, &(fr_matrix_rows){got, PART, x, COLS, 1});
    for (size_t o = 0; o < PART; o++) {
        size_t of_stack = index % 2 * PART + o, first = index / 2 * 2 * PART * COLS + of_stack * COLS;
        fr_matrix_row(workspace.kernels, matrix, o, 1.0f, row);
        for (size_t i = 0; i < COLS; i++) {
            float scale = scales[index / 2 * DOWN * ACROSS + of_stack / 128 * ACROSS + i / 128];
            ck_assert_msg(same(row[i], values[codes[first + i]] * scale), "matrix %zu, row %zu, column %zu", index, o,
                          i);
        }
        workspace.kernels->matmul[FR_F32](&(fr_matmul){&expected, 1, x, COLS, 1, row, sizeof row, COLS, 1});
        if (o >= 16) ck_assert(same(got[o], expected));
    }
}

START_TEST(scales_follow_parts_of_a_matrix) {
    static uint8_t codes[STACK * 2 * PART * COLS];
    float scales[STACK * DOWN * ACROSS];
    fr_checkpoint files;
    fr_weights weights;
    fr_matrix matrices[2 * STACK];
    write_stack(_i, codes, scales);
    require(fr_checkpoint_open(&files, folder, true));
    require(fr_weights_open(&weights, &files));
    if (_i)
        require(fr_bind_parts(&weights, "", "x", 2, PART, COLS, matrices));
    else
        require(fr_bind_stack(&weights, "", "x", FR_LAYOUT_ROWS, STACK, 2, PART, COLS, matrices));
    for (size_t i = 0; i < (_i ? 2 : 2 * STACK); i++) check_matrix(&matrices[i], i, codes, scales);
    fr_weights_close(&weights);
    fr_checkpoint_close(&files);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- refusals */

/* A change of a file. It changes a tensor's name, one entry of the header, or a byte or float of the data. */
typedef struct change {
    const char *tensor, *rename, *key, *entry;
    bool has_byte, has_value;
    uint8_t byte;
    float value;
} change;

static void apply(const change *c, json_t *header, uint8_t *data) {
    json_t *tensor = c->tensor ? json_object_get(header, c->tensor) : NULL;
    if (!tensor) return;
    size_t begin = (size_t)json_integer_value(json_array_get(json_object_get(tensor, "data_offsets"), 0));
    if (c->has_byte) data[begin + 1001] = c->byte;
    if (c->has_value) memcpy(data + begin + sizeof c->value, &c->value, sizeof c->value);
    if (c->key) json_object_set_new(tensor, c->key, json_loads(c->entry, JSON_DECODE_ANY, NULL));
    if (!c->rename) return;
    json_object_set(header, c->rename, tensor);
    json_object_del(header, c->tensor);
}

/* Writes a copy of the model with a change. `how` has members that replace those of quantization_config; if it is NULL,
 * none is replaced. */
static void write_model(const change *c, const char *how) {
    fr_map map;
    uint64_t length;
    require(fr_map_open(&map, SOURCE "/model.safetensors", true));
    memcpy(&length, map.bytes, sizeof length);
    size_t size = map.size - 8 - length;
    uint8_t *data = malloc(size);
    memcpy(data, map.bytes + 8 + length, size);
    json_t *header = json_loadb((const char *)map.bytes + 8, length, 0, NULL), *config, *changes;
    apply(c, header, data);
    char *text = json_dumps(header, JSON_COMPACT);
    length = strlen(text);
    FILE *out = fopen(in_folder("model.safetensors"), "wb");
    ck_assert(fwrite(&length, sizeof length, 1, out) && fwrite(text, length, 1, out) && fwrite(data, size, 1, out));
    fclose(out);
    config = fr_load_json(SOURCE "/config.json");
    changes = json_loads(how ? how : "{}", 0, NULL);
    json_object_update(json_object_get(config, "quantization_config"), changes);
    ck_assert_int_eq(json_dump_file(config, in_folder("config.json"), 0), 0);
    json_decref(changes);
    json_decref(config);
    json_decref(header);
    free(text);
    free(data);
    fr_map_close(&map);
}

static const struct {
    change change;
    const char *how, *line; /* line: a part of the error line, or NULL if the model is accepted */
    fr_status status;
} cases[] = {
    {{0}, NULL, NULL, FR_OK},
    {{0}, "{\"weight_block_size\": null, \"fmt\": null}", NULL, FR_OK},
    {{.tensor = SCALES, .rename = LAYER "x"}, NULL, Q "_scale_inv is missing", FR_INPUT},
    {{.tensor = SCALES, .rename = Q "_scale"}, NULL, NULL, FR_OK},
    {{.tensor = SCALES, .key = "shape", .entry = "[4, 1]"},
     NULL,
     Q "_scale_inv has shape [4, 1], the configuration "
       "asks for [2, 2]",
     FR_INPUT},
    {{.tensor = SCALES, .key = "shape", .entry = "[4]"}, NULL, "_scale_inv has shape [4]", FR_INPUT},
    {{.tensor = SCALES, .key = "dtype", .entry = "\"I32\""}, NULL, "_scale_inv has type I32", FR_INPUT},
    {{.tensor = SCALES, .has_value = true, .value = INFINITY}, NULL, "_scale_inv has inf at index 1", FR_INPUT},
    {{.tensor = SCALES, .has_value = true, .value = NAN}, NULL, "_scale_inv has nan at index 1", FR_INPUT},
    {{.tensor = SCALES, .has_value = true, .value = -0.01f}, NULL, "_scale_inv has -0.01 at index 1", FR_INPUT},
    {{.tensor = SCALES, .has_value = true, .value = 129}, NULL, "_scale_inv has 129 at index 1", FR_INPUT},
    {{.tensor = SCALES, .has_value = true, .value = 0x1p-140f}, NULL, NULL, FR_OK},
    {{.tensor = Q, .has_byte = true, .byte = 0x7f}, NULL, Q " has a NaN at index 1001", FR_INPUT},
    {{.tensor = Q, .has_byte = true, .byte = 0xff}, NULL, Q " has a NaN at index 1001", FR_INPUT},
    {{.tensor = Q, .has_byte = true, .byte = 0x7e}, NULL, NULL, FR_OK},
    {{.tensor = LAYER "self_attn.x"}, "{\"weight_block_size\": [64, 64]}", "weight_block_size is not", FR_UNBUILT},
    {{0}, "{\"weight_block_size\": [128]}", "weight_block_size is not", FR_UNBUILT},
    {{0}, "{\"quant_method\": \"fp9\"}", "quant_method fp9 are not built", FR_UNBUILT},
    {{0}, "{\"fmt\": \"e5m2\"}", "fmt e5m2 are not built", FR_UNBUILT},
    {{0}, "{\"quant_method\": 8}", "quant_method", FR_INPUT},
};

START_TEST(what_is_damaged_is_refused_in_a_line) {
    fr_model *model;
    write_model(&cases[_i].change, cases[_i].how);
    fr_status status = fr_model_open(folder, NULL, &model);
    if (status == FR_OK) fr_model_close(model);
    const char *line = status == FR_OK ? "taken" : fr_last_error();
    ck_assert_msg(status == cases[_i].status, "%s", line);
    if (cases[_i].line) ck_assert_msg(strstr(line, cases[_i].line) && !strchr(line, '\n'), "%s", line);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------- the verbs */

/* quantize writes a tensor of FP8 weights as float32 with the same rows. If a weight is NaN, quantize fails. */
START_TEST(quantize_reads_them) {
    const char *published = LAYER "mlp.gate_proj.weight";
    fr_checkpoint source, made;
    write_model(&cases[0].change, NULL);
    fr_command c = fr_command_ok("quantize -m %s --type f32 -o %s/model.gguf", folder, folder);
    fr_command_free(&c);
    require(fr_checkpoint_open(&source, folder, true));
    require(fr_checkpoint_open(&made, in_folder("model.gguf"), true));
    const fr_tensor *codes = fr_tensors_find(&source.tensors, published), *got;
    const fr_tensor *scales = fr_tensors_find(&source.tensors, LAYER "mlp.gate_proj.weight_scale_inv");
    got = fr_tensors_find(&made.tensors, "blk.0.ffn_gate.weight");
    ck_assert(got && got->type == FR_F32 && got->shape[0] == codes->shape[0] && scales->type == FR_F32);
    size_t rows = codes->shape[0], cols = codes->shape[1], across = scales->shape[1];
    for (size_t i = 0; i < rows * cols; i++) {
        float scale, value;
        size_t block = i / cols / 128 * across + i % cols / 128;
        memcpy(&scale, (const char *)scales->data + block * sizeof scale, sizeof scale);
        memcpy(&value, (const char *)got->data + i * sizeof value, sizeof value);
        ck_assert_msg(same(value, values[((const uint8_t *)codes->data)[i]] * scale), "weight %zu", i);
    }
    ck_assert_ptr_null(fr_tensors_find(&made.tensors, "blk.0.ffn_gate.weight_scale_inv"));
    fr_checkpoint_close(&source);
    fr_checkpoint_close(&made);
    write_model(&(change){.tensor = Q, .has_byte = true, .byte = 0x7f}, NULL);
    char line[256];
    snprintf(line, sizeof line, "quantize -m %s --type f32 -o %s/model.gguf", folder, folder);
    c = fr_command_run(line, NULL);
    ck_assert_msg(c.status == 1 && strstr(c.err, "has nan in row"), "%s", c.err);
    fr_command_free(&c);
}
END_TEST

START_TEST(inspect_tells_them) {
    fr_command c = fr_command_ok("inspect -m " SOURCE " --tensors");
    ck_assert_msg(strstr(c.out, "types          7 F32, 14 BF16, 13 F8_E4M3") != NULL, "%s", c.out);
    ck_assert_msg(strstr(c.out, "F8_E4M3 [132, 150] " Q) != NULL, "%s", c.out);
    fr_command_free(&c);
}
END_TEST

FR_SUITE("fp8") {
    TCase *tests = tcase_create("fp8");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, codes_are_as_torch_reads_them);
    tcase_add_test(tests, nan_is_found_wherever_it_is);
    tcase_add_loop_test(tests, scales_follow_parts_of_a_matrix, 0, 2);
    tcase_add_loop_test(tests, what_is_damaged_is_refused_in_a_line, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tests, quantize_reads_them);
    tcase_add_test(tests, inspect_tells_them);
    suite_add_tcase(suite, tests);
}
