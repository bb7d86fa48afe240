/* Tests the metadata about rotated weights. The reader must get the right values. If the metadata contradicts itself or
 * the tensors, the file is refused. */
/* suite: quick hostile */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "formats/checkpoint.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/suite.h"

/* The values of the keys in a test file. If a member is NULL or 0, build() writes a valid default for it. */
typedef struct declared {
    const char *architecture, *transform, *axis, *mode;
    uint32_t version, block;
    int32_t widths[2];
    size_t values;
    int32_t value;        /* the last value in the list of signs; all others are -1 */
    const char *names[3]; /* names of the rotated weights */
    const char *table;
    int tied; /* the key's value, or -1 if the file lacks the key */
    bool no_groups;
} declared;

static void put_names(fr_builder *b, const char *key, const char *const *names, size_t count) {
    fr_build_key_array(b, key, FR_GGUF_STRING, count);
    for (size_t i = 0; i < count; i++) fr_build_string(b, names[i]);
}

static void put_integers(fr_builder *b, const char *key, size_t count, const int32_t *values, int32_t last) {
    fr_build_key_array(b, key, FR_GGUF_I32, count);
    for (size_t i = 0; i < count; i++) fr_build_u32(b, (uint32_t)(values ? values[i] : i + 1 == count ? last : -1));
}

/* Builds a file with a head, an embedding table, a matrix of 8 columns, and the output matrix of a gated delta net. The
 * output matrix has 12 columns, for six value heads in two groups. */
static void build(fr_builder *b, const declared *d) {
    static const char *const plain[] = {"blk.0.ffn_up.weight", "blk.0.ssm_out.weight", "output.weight"};
    static const char *const tables[] = {"token_embd.weight"};
    const char *const *names = d->names[0] ? d->names : plain;
    size_t count = d->names[0] ? (size_t)(d->names[1] ? d->names[2] ? 3 : 2 : 1) : 3;
    bool identity = d->mode && strcmp(d->mode, "identity") == 0;
    int32_t widths[] = {d->widths[0] ? d->widths[0] : 8, d->widths[1] ? d->widths[1] : 12};
    *b = (fr_builder){0};
    fr_build_header(b, 4, 9 + (identity ? 0 : 2) + (d->no_groups ? 0 : 2) + (d->tied >= 0));
    fr_build_key_string(b, "general.architecture", d->architecture ? d->architecture : "qwen35");
    if (!d->no_groups) {
        const char *names_of[] = {"qwen35.ssm.group_count", "qwen35.ssm.time_step_rank"};
        fr_build_key_u32(b, names_of[0], 2);
        fr_build_key_u32(b, names_of[1], 6);
    }
    if (d->tied >= 0) fr_build_key_bool(b, "prism.hadamard.tied_output", d->tied);
    fr_build_key_u32(b, "prism.hadamard.version", d->version ? d->version : 1);
    fr_build_key_u32(b, "prism.hadamard.block_size", d->block ? d->block : 4);
    fr_build_key_string(b, "prism.hadamard.transform",
                        d->transform ? d->transform : "normalized-sylvester-walsh-hadamard");
    fr_build_key_string(b, "prism.hadamard.axis", d->axis ? d->axis : "input-last-dimension");
    fr_build_key_string(b, "prism.hadamard.sign_mode", d->mode ? d->mode : "explicit");
    fr_build_key_bool(b, "prism.hadamard.gdn_v_grouped", 1);
    if (!identity) {
        put_integers(b, "prism.hadamard.sign_widths", 2, widths, 0);
        put_integers(b, "prism.hadamard.sign_values", d->values ? d->values : 20, NULL, d->value ? d->value : 1);
    }
    put_names(b, "prism.hadamard.weight_names", names, count);
    put_names(b, "prism.hadamard.inverse_weight_names", d->table ? &d->table : tables, 1);
    fr_build_tensor(b, "token_embd.weight", 2, (uint64_t[]){8, 2}, 0, 0);
    fr_build_tensor(b, "output.weight", 2, (uint64_t[]){8, 2}, 0, 64);
    fr_build_tensor(b, "blk.0.ffn_up.weight", 2, (uint64_t[]){8, 2}, 0, 128);
    fr_build_tensor(b, "blk.0.ssm_out.weight", 2, (uint64_t[]){12, 2}, 0, 192);
    fr_build_align(b, 32);
    fr_build_zeros(b, 288);
}

START_TEST(rotations_of_a_file) {
    fr_builder b;
    fr_checkpoint files;
    build(&b, &(declared){.tied = -1});
    ck_assert_msg(fr_checkpoint_open_bytes(&files, b.bytes, b.size, "memory") == FR_OK, "%s", fr_last_error());
    const fr_rotation *head = fr_rotation_of(files.rotations, "output.weight", 8);
    const fr_rotation *out = fr_rotation_of(files.rotations, "blk.0.ssm_out.weight", 12);
    const fr_rotation *wide = fr_rotation_of_width(files.rotations, 12);
    ck_assert_ptr_nonnull(head);
    ck_assert_ptr_eq(fr_rotation_of(files.rotations, "token_embd.weight", 8), head);
    ck_assert_ptr_eq(fr_rotation_of_width(files.rotations, 8), head);
    ck_assert_ptr_nonnull(out);
    ck_assert_ptr_nonnull(wide);
    ck_assert_ptr_ne(out, wide);
    ck_assert_uint_eq(out->groups, 2);
    ck_assert_uint_eq(out->heads, 6);
    ck_assert_uint_eq(wide->groups, 0);
    ck_assert_ptr_eq(out->signs, head->signs + 8);
    ck_assert_float_eq(out->signs[10], -1);
    ck_assert_float_eq(out->signs[11], 1);
    ck_assert_ptr_null(fr_rotation_of(files.rotations, "blk.1.ffn_up.weight", 8));
    ck_assert_ptr_null(fr_rotation_of_width(files.rotations, 16));
    fr_checkpoint_close(&files);
    fr_build_free(&b);
}
END_TEST

START_TEST(no_signs) {
    fr_builder b;
    fr_checkpoint files;
    build(&b, &(declared){.mode = "identity", .tied = -1});
    ck_assert_msg(fr_checkpoint_open_bytes(&files, b.bytes, b.size, "memory") == FR_OK, "%s", fr_last_error());
    ck_assert_ptr_null(fr_rotation_of(files.rotations, "output.weight", 8)->signs);
    fr_checkpoint_close(&files);
    fr_build_free(&b);
}
END_TEST

static const struct {
    declared file;
    fr_status status;
    const char *words;
} wrong[] = {
    {{.version = 3, .tied = -1}, FR_UNBUILT, "version is 3: only versions 1 and 2 are built"},
    {{.version = 2, .tied = 1}, FR_INPUT, "version is 2, and the file's head is not its embedding table"},
    {{.transform = "dct", .tied = -1}, FR_UNBUILT, "transform is dct: only normalized-sylvester-walsh-hadamard is"},
    {{.axis = "output", .tied = -1}, FR_UNBUILT, "axis is output: only input-last-dimension is built"},
    {{.mode = "random", .tied = -1}, FR_UNBUILT, "sign_mode is random: only explicit is built"},
    {{.architecture = "gemma3", .no_groups = true, .tied = -1}, FR_UNBUILT, "of architecture \"gemma3\" are not built"},
    {{.block = 3, .tied = -1}, FR_INPUT, "block_size is no power of two"},
    {{.block = 8, .tied = -1}, FR_INPUT, "sign_widths has a width that is no multiple of the block"},
    {{.mode = "identity", .block = 8, .tied = -1}, FR_INPUT, "tensor blk.0.ssm_out.weight has 12 columns, no multiple"},
    {{.widths = {8, 8}, .values = 16, .tied = -1}, FR_INPUT, "sign_widths has a width twice"},
    {{.widths = {8, 16}, .values = 24, .tied = -1}, FR_INPUT, "sign_widths has no such width"},
    {{.values = 19, .tied = -1}, FR_INPUT, "sign_values is shorter than the widths"},
    {{.values = 21, .tied = -1}, FR_INPUT, "sign_values is longer than the widths"},
    {{.value = 2, .tied = -1}, FR_INPUT, "has a value that is neither 1 nor -1"},
    {{.names = {"blk.0.ssm_alpha.weight"}, .tied = -1}, FR_UNBUILT, "tensor blk.0.ssm_alpha.weight is rotated"},
    {{.names = {"blk.1.ffn_up.weight"}, .tied = -1}, FR_INPUT, "blk.1.ffn_up.weight, which the file doesn't have"},
    {{.names = {"output.weight", "output.weight"}, .tied = -1}, FR_INPUT, "name tensor output.weight twice"},
    {{.table = "output.weight", .tied = -1}, FR_UNBUILT, "(key prism.hadamard.inverse_weight_names): not built"},
};

START_TEST(wrong_declarations) {
    fr_builder b;
    fr_checkpoint files;
    build(&b, &wrong[_i].file);
    ck_assert_int_eq(fr_checkpoint_open_bytes(&files, b.bytes, b.size, "memory"), wrong[_i].status);
    ck_assert_msg(strstr(fr_last_error(), wrong[_i].words) != NULL, "%s", fr_last_error());
    fr_build_free(&b);
}
END_TEST

/* Each case changes one member of hadamard.json in a copy of MLX's folder. If `json` is NULL, the member is removed. */
static const struct {
    const char *key, *json;
    fr_status status;
    const char *words;
} wrong_members[] = {
    {"version", "2", FR_INPUT, "prism.hadamard.version\" is 2, not in 1 to 1"},
    {"block_size", "96", FR_INPUT, "block_size is no power of two"},
    {"block_size", "256", FR_INPUT, "sign_widths has a width that is no multiple of the block"},
    {"transform", "\"dct\"", FR_UNBUILT, "transform is dct: only normalized-sylvester-walsh-hadamard is built"},
    {"axis", NULL, FR_UNBUILT, "axis is no text: only input-last-dimension is built"},
    {"sign_mode", "\"identity\"", FR_UNBUILT, "sign_mode is identity: only explicit is built"},
    {"gdn_v_grouped", "false", FR_UNBUILT, "gdn_v_grouped is false: only true is built"},
    {"sign_values", "[1, 0.5]", FR_INPUT, "has a value that is neither 1 nor -1"},
    {"sign_values", "[1, -1]", FR_INPUT, "sign_values is shorter than the widths"},
    {"sign_widths", "[128]", FR_INPUT, "sign_values is longer than the widths"},
    {"sign_widths", NULL, FR_INPUT, "sign_widths has 0 or too many values"},
    {"weight_names", "[]", FR_INPUT, "weight_names names no tensor"},
    {"weight_names", "[5]", FR_UNBUILT, "rotated tensor without name: not built"},
    {"weight_names", "[\"a.in_proj_a.weight\"]", FR_UNBUILT, "rotated tensor a.in_proj_a.weight: not built"},
    {"weight_names", "[\"a.q_proj.weight\"]", FR_INPUT,
     "it names the tensor a.q_proj.weight, which the folder doesn't"},
    {"inverse_weight_names", "[\"lm_head.weight\"]", FR_UNBUILT, "rotated tensor lm_head.weight: not built"},
};

START_TEST(wrong_published_declarations) {
    static const char folder[] = "tests/data/rotated-mlx", file[] = "tests/data/rotated-mlx/hadamard.json";
    fr_checkpoint files;
    fr_rotation_set *set;
    json_t *keys;
    char key[64];
    ck_assert_msg(fr_checkpoint_open(&files, folder, true) == FR_OK, "%s", fr_last_error());
    ck_assert_ptr_nonnull(fr_rotation_of(files.rotations, "language_model.lm_head.weight", 128));
    ck_assert_int_eq(fr_json_read(file, 1 << 20, &keys), FR_OK);
    snprintf(key, sizeof key, "prism.hadamard.%s", wrong_members[_i].key);
    if (wrong_members[_i].json)
        json_object_set_new(keys, key, json_loads(wrong_members[_i].json, JSON_DECODE_ANY, NULL));
    else
        json_object_del(keys, key);
    ck_assert_int_eq(fr_rotation_set_read_published(keys, file, &files.tensors, &set), wrong_members[_i].status);
    ck_assert_msg(strstr(fr_last_error(), wrong_members[_i].words) != NULL, "%s", fr_last_error());
    json_decref(keys);
    fr_checkpoint_close(&files);
}
END_TEST

FR_SUITE("rotation") {
    TCase *tests = tcase_create("rotation");
    tcase_add_test(tests, rotations_of_a_file);
    tcase_add_test(tests, no_signs);
    tcase_add_loop_test(tests, wrong_declarations, 0, sizeof wrong / sizeof *wrong);
    tcase_add_loop_test(tests, wrong_published_declarations, 0, sizeof wrong_members / sizeof *wrong_members);
    suite_add_tcase(suite, tests);
}
