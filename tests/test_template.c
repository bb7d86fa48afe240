/* Templates: what Jinja renders, byte for byte; whose hand each byte is of; hostile templates and variables.
 *
 * Expected texts are Python's: those of tests/data/chat/reference.json came with the reference fixtures and are what
 * transformers makes of published templates, those of template_cases.json are tools/references/template_cases.py's. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/text/template.h"
#include "tests/token_files.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define NOW             1767323045 /* Friday, 2 January 2026, 03:04:05 */

/* ---------------------------------------------------------------------------------------------------------- oracles */

static fr_status render_source(const char *source, size_t length, const json_t *own, const json_t *given,
                               fr_marked_text *text) {
    fr_template *template;
    *text = (fr_marked_text){0};
    fr_status status = fr_template_compile(source, length, "t", &template);
    if (status == FR_OK) status = fr_template_render(template, own, given, NOW, text);
    fr_template_close(template);
    return status;
}

static char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    char *text = malloc(1 << 20);
    *length = fread(text, 1, 1 << 20, file);
    fclose(file);
    return text;
}

static void check_rendered(const char *title, fr_status status, const fr_marked_text *text, const json_t *expected) {
    if (!expected) {
        ck_assert_msg(status == FR_INPUT, "%s: rendered, and should fail: %s", title, text->text);
        ck_assert_ptr_null(text->text);
        return;
    }
    ck_assert_msg(status == FR_OK, "%s: %s", title, fr_last_error());
    bool same = text->length == json_string_length(expected) &&
                memcmp(text->text, json_string_value(expected), text->length) == 0;
    ck_assert_msg(same, "%s:\n%s\nnot\n%s", title, text->text, json_string_value(expected));
}

/* The context's tokens are the model's own, the rest is given. */
static void check_reference(const char *source, size_t length, const json_t *item) {
    static const char *const tokens[] = {"bos_token", "eos_token"};
    json_t *own = json_object(), *given = json_copy(json_object_get(item, "context"));
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        json_t *token = json_object_get(given, tokens[i]);
        if (token) json_object_set(own, tokens[i], token);
        json_object_del(given, tokens[i]);
    }
    json_object_set(given, "messages", json_object_get(item, "messages"));
    fr_marked_text text;
    fr_status status = render_source(source, length, own, given, &text);
    const char *title = json_string_value(json_object_get(item, "title"));
    check_rendered(title, status, &text, json_object_get(item, "rendered"));
    fr_marked_text_free(&text);
    json_decref(own);
    json_decref(given);
}

START_TEST(reference_cases) {
    static const struct {
        const char *cases, *key, *template;
        size_t count;
    } files[] = {
        {"tests/data/chat/reference.json", "gemma4", "gemma4", 21},
        {"tests/data/chat/gemma4_more.json", "gemma4", "gemma4", 200},
        {"tests/data/chat/reference.json", "glm4.6", "glm4.6", 21},
        {"tests/data/chat/reference.json", "glm4.7", "glm4.7", 21},
        {"tests/data/chat/reference.json", "qwen3.5", "qwen3.5", 21},
        {"tests/data/chat/reference.json", "deepseek-v3.1", "deepseek-v3.1", 21},
        {"tests/data/chat/reference.json", "llama3.1", "llama3.1", 21},
    };
    char path[100];
    size_t length;
    snprintf(path, sizeof path, "tests/data/chat/templates/%s.jinja", files[_i].template);
    char *source = read_file(path, &length);
    json_t *root = fr_load_json(files[_i].cases), *cases = json_object_get(root, files[_i].key);
    ck_assert_uint_ge(json_array_size(cases), files[_i].count);
    for (size_t i = 0; i < json_array_size(cases); i++) check_reference(source, length, json_array_get(cases, i));
    json_decref(root);
    free(source);
}
END_TEST

static Suite *template_suite(void) {
    Suite *suite = suite_create("template");
    TCase *cases = tcase_create("template");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, reference_cases, 0, 7);
    suite_add_tcase(suite, cases);
    return suite;
}

int main(void) {
    SRunner *runner = srunner_create(template_suite());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
