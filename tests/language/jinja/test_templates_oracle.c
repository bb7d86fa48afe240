/* Compares chat templates in the style of published ones with Python's Jinja2.
 *
 * tests/data/templates has 41 templates and 30 conversations. For each of the 1230 pairs it has the length and the hash
 * of the text that Jinja2 renders in transformers' configuration. If Jinja2 raises an exception, it has null instead.
 * For most pairs it also records which control tokens of the text the template itself wrote.
 * tests/references/templates.py makes these files. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/language/jinja/template.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define FOLDER "tests/data/templates/"
#define CLOCK  1709647629 /* 2024-03-05 14:07:09 in UTC */
#define TOLD   12         /* greatest number of errors that are printed */

static uint64_t fnv1a(uint64_t state, const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) state = (state ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return state;
}

static fr_template *open_template(const char *name) {
    char path[256];
    size_t length;
    snprintf(path, sizeof path, FOLDER "%s.jinja", name);
    char *source = fr_load_text(path, &length);
    fr_template *template;
    fr_status status = fr_template_compile(source, length, name, &template);
    ck_assert_msg(status == FR_OK, "%s", fr_last_error());
    free(source);
    return template;
}

typedef struct oracle {
    json_t *conversations, *rendered;
    const char *tokens[128];
    size_t token_count, pairs, told, faults;
} oracle;

static void open_oracle(oracle *o) {
    setenv("TZ", "UTC0", 1);
    tzset();
    *o = (oracle){.conversations = fr_load_json(FOLDER "conversations.json"),
                  .rendered = fr_load_json(FOLDER "rendered.json")};
    const json_t *tokens = json_object_get(o->rendered, "tokens");
    o->token_count = json_array_size(tokens);
    ck_assert_uint_le(o->token_count, sizeof o->tokens / sizeof *o->tokens);
    for (size_t i = 0; i < o->token_count; i++) o->tokens[i] = json_string_value(json_array_get(tokens, i));
}

static void close_oracle(oracle *o) {
    json_decref(o->conversations);
    json_decref(o->rendered);
}

static void fault(oracle *o, const char *name, const char *title, const char *found, const char *wanted,
                  const char *text) {
    if (o->faults++ < TOLD) fprintf(stderr, "%s, \"%s\": %s, not %s: %s\n", name, title, found, wanted, text);
}

/* Returns true if one trusted span contains all bytes from `begin` to end - 1. *next is the first span that can contain
 * them. It only increases, so calls must come in the order of the text. */
static bool is_trusted(const fr_marked_text *text, size_t begin, size_t end, size_t *next) {
    while (*next < text->trusted_count && text->trusted[*next].end <= begin) ++*next;
    return *next < text->trusted_count && text->trusted[*next].begin <= begin && end <= text->trusted[*next].end;
}

/* Writes a summary of the control tokens that the template itself wrote, in the form "COUNT HASH". The hash is made
 * from their positions. */
static void summarize_control(const oracle *o, const fr_marked_text *text, char *summary, size_t size) {
    uint64_t state = 0xcbf29ce484222325u;
    size_t count = 0, span = 0;
    for (size_t at = 0; at < text->length; at++) {
        for (size_t i = 0; i < o->token_count; i++) {
            size_t length = strlen(o->tokens[i]);
            if (length > text->length - at || memcmp(text->text + at, o->tokens[i], length) != 0) continue;
            if (!is_trusted(text, at, at + length, &span)) continue;
            char place[48];
            count++;
            state = fnv1a(state, place, (size_t)snprintf(place, sizeof place, "%zu:%zu,", at, i));
        }
    }
    snprintf(summary, size, "%zu %016" PRIx64, count, state);
}

/* Renders a pair. The result is summarized as "LENGTH HASH" of the text, or as "error" if rendering fails. The summary
 * must be the one that the script stored. */
static void check_pair(oracle *o, const fr_template *template, const char *name, const json_t *item, size_t index) {
    const json_t *conversation = json_array_get(o->conversations, index);
    const json_t *expected = json_array_get(json_object_get(item, "rendered"), index);
    const json_t *control = json_array_get(json_object_get(item, "control"), index);
    const char *title = json_string_value(json_object_get(conversation, "title"));
    const char *wanted = json_is_null(expected) ? "error" : json_string_value(expected);
    fr_marked_text text;
    char found[64] = "error";
    fr_status status = fr_template_render(template, json_object_get(item, "own"),
                                          json_object_get(conversation, "given"), CLOCK, &text);
    uint64_t hash = fnv1a(0xcbf29ce484222325u, text.text, text.length);
    if (status == FR_OK)
        snprintf(found, sizeof found, "%zu %016" PRIx64, text.length, hash);
    else
        ck_assert_int_eq(status, FR_INPUT);
    o->pairs++;
    if (strcmp(found, wanted) != 0) fault(o, name, title, found, wanted, text.text ? text.text : fr_last_error());
    if (status == FR_OK && json_is_string(control)) {
        o->told++;
        summarize_control(o, &text, found, sizeof found);
        if (strcmp(found, json_string_value(control)) != 0)
            fault(o, name, title, found, json_string_value(control), "tokens of the template's own");
    }
    fr_marked_text_free(&text);
}

START_TEST(hashes) {
    oracle o;
    open_oracle(&o);
    const char *name;
    json_t *item;
    json_object_foreach (json_object_get(o.rendered, "templates"), name, item) {
        fr_template *template = open_template(name);
        for (size_t i = 0; i < json_array_size(o.conversations); i++) check_pair(&o, template, name, item, i);
        fr_template_close(template);
    }
    ck_assert_uint_ge(o.pairs, 1200);
    ck_assert_uint_ge(o.told, 900);
    ck_assert_msg(o.faults == 0, "%zu faults in %zu pairs", o.faults, o.pairs);
    close_oracle(&o);
}
END_TEST

/* For some pairs the whole text is stored, so that a difference can be seen in it. */
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

FR_SUITE("templates_oracle") {
    TCase *tcase = tcase_create("templates_oracle");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, whole_texts);
    tcase_add_test(tcase, hashes);
    suite_add_tcase(suite, tcase);
}
