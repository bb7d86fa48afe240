/* Tests which type quantize gives each tensor. It must be the type that llama-quantize gives, for each of
 * llama-quantize's mixtures (sets of types), for each layer and with each option.
 *
 * tests/data/mixtures.json has what llama-quantize reports for a model of 28 layers
 * (tests/references/quantize_mixtures.py): names and row lengths of the matrices, and their types for each mixture and
 * each set of options. */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "src/convert/quantize_types.h"
#include "tests/support/suite.h"

enum { TENSORS_MAX = 400, RULES_MAX = 4 };

/* Converts the options of a test case to the library's settings. */
static fr_lab_quantization read_options(const json_t *options, const char **rules) {
    fr_lab_quantization how = {.overrides = rules};
    for (size_t i = 0; i < json_array_size(options); i++) {
        const char *name = json_string_value(json_array_get(options, i));
        if (strcmp(name, "--pure") == 0) {
            how.pure = true;
            continue;
        }
        const char *value = json_string_value(json_array_get(options, ++i));
        ck_assert_ptr_nonnull(value);
        if (strcmp(name, "--output-tensor-type") == 0)
            how.output_type = value;
        else if (strcmp(name, "--token-embedding-type") == 0)
            how.embedding_type = value;
        else
            rules[how.override_count++] = value;
    }
    ck_assert_uint_le(how.override_count, RULES_MAX);
    return how;
}

static fr_outputs list_outputs(const json_t *root, fr_tensor *tensors) {
    fr_outputs outputs = {.layers = (size_t)json_integer_value(json_object_get(root, "layers")),
                          .gqa = (size_t)json_integer_value(json_object_get(root, "gqa"))};
    json_t *cols = json_object_get(root, "cols"), *length;
    const char *name;
    size_t count = 0;
    ck_assert_uint_le(json_object_size(cols), TENSORS_MAX);
    json_object_foreach (cols, name, length) {
        tensors[count] = (fr_tensor){.name = (char *)(uintptr_t)name, .type = FR_BF16, .dims = 2};
        tensors[count].shape[0] = 1;
        tensors[count].shape[1] = (uint64_t)json_integer_value(length);
        ck_assert_int_eq(fr_outputs_add(&outputs, name, &tensors[count]), FR_OK);
        count++;
    }
    fr_outputs_sort(&outputs);
    return outputs;
}

static fr_dtype type_of(const fr_outputs *outputs, const char *name) {
    for (size_t i = 0; i < outputs->count; i++)
        if (strcmp(outputs->items[i].name, name) == 0) return outputs->items[i].type;
    return FR_DTYPE_COUNT;
}

static void check_case(const json_t *root, const json_t *expected) {
    static fr_tensor tensors[TENSORS_MAX];
    const char *rules[RULES_MAX], *name, *words = json_string_value(json_object_get(expected, "types"));
    fr_lab_quantization how = read_options(json_object_get(expected, "options"), rules);
    how.type = json_string_value(json_object_get(expected, "mixture"));
    fr_type_choice choice;
    fr_outputs outputs = list_outputs(root, tensors);
    ck_assert_int_eq(fr_type_choice_read(&choice, &how), FR_OK);
    ck_assert_msg(fr_choose_types(&choice, &outputs) == FR_OK, "%s: %s", how.type, fr_last_error());
    json_t *length;
    json_object_foreach (json_object_get(root, "cols"), name, length) {
        const char *got = fr_dtype_name(type_of(&outputs, name));
        size_t size = strcspn(words, " ");
        ck_assert_msg(strlen(got) == size && memcmp(got, words, size) == 0, "%s, %zu options: %s is %s, not %.*s",
                      how.type, json_array_size(json_object_get(expected, "options")), name, got, (int)size, words);
        words += size + (words[size] == ' ');
    }
    fr_outputs_free(&outputs);
}

START_TEST(as_llama_quantize_has_them) {
    json_t *root = json_load_file("tests/data/mixtures.json", 0, NULL), *expected;
    ck_assert_ptr_nonnull(root);
    size_t i;
    json_array_foreach (json_object_get(root, "cases"), i, expected) check_case(root, expected);
    ck_assert_uint_eq(i, 60);
    json_decref(root);
}
END_TEST

FR_SUITE("mixtures") {
    TCase *tests = tcase_create("mixtures");
    tcase_add_test(tests, as_llama_quantize_has_them);
    suite_add_tcase(suite, tests);
}
