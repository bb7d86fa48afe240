/* Tests folders with quantized weights. Modules that the quantizers' own packages wrote must have the right values.
 * Other spellings of the configurations must be read. Some folders must be refused, each with its own line.
 *
 * tests/data/storages/KIND has one module as the package wrote it. It also has the module's first rows as the package
 * dequantizes them (tests/references/storages.py). */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/checkpoint.h"
#include "formats/safetensors.h"
#include "formats/storage.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define DATA   "tests/data/storages/"
#define MODULE "model.layers.0.self_attn.k_proj"
#define EXPERT "model.layers.0.mlp.experts.0.down_proj"
#define STACK  "model.layers.0.mlp.switch_mlp.down_proj"

static const char *const kinds[] = {
    "awq",           "gptq",         "gptq-act",      "gptq-v2",        "gptq-3bit",    "gptq-8bit",
    "gptq-stray",    "ct-w4a16",     "ct-w4a16-asym", "ct-int8",        "ct-int8-asym", "ct-fp8-channel",
    "ct-fp8-tensor", "ct-fp8-block", "ct-nvfp4",      "modelopt-nvfp4", "modelopt-fp8", "mlx-2bit",
    "mlx-3bit",      "mlx-4bit",     "mlx-6bit",      "mlx-8bit",       "mlx-moe",      "mlx-mxfp4",
    "mlx-nvfp4",     "mlx-mxfp8",    "mlx-mxfp4-moe", "ct-mxfp4",       "ct-mxfp8",     "fp8-tensor"};

static char folder[64];

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-storage-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    static const char *const files[] = {"config.json", "model.safetensors", "quantize_config.json", "quant_config.json",
                                        "hf_quant_config.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(in_folder(files[i]));
    ck_assert_int_eq(rmdir(folder), 0);
}

/* ---------------------------------------------------------------------------------------------------------- values */

/* Checks the rows of a folder's module in three ways, bit for bit: decoded as whole rows, decoded in parts, and
 * computed from their unpacked codes and scales. */
static void check_values(const char *path, const char *kind) {
    char name[128];
    fr_map map;
    fr_tensors wanted = {0}, unread = {0};
    fr_checkpoint files;
    snprintf(name, sizeof name, DATA "%s/expected.safetensors", kind);
    require(fr_map_open(&map, name, true));
    require(fr_safetensors_read(&map, 0, &wanted, &unread));
    const fr_tensor *rows = fr_tensors_find(&wanted, "rows"), *module;
    require(fr_checkpoint_open(&files, path, true));
    module = fr_tensors_find(&files.tensors, MODULE ".weight");
    if (!module) module = fr_tensors_find(&files.tensors, EXPERT ".weight");
    ck_assert(module && module->storage && module->dims == 2 && module->shape[1] == rows->shape[1]);
    const fr_storage *s = module->storage;
    size_t cols = s->cols;
    float *values = calloc(cols, sizeof *values), *expected = calloc(cols, sizeof *expected);
    enum { TOGETHER = 5 }; /* number of rows that are unpacked at once */
    uint8_t *bytes = calloc(TOGETHER, cols + s->groups);
    float *floats = calloc(TOGETHER, 2 * s->groups * sizeof *floats);
    fr_grouped_row rows_of[TOGETHER];
    for (size_t i = 0; i < TOGETHER; i++)
        rows_of[i] = (fr_grouped_row){bytes + i * (cols + s->groups), floats + 2 * i * s->groups,
                                      bytes + i * (cols + s->groups) + cols, floats + (2 * i + 1) * s->groups};
    require(fr_storage_check(s, 0, s->rows, path));
    for (size_t r = 0; r < s->rows; r++) {
        fr_storage_decode(s, r, 0, cols, values);
        /* only the first rows have values of the package; in all other rows the parts of a row are compared with the
         * whole row */
        const float *of_package = (const float *)rows->data + r * cols;
        memcpy(expected, r < rows->shape[0] ? of_package : values, cols * sizeof *expected);
        ck_assert_msg(memcmp(values, expected, cols * sizeof *values) == 0, "%s: row %zu", kind, r);
        memset(values, 0, cols * sizeof *values);
        fr_storage_decode(s, r, 0, 37, values);
        fr_storage_decode(s, r, 37, cols, values + 37);
        ck_assert_msg(memcmp(values, expected, cols * sizeof *values) == 0, "%s: row %zu in parts", kind, r);
        if (s->form != FR_STORAGE_GROUPED || s->group_of) continue;
        const fr_grouped_row unpacked = rows_of[r % TOGETHER];
        size_t left = s->rows - r;
        if (r % TOGETHER == 0) fr_storage_unpack(s, r, left < TOGETHER ? left : TOGETHER, rows_of);
        for (size_t c = 0; c < cols; c++) {
            size_t g = c / s->grouping.group;
            int zero = s->grouping.offset == FR_OFFSET_CENTRE ? 1 << (s->grouping.bits - 1)
                       : s->grouping.offset == FR_OFFSET_ZERO ? unpacked.zeros[g]
                                                              : 0;
            float value = (float)(unpacked.codes[c] - zero) * unpacked.scales[g];
            if (s->grouping.offset == FR_OFFSET_BIAS) value += unpacked.biases[g];
            ck_assert_msg(memcmp(&value, &expected[c], sizeof value) == 0, "%s: row %zu, column %zu", kind, r, c);
        }
    }
    free(bytes);
    free(floats);
    free(values);
    free(expected);
    fr_checkpoint_close(&files);
    fr_tensors_free(&wanted);
    fr_tensors_free(&unread);
    fr_map_close(&map);
}

START_TEST(values_are_those_of_the_packages) {
    char path[128];
    snprintf(path, sizeof path, DATA "%s", kinds[_i]);
    check_values(path, kinds[_i]);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- changes */

/* A change of a safetensors file. A tensor is renamed, an entry in its header gets another value, or some bytes of its
 * data are overwritten. */
typedef struct change {
    const char *tensor, *rename, *key, *entry;
    size_t at, count;
    uint8_t byte;
} change;

static void apply(const change *c, json_t *header, uint8_t *data) {
    json_t *tensor = c->tensor ? json_object_get(header, c->tensor) : NULL;
    if (!c->tensor) return;
    ck_assert_msg(tensor != NULL, "%s", c->tensor);
    size_t begin = (size_t)json_integer_value(json_array_get(json_object_get(tensor, "data_offsets"), 0));
    memset(data + begin + c->at, c->byte, c->count);
    if (c->key) json_object_set_new(tensor, c->key, json_loads(c->entry, JSON_DECODE_ANY, NULL));
    if (!c->rename) return;
    json_object_set(header, c->rename, tensor);
    json_object_del(header, c->tensor);
}

static void write_text(const char *name, const char *text) {
    FILE *out = fopen(in_folder(name), "wb");
    ck_assert(out && fputs(text, out) >= 0);
    fclose(out);
}

/* Writes a copy of the folder of this kind of storage, with change `c` if `c` is not NULL. `config` is the text of
 * config.json; NULL means the text of the kind's folder. */
static void write_folder(const char *kind, const change *c, const char *config) {
    char name[128];
    fr_map map;
    uint64_t length;
    snprintf(name, sizeof name, DATA "%s/model.safetensors", kind);
    require(fr_map_open(&map, name, true));
    memcpy(&length, map.bytes, sizeof length);
    size_t size = map.size - 8 - length;
    uint8_t *data = malloc(size);
    memcpy(data, map.bytes + 8 + length, size);
    json_t *header = json_loadb((const char *)map.bytes + 8, length, 0, NULL);
    if (c) apply(c, header, data);
    char *text = json_dumps(header, JSON_COMPACT);
    length = strlen(text);
    FILE *out = fopen(in_folder("model.safetensors"), "wb");
    ck_assert(fwrite(&length, sizeof length, 1, out) && fwrite(text, length, 1, out) && fwrite(data, size, 1, out));
    fclose(out);
    free(text);
    snprintf(name, sizeof name, DATA "%s/config.json", kind);
    json_t *own = fr_load_json(name);
    text = json_dumps(own, 0);
    write_text("config.json", config ? config : text);
    free(text);
    json_decref(own);
    json_decref(header);
    free(data);
    fr_map_close(&map);
}

/* -------------------------------------------------------------------------------------------- other configurations */

static const struct {
    const char *kind, *config, *file, *text; /* config: text of config.json; file, text: another file and its content */
} spellings[] = {
    {"awq",
     "{\"quantization_config\":{\"quant_method\":\"awq\",\"w_bit\":4,\"q_group_size\":128,\"version\":\"GEMM\"}}", NULL,
     NULL},
    {"awq", "{}", "quant_config.json",
     "{\"zero_point\":true,\"q_group_size\":128,\"w_bit\":4,\"version\":\"GEMM\",\"modules_to_not_convert\":null}"},
    {"awq", "{\"text_config\":{\"quantization_config\":{\"quant_method\":\"awq\",\"bits\":4}}}", NULL, NULL},
    {"awq", "{}", NULL, NULL},
    {"gptq", "{}", "quantize_config.json", "{\"bits\":4,\"group_size\":128,\"desc_act\":false,\"sym\":true}"},
    {"gptq", "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"sym\":false,\"group_size\":-1}}", NULL,
     NULL},
    {"gptq-v2", "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"format\":\"gptq_v2\",\"sym\":false}}",
     NULL, NULL},
    {"gptq-3bit", "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"sym\":false}}", NULL, NULL},
    {"gptq-stray",
     "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"sym\":false,\"dynamic\":{\"-:.*mlp.*\":{},"
     "\"+:.*\\\\.k_proj\":{\"sym\":true}}}}",
     NULL, NULL},
    {"gptq-stray",
     "{\"quantization_config\":{\"quant_method\":\"intel/auto-round\",\"bits\":4,\"sym\":true,"
     "\"packing_format\":\"auto_round:auto_gptq\"}}",
     NULL, NULL},
    {"ct-w4a16", "{\"compression_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\"}}",
     NULL, NULL},
    {"ct-w4a16",
     "{\"quantization_config\":{\"config_groups\":{\"group_0\":{\"targets\":[\"re:.*mlp.*\"],\"weights\":{\"num_bits\":"
     "8}},\"group_1\":{\"targets\":[\"re:.*[.](k|v)_proj\"],\"weights\":{\"num_bits\":4,\"group_size\":128}}}}}",
     NULL, NULL},
    {"ct-fp8-block", "{\"quantization_config\":{\"quant_method\":\"fp8\"}}", NULL, NULL},
    {"ct-fp8-channel", "{\"quantization_config\":{\"quant_method\":\"fbgemm_fp8\"}}", NULL, NULL},
    {"modelopt-nvfp4", "{}", "hf_quant_config.json", "{\"quantization\":{\"quant_algo\":\"nvfp4\",\"group_size\":16}}"},
    {"mlx-4bit", "{\"quantization\":{\"group_size\":64,\"bits\":4}}", NULL, NULL},
    {"mlx-6bit", "{\"quantization\":{\"group_size\":64,\"bits\":4,\"" MODULE "\":{\"group_size\":64,\"bits\":6}}}",
     NULL, NULL},
    {"mlx-8bit", "{\"quantization\":{\"group_size\":64,\"bits\":4}}", NULL, NULL},
};

START_TEST(another_spelling_gives_the_same_values) {
    write_folder(spellings[_i].kind, NULL, spellings[_i].config);
    if (spellings[_i].file) write_text(spellings[_i].file, spellings[_i].text);
    check_values(folder, spellings[_i].kind);
}
END_TEST

/* In MLX's format, three numbers of a module can't be read from its shapes alone: the number of bits, the group size
 * and the number of columns. If one of them is known, the other two follow from the shapes. Here the configuration is
 * wrong, but the model knows the number of columns. */
START_TEST(columns_tell_what_a_configuration_leaves_out) {
    fr_checkpoint files;
    float values[128], wanted[128];
    write_folder("mlx-6bit", NULL, "{\"quantization\":{\"group_size\":128,\"bits\":4}}");
    require(fr_checkpoint_open(&files, folder, true));
    const fr_tensor *module = fr_tensors_find(&files.tensors, MODULE ".weight");
    ck_assert_uint_eq(module->shape[1], 256);
    ck_assert(!fr_storage_refit(&files, module, 100) && !fr_storage_refit(&files, module, 0));
    ck_assert(fr_storage_refit(&files, module, 128) && module->shape[1] == 128);
    fr_storage_decode(module->storage, 5, 0, 128, values);
    fr_checkpoint_close(&files);
    require(fr_checkpoint_open(&files, DATA "mlx-6bit", true));
    fr_storage_decode(fr_tensors_find(&files.tensors, MODULE ".weight")->storage, 5, 0, 128, wanted);
    ck_assert(memcmp(values, wanted, sizeof values) == 0);
    fr_checkpoint_close(&files);
}
END_TEST

/* Writes a module in the format of compressed-tensors: 16 rows of 32 codes of 3 bits, in `words` 32-bit words per row.
 * If `bytes` is true, the zero points are written as signed bytes. Otherwise they are packed in 3 bits each. */
static void write_old(const uint32_t *codes, size_t words, bool bytes) {
    static const char form[] =
        "{\"a.weight_packed\":{\"dtype\":\"I32\",\"shape\":[16,%zu],\"data_offsets\":[0,%zu]},\"a.weight_shape\":{"
        "\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[%zu,%zu]},\"a.weight_scale\":{\"dtype\":\"F32\",\"shape\":["
        "16,1],\"data_offsets\":[%zu,%zu]},\"a.weight_zero_point\":{\"dtype\":\"%s\",\"shape\":[%d,1],\"data_offsets\":"
        "["
        "%zu,%zu]}}";
    size_t at = 64 * words, zeros = bytes ? 16 : 8;
    const int64_t shape[2] = {16, 32};
    char header[1024];
    snprintf(header, sizeof header, form, words, at, at, at + 16, at + 16, at + 80, bytes ? "I8" : "I32",
             bytes ? 16 : 2, at + 80, at + 80 + zeros);
    uint64_t length = strlen(header);
    FILE *out = fopen(in_folder("model.safetensors"), "wb");
    ck_assert(fwrite(&length, sizeof length, 1, out) && fwrite(header, length, 1, out) &&
              fwrite(codes, 64 * words, 1, out) && fwrite(shape, sizeof shape, 1, out));
    uint64_t packed = 0;
    for (size_t r = 0; r < 16; r++) {
        float scale = 0.5F + (float)r;
        ck_assert(fwrite(&scale, sizeof scale, 1, out));
        packed |= (uint64_t)(r * 3 % 8) << 3 * r;
    }
    for (size_t r = 0; r < 16 && bytes; r++) ck_assert_int_ne(fputc((int)(r * 3 % 8) - 4, out), EOF);
    if (!bytes) ck_assert(fwrite(&packed, sizeof packed, 1, out));
    fclose(out);
    write_text("config.json", "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\"}}");
}

/* In folders written before mid-2026, every code is inside one word. In still older folders the zero points are also
 * not packed. Both kinds of folders must give the same values. */
START_TEST(what_older_writers_packed_otherwise_is_the_same) {
    uint32_t crossing[16 * 3] = {0}, whole[16 * 4] = {0};
    for (size_t i = 0; i < 16 * 32; i++) {
        size_t r = i / 32, c = i % 32;
        uint64_t code = i * 2654435761u >> 7 & 7, shifted = code << c * 3 % 32;
        crossing[3 * r + c * 3 / 32] |= (uint32_t)shifted;
        if (shifted >> 32) crossing[3 * r + c * 3 / 32 + 1] |= (uint32_t)(shifted >> 32);
        whole[4 * r + c / 10] |= (uint32_t)code << c % 10 * 3;
    }
    for (int way = 0; way < 4; way++) {
        fr_checkpoint files;
        write_old(way % 2 ? whole : crossing, way % 2 ? 4 : 3, way / 2);
        require(fr_checkpoint_open(&files, folder, true));
        const fr_storage *s = fr_tensors_find(&files.tensors, "a.weight")->storage;
        ck_assert_uint_eq(s->grouping.bits, 3);
        for (size_t i = 0; i < 16 * 32; i++) {
            size_t r = i / 32;
            float value, wanted = (float)((int)(i * 2654435761u >> 7 & 7) - (int)(r * 3 % 8)) * (0.5F + (float)r);
            fr_storage_decode(s, r, i % 32, i % 32 + 1, &value);
            ck_assert_msg(value == wanted, "way %d, row %zu, column %zu: %g, not %g", way, r, i % 32, (double)value,
                          (double)wanted);
        }
        fr_checkpoint_close(&files);
    }
}
END_TEST

/* -------------------------------------------------------------------------------------------------------- refusals */

static const struct {
    const char *kind;
    change change;
    const char *config, *line; /* a part of the error line */
    fr_status status;
} damaged[] = {
    {"awq", {.tensor = MODULE ".scales", .rename = "x"}, NULL, MODULE ".scales is missing, which", FR_INPUT},
    {"awq", {.tensor = MODULE ".qzeros", .rename = "x"}, NULL, MODULE ".qzeros is missing, which", FR_INPUT},
    {"awq", {.tensor = MODULE ".qzeros", .key = "shape", .entry = "[1, 16]"}, NULL, ".qzeros has a shape", FR_INPUT},
    {"awq", {.tensor = MODULE ".scales", .key = "shape", .entry = "[64, 2]"}, NULL, ".scales has a shape", FR_INPUT},
    {"awq", {.tensor = MODULE ".qweight", .key = "shape", .entry = "[2048]"}, NULL, "are not matrices", FR_INPUT},
    {"awq", {.tensor = MODULE ".qweight", .key = "dtype", .entry = "\"F32\""}, NULL, ".qweight has type F32", FR_INPUT},
    {"awq", {0}, "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4}}", MODULE, FR_INPUT},
    {"gptq", {0}, "{\"quantization_config\":{\"quant_method\":\"awq\",\"bits\":4}}", MODULE, FR_INPUT},
    {"awq", {.tensor = MODULE ".qweight", .rename = MODULE ".weight"}, NULL, MODULE ".scales", FR_OK},
    {"gptq-act",
     {.tensor = MODULE ".g_idx", .at = 400, .count = 1, .byte = 2},
     NULL,
     MODULE ".g_idx has 2 at index 100, and there are 2 groups",
     FR_INPUT},
    {"gptq-act",
     {.tensor = MODULE ".g_idx", .at = 400, .count = 4, .byte = 0xff},
     NULL,
     ".g_idx has -1 at index 100",
     FR_INPUT},
    {"gptq", {.tensor = MODULE ".g_idx", .key = "shape", .entry = "[128, 2]"}, NULL, ".g_idx is no list", FR_INPUT},
    {"gptq-v2", {.tensor = MODULE ".qzeros", .rename = "x"}, NULL, ".qzeros is missing", FR_INPUT},
    {"ct-w4a16", {.tensor = MODULE ".weight_shape", .rename = "x"}, NULL, ".weight_shape is missing", FR_INPUT},
    {"ct-w4a16", {.tensor = MODULE ".weight_shape", .at = 7, .count = 1, .byte = 0x80}, NULL, "no rows", FR_INPUT},
    {"ct-w4a16", {.tensor = MODULE ".weight_shape", .at = 8, .count = 1, .byte = 1}, NULL, "width fits no", FR_INPUT},
    {"ct-w4a16",
     {.tensor = MODULE ".weight_scale", .key = "shape", .entry = "[2, 64]"},
     NULL,
     ".weight_scale has a shape",
     FR_INPUT},
    {"ct-w4a16-asym",
     {.tensor = MODULE ".weight_zero_point", .key = "shape", .entry = "[2, 8]"},
     NULL,
     ".weight_zero_point has a shape",
     FR_INPUT},
    {"ct-int8", {.tensor = MODULE ".weight_scale", .rename = "x"}, NULL, ".weight_scale is missing", FR_INPUT},
    {"ct-fp8-block", {.tensor = MODULE ".weight", .key = "shape", .entry = "[128, 64]"}, NULL, NULL, FR_OK},
    {"ct-nvfp4",
     {.tensor = MODULE ".weight_global_scale", .count = 4},
     NULL,
     "global_scale is 0, which is no scale",
     FR_INPUT},
    {"ct-nvfp4", {.tensor = MODULE ".weight_global_scale", .rename = "x"}, NULL, "global_scale is missing", FR_INPUT},
    {"modelopt-nvfp4",
     {.tensor = MODULE ".weight_scale_2", .count = 4, .byte = 0xff},
     NULL,
     "nan, which is no scale",
     FR_INPUT},
    {"modelopt-nvfp4",
     {.tensor = MODULE ".weight_scale", .key = "shape", .entry = "[16, 64]"},
     NULL,
     ".weight_scale has a shape",
     FR_INPUT},
    {"modelopt-nvfp4",
     {.tensor = MODULE ".input_scale", .rename = MODULE ".pre_quant_scale"},
     NULL,
     ".pre_quant_scale: its weights' quantization is not built",
     FR_UNBUILT},
    {"mlx-4bit", {.tensor = MODULE ".biases", .rename = "x"}, NULL, ".biases is missing", FR_INPUT},
    {"mlx-4bit", {.tensor = MODULE ".scales", .key = "shape", .entry = "[2, 64]"}, NULL, "have other shapes", FR_INPUT},
    {"mlx-moe",
     {.tensor = STACK ".weight", .rename = "model.stack.weight"},
     NULL,
     "model.stack.scales is missing",
     FR_INPUT},
    {"mlx-4bit", {0}, "{\"quantization\":{\"bits\":4,\"mode\":\"x\"}}", "mode x are not built", FR_UNBUILT},
    {"mlx-mxfp4", {.tensor = MODULE ".scales", .key = "shape", .entry = "[2, 128]"}, NULL, "fit no format", FR_INPUT},
    {"mlx-mxfp4", {.tensor = MODULE ".weight", .key = "shape", .entry = "[32, 32]"}, NULL, "fit no format", FR_INPUT},
    {"mlx-mxfp4", {.tensor = MODULE ".scales", .rename = "x"}, NULL, ".scales is missing", FR_INPUT},
    {"ct-mxfp4",
     {.tensor = MODULE ".weight_scale", .key = "shape", .entry = "[32, 16]"},
     NULL,
     "scale has a",
     FR_INPUT},
    {"ct-mxfp8",
     {.tensor = MODULE ".weight_scale", .key = "shape", .entry = "[32, 16]"},
     NULL,
     "scale has a",
     FR_INPUT},
    {"awq",
     {0},
     "{\"quantization_config\":{\"quant_method\":\"awq\",\"version\":\"gemv\"}}",
     "version gemv are not",
     FR_UNBUILT},
    {"gptq",
     {0},
     "{\"quantization_config\":{\"quant_method\":\"gptq\",\"checkpoint_format\":\"marlin\"}}",
     "checkpoint_format marlin are not built",
     FR_UNBUILT},
    {"gptq",
     {0},
     "{\"quantization_config\":{\"quant_method\":\"gptq\",\"is_marlin_format\":true}}",
     "is_marlin_format true are not built",
     FR_UNBUILT},
    {"gptq",
     {0},
     "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":5}}",
     "of 5 bits are not built",
     FR_UNBUILT},
    {"ct-w4a16",
     {0},
     "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"marlin-24\"}}",
     "format marlin-24 are not built",
     FR_UNBUILT},
    {"ct-w4a16",
     {0},
     "{\"quantization_config\":{\"config_groups\":{},\"transform_config\":{\"R1\":{}}}}",
     "with a transform_config are not built",
     FR_UNBUILT},
    {"ct-w4a16", {0}, "{\"quantization_config\":{\"config_groups\":4}}", "config_groups", FR_INPUT},
};

START_TEST(what_is_damaged_is_refused_in_a_line) {
    fr_checkpoint files;
    write_folder(damaged[_i].kind, &damaged[_i].change, damaged[_i].config);
    for (int use_mmap = 0; use_mmap < 2; use_mmap++) {
        fr_status status = fr_checkpoint_open(&files, folder, use_mmap);
        ck_assert_msg(status == damaged[_i].status, "status %d: %s", status, fr_last_error());
        if (status == FR_OK) continue;
        ck_assert_msg(strstr(fr_last_error(), damaged[_i].line) && !strchr(fr_last_error(), '\n'), "%s",
                      fr_last_error());
    }
}
END_TEST

static const struct {
    const char *kind;
    change change;
    const char *line;
} values[] = {
    {"awq", {.tensor = MODULE ".scales", .at = 20, .count = 2, .byte = 0xff}, "nan at index 10, which is no scale"},
    {"gptq-8bit",
     {.tensor = MODULE ".scales", .at = 21, .count = 1, .byte = 0x7c},
     "nan at index 10, which is no scale"},
    {"mlx-4bit",
     {.tensor = MODULE ".biases", .at = 20, .count = 2, .byte = 0xff},
     "nan at index 10, which is no scale"},
    {"ct-nvfp4", {.tensor = MODULE ".weight_scale", .at = 9, .count = 1, .byte = 0x7f}, "_scale has nan at index 9"},
    {"mlx-mxfp4", {.tensor = MODULE ".scales", .at = 9, .count = 1, .byte = 255}, "scales has nan at index 9"},
    {"ct-fp8-channel", {.tensor = MODULE ".weight", .at = 300, .count = 1, .byte = 0xff}, "a NaN at index 300"},
};

START_TEST(values_that_are_not_finite_are_told) {
    fr_checkpoint files;
    write_folder(values[_i].kind, &values[_i].change, NULL);
    require(fr_checkpoint_open(&files, folder, true));
    const fr_storage *s = fr_tensors_find(&files.tensors, MODULE ".weight")->storage;
    ck_assert_int_eq(fr_storage_check(s, 0, s->rows, folder), FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), values[_i].line), "%s", fr_last_error());
    fr_checkpoint_close(&files);
}
END_TEST

/* Shapes and types in the header are changed. The folder must then be refused with one line, or its values must be read
 * from inside the file's bytes. */
START_TEST(any_change_of_a_header_is_survived) {
    static const char *const entries[] = {"[]",        "[0]",          "[64]",  "[64, 32]", "[32, 64]", "[2048, 1]",
                                          "[1, 2048]", "[2, 64, 32]",  "[8]",   "[1, 1]",   "[128]",    "[2, 2]",
                                          "[0, 64]",   "[64, 0, 128]", "[256]", "[4]",      "[2]",      "[1]"};
    static const char *const types[] = {"\"I32\"",  "\"U8\"",  "\"I8\"",      "\"U32\"", "\"F16\"",
                                        "\"BF16\"", "\"F32\"", "\"F8_E4M3\"", "\"I64\"", "\"I16\""};
    char name[128];
    fr_checkpoint files;
    snprintf(name, sizeof name, DATA "%s", kinds[_i]);
    require(fr_checkpoint_open(&files, name, true));
    const fr_tensors *tensors = &files.parts;
    for (size_t t = 0; t < tensors->count; t++)
        for (size_t e = 0; e < sizeof entries / sizeof *entries + sizeof types / sizeof *types; e++) {
            bool shape = e < sizeof entries / sizeof *entries;
            const char *entry = shape ? entries[e] : types[e - sizeof entries / sizeof *entries];
            fr_checkpoint changed;
            write_folder(kinds[_i],
                         &(change){.tensor = tensors->items[t].name, .key = shape ? "shape" : "dtype", .entry = entry},
                         NULL);
            fr_status status = fr_checkpoint_open(&changed, folder, true);
            ck_assert_msg(status == FR_OK || !strchr(fr_last_error(), '\n'), "%s", fr_last_error());
            for (size_t i = 0; status == FR_OK && i < changed.tensors.count; i++) {
                const fr_storage *s = changed.tensors.items[i].storage;
                if (!s) continue;
                float *row = calloc(s->cols, sizeof *row);
                for (size_t r = 0; r < s->rows; r++) fr_storage_decode(s, r, 0, s->cols, row);
                free(row);
            }
            if (status == FR_OK) fr_checkpoint_close(&changed);
        }
    fr_checkpoint_close(&files);
}
END_TEST

FR_SUITE("storage") {
    TCase *read = tcase_create("read"), *refused = tcase_create("refused");
    suite_add_tcase(suite, read);
    suite_add_tcase(suite, refused);
    tcase_add_checked_fixture(read, make_folder, remove_folder);
    tcase_add_checked_fixture(refused, make_folder, remove_folder);
    tcase_add_loop_test(read, values_are_those_of_the_packages, 0, sizeof kinds / sizeof *kinds);
    tcase_add_loop_test(read, another_spelling_gives_the_same_values, 0, sizeof spellings / sizeof *spellings);
    tcase_add_test(read, columns_tell_what_a_configuration_leaves_out);
    tcase_add_test(read, what_older_writers_packed_otherwise_is_the_same);
    tcase_add_loop_test(refused, what_is_damaged_is_refused_in_a_line, 0, sizeof damaged / sizeof *damaged);
    tcase_add_loop_test(refused, values_that_are_not_finite_are_told, 0, sizeof values / sizeof *values);
    tcase_add_loop_test(refused, any_change_of_a_header_is_survived, 0, sizeof kinds / sizeof *kinds);
}
