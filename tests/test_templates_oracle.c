/* Chat templates in the ways of published ones, against what Python's Jinja2 makes of them.
 *
 * tests/data/templates has 41 templates, 30 conversations and, for each of the 1230 pairs, the length and hash of what
 * Jinja2 renders in transformers' configuration, or null where it raises; tools/references/templates.py made them. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/text/template.h"
#include "tests/token_files.h"

#define FOLDER "tests/data/templates/"
#define CLOCK  1709647629 /* 2024-03-05 14:07:09 in UTC */
#define TOLD   12         /* pairs at fault that are named */

static uint64_t fnv1a(const char *bytes, size_t length) {
    uint64_t state = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++) state = (state ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return state;
}

static fr_template *open_template(const char *name) {
    static char source[1 << 16];
    char path[256];
    snprintf(path, sizeof path, FOLDER "%s.jinja", name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    size_t length = fread(source, 1, sizeof source, file);
    fclose(file);
    ck_assert_uint_lt(length, sizeof source);
    fr_template *template;
    fr_status status = fr_template_compile(source, length, name, &template);
    ck_assert_msg(status == FR_OK, "%s", fr_last_error());
    return template;
}

typedef struct oracle {
    json_t *conversations, *rendered;
    size_t pairs, faults;
} oracle;

static json_t *load(const char *path) {
    json_error_t error;
    json_t *root = json_load_file(path, JSON_ALLOW_NUL, &error);
    ck_assert_msg(root != NULL, "%s:%d: %s", path, error.line, error.text);
    return root;
}

static void open_oracle(oracle *o) {
    setenv("TZ", "UTC0", 1);
    tzset();
    *o = (oracle){.conversations = load(FOLDER "conversations.json"), .rendered = load(FOLDER "rendered.json")};
}

static void close_oracle(oracle *o) {
    json_decref(o->conversations);
    json_decref(o->rendered);
}

/* "LENGTH HASH" as the tool writes it, "error" for what could not be rendered. */
static void check_pair(oracle *o, const fr_template *template, const char *name, const json_t *own, size_t index,
                       const json_t *expected) {
    const json_t *conversation = json_array_get(o->conversations, index);
    fr_marked_text text;
    char found[64] = "error";
    fr_status status = fr_template_render(template, own, json_object_get(conversation, "given"), CLOCK, &text);
    if (status == FR_OK)
        snprintf(found, sizeof found, "%zu %016" PRIx64, text.length, fnv1a(text.text, text.length));
    else
        ck_assert_int_eq(status, FR_INPUT);
    const char *wanted = json_is_null(expected) ? "error" : json_string_value(expected);
    o->pairs++;
    if (strcmp(found, wanted) != 0) {
        const char *title = json_string_value(json_object_get(conversation, "title"));
        if (o->faults++ < TOLD)
            fprintf(stderr, "%s, %zu \"%s\": %s, not %s: %s\n", name, index, title, found, wanted,
                    status == FR_OK ? text.text : fr_last_error());
    }
    fr_marked_text_free(&text);
}

START_TEST(hashes) {
    oracle o;
    open_oracle(&o);
    const char *name;
    json_t *item;
    json_object_foreach(json_object_get(o.rendered, "templates"), name, item) {
        fr_template *template = open_template(name);
        const json_t *rendered = json_object_get(item, "rendered");
        ck_assert_uint_eq(json_array_size(rendered), json_array_size(o.conversations));
        for (size_t i = 0; i < json_array_size(rendered); i++)
            check_pair(&o, template, name, json_object_get(item, "own"), i, json_array_get(rendered, i));
        fr_template_close(template);
    }
    ck_assert_uint_ge(o.pairs, 1200);
    ck_assert_msg(o.faults == 0, "%zu of %zu pairs are rendered otherwise", o.faults, o.pairs);
    close_oracle(&o);
}
END_TEST

/* Some in full, so that a difference can be read. */
START_TEST(whole_texts) {
    oracle o;
    open_oracle(&o);
    const json_t *texts = json_object_get(o.rendered, "texts");
    ck_assert_uint_ge(json_array_size(texts), 5);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *item = json_array_get(texts, i), *expected = json_object_get(item, "text");
        const char *name = json_string_value(json_object_get(item, "template"));
        size_t index = (size_t)json_integer_value(json_object_get(item, "conversation"));
        const json_t *own = json_object_get(json_object_get(json_object_get(o.rendered, "templates"), name), "own");
        const json_t *given = json_object_get(json_array_get(o.conversations, index), "given");
        fr_template *template = open_template(name);
        fr_marked_text text;
        fr_status status = fr_template_render(template, own, given, CLOCK, &text);
        ck_assert_msg(status == FR_OK, "%s", fr_last_error());
        ck_assert_str_eq(text.text, json_string_value(expected));
        ck_assert_uint_eq(text.length, json_string_length(expected));
        fr_marked_text_free(&text);
        fr_template_close(template);
    }
    close_oracle(&o);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("templates_oracle");
    TCase *tcase = tcase_create("templates_oracle");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, whole_texts);
    tcase_add_test(tcase, hashes);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
