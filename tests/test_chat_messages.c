/* Messages as clients send them, under templates that take other forms: arguments as text, parts, thoughts by their
 * other name.
 *
 * Expected texts are transformers', of the same messages in each template's form, which tests/references/
 * adapted_cases.py knows by hand; here nothing but the template tells it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/chat/chat_messages.h"
#include "tests/token_files.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static fr_template *compile(const char *source, size_t length) {
    fr_template *template;
    ck_assert_msg(fr_template_compile(source, length, "t", &template) == FR_OK, "%s", fr_last_error());
    return template;
}

static fr_template *open_named(const json_t *root, const char *name) {
    const char *inline_source = json_string_value(json_object_get(json_object_get(root, "inline"), name));
    if (inline_source) return compile(inline_source, strlen(inline_source));
    char path[96];
    size_t length;
    snprintf(path, sizeof path, "tests/data/%s.jinja", name);
    char *source = fr_load_text(path, &length);
    fr_template *template = compile(source, length);
    free(source);
    return template;
}

/* As fr_chat_render does it: the messages adapted, then rendered. */
static fr_status render(const fr_template *template, const json_t *messages, const json_t *context,
                        fr_marked_text *text) {
    json_t *sent = json_deep_copy(messages), *given = json_copy((json_t *)(uintptr_t)context);
    const fr_chat_probe probe = {.template = template, .given = given};
    json_object_set(given, "messages", sent);
    *text = (fr_marked_text){0};
    fr_status status = fr_chat_messages_adapt(sent, &probe);
    if (status == FR_OK) status = fr_template_render(template, NULL, given, 0, text);
    json_decref(given);
    json_decref(sent);
    return status;
}

static void check_conversation(const fr_template *template, const json_t *root, size_t index, const char *name,
                               const json_t *expected) {
    const json_t *conversation = json_array_get(json_object_get(root, "conversations"), index);
    const char *title = json_string_value(json_object_get(conversation, "title"));
    fr_marked_text text;
    fr_status status =
        render(template, json_object_get(conversation, "messages"), json_object_get(root, "context"), &text);
    ck_assert_msg(status == (json_is_null(expected) ? FR_INPUT : FR_OK), "%s, %s: %s", name, title,
                  status == FR_OK ? text.text : fr_last_error());
    if (status == FR_OK)
        ck_assert_msg(strcmp(text.text, json_string_value(expected)) == 0, "%s, %s:\n%s\nnot\n%s", name, title,
                      text.text, json_string_value(expected));
    fr_marked_text_free(&text);
}

START_TEST(sent_conversations) {
    json_t *root = fr_load_json("tests/data/chat/adapted.json"), *texts, *expected;
    const char *name;
    size_t index, templates = 0;
    setenv("TZ", "UTC", 1);
    json_object_foreach(json_object_get(root, "rendered"), name, texts) {
        fr_template *template = open_named(root, name);
        json_array_foreach(texts, index, expected) check_conversation(template, root, index, name, expected);
        ck_assert_uint_eq(index, 31);
        templates++;
        fr_template_close(template);
    }
    ck_assert_uint_eq(templates, 17);
    json_decref(root);
}
END_TEST

static void check_text(const char *source, const char *messages, const char *expected) {
    fr_template *template = compile(source, strlen(source));
    json_t *sent = json_loads(messages, 0, NULL), *context = json_object();
    fr_marked_text text;
    ck_assert_msg(render(template, sent, context, &text) == FR_OK, "%s: %s", source, fr_last_error());
    ck_assert_str_eq(text.text, expected);
    fr_marked_text_free(&text);
    json_decref(context);
    json_decref(sent);
    fr_template_close(template);
}

#define PARTS                                                                                                    \
    "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"text\", \"text\": " \
    "\"b\"}]}]"

/* Whether parts are joined is found out, whichever way a template goes wrong over them. */
START_TEST(who_takes_parts) {
    static const char *const cases[][2] = {
        {"{% for m in messages %}{{ m.content }}{% endfor %}", "a\nb"},
        {"{% for m in messages %}{{ m.content | tojson }}{% endfor %}", "\"a\\nb\""},
        {"{% for m in messages %}{{ m.content if m.content is string }}{% endfor %}", "a\nb"},
        {"{% for m in messages %}{{ m.content.strip() }}{% endfor %}", "a\nb"},
        {"{% for m in messages %}{{ m.content if m.content is string else m.content[0].text }}{% endfor %}", "a\nb"},
        {"{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{{ raise_exception('parts') }}"
         "{% endif %}{% endfor %}",
         "a\nb"},
        {"{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
         "[{{ p.text }}]{% endfor %}{% endif %}{% endfor %}",
         "[a][b]"},
        {"{% for m in messages %}{{ m.content | map(attribute='text') | join('+') }}{% endfor %}", "a+b"},
        {"nothing of it", "nothing of it"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) check_text(cases[i][0], PARTS, cases[i][1]);
}
END_TEST

#define CALL(arguments)                                                                                        \
    "[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": " \
    "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": " arguments "}}]}]"
#define CALLS "{% for m in messages %}{% for c in m.tool_calls or [] %}{% set a = c.function.arguments %}"
#define ENDED "{% endfor %}{% endfor %}"

/* Whether arguments are objects, or text, or whatever was sent. */
START_TEST(which_arguments) {
    static const struct {
        const char *source, *text, *object; /* what is made of the two forms */
    } cases[] = {
        {CALLS "{{ a | tojson }}" ENDED, "{\"k\": [1]}", "{\"k\": [1]}"},
        {CALLS "{{ '' + a }}" ENDED, "{\"k\":[1]}", "{\"k\": [1]}"},
        {CALLS "{{ a }}" ENDED, "{\"k\":[1]}", "{\"k\": [1]}"},
        {CALLS "{{ a if a is string else a | tojson }}" ENDED, "{\"k\":[1]}", "{\"k\": [1]}"},
        {CALLS "{{ a if a is string else a | tojson(separators=(',', ':')) }}" ENDED, "{\"k\":[1]}", "{\"k\":[1]}"},
        {CALLS "{{ a if a is string else a | tojson(indent=1) }}" ENDED, "{\"k\":[1]}", "{\n \"k\": [\n  1\n ]\n}"},
        {CALLS "{{ a if a is string }}" ENDED, "{\"k\":[1]}", "{\"k\": [1]}"},
        {CALLS "{% for k, v in a | items %}<{{ k }}>{{ v }}{% endfor %}" ENDED, "<k>[1]", "<k>[1]"},
        {CALLS "{% for k in a %}<{{ k }}>{{ a[k] }}{% endfor %}" ENDED, "<k>[1]", "<k>[1]"},
        {CALLS "{% if a is mapping %}{% for k in a %}<{{ k }}>{{ a[k] }}{% endfor %}{% endif %}" ENDED, "<k>[1]",
         "<k>[1]"},
        {CALLS "{% if a is string %}{{ a }}{% else %}{% for k in a %}<{{ k }}>{{ a[k] }}{% endfor %}{% endif %}" ENDED,
         "<k>[1]", "<k>[1]"},
        {CALLS "{{ c.function.name }}" ENDED, "f", "f"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        check_text(cases[i].source, CALL("\"{\\\"k\\\":[1]}\""), cases[i].text);
        check_text(cases[i].source, CALL("{\"k\": [1]}"), cases[i].object);
    }
}
END_TEST

/* A key that a model repeated counts as it came last, as Python reads it. */
START_TEST(repeated_keys) {
    static const char source[] = CALLS "{% for k, v in a | items %}<{{ k }}>{{ v }}{% endfor %}" ENDED;
    check_text(source, CALL("\"{\\\"k\\\": 1, \\\"l\\\": {\\\"m\\\": 1, \\\"m\\\": 2}, \\\"k\\\": 3}\""),
               "<k>3<l>{'m': 2}");
}
END_TEST

/* Some call only where nothing else is said, some only with an id of nine letters, some know no results. */
START_TEST(templates_that_ask_for_more) {
    static const char *const cases[] = {
        "{% for m in messages %}{% if m.content is none %}{{ m.tool_calls[0].function.arguments | tojson }}{% endif %}"
        "{% endfor %}",
        "{% for m in messages %}{% if m.tool_calls %}{% if m.tool_calls[0].id | length != 9 %}{{ raise_exception('id') "
        "}}"
        "{% endif %}{{ m.tool_calls[0].function.arguments | tojson }}{% endif %}{% endfor %}",
        "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('tool') }}{% endif %}"
        "{{ m.tool_calls[0].function.arguments | tojson if m.tool_calls }}{% endfor %}",
    };
    static const char sent[] = "[{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"a1b2c3d4e\", "
                               "\"function\": {\"name\": \"f\", \"arguments\": \"{\\\"k\\\":1}\"}}]}]";
    for (size_t i = 0; i < COUNT_OF(cases); i++) check_text(cases[i], sent, "{\"k\": 1}");
}
END_TEST

/* Clients send calls with null beside them, or nothing; a template that adds texts up fails over that, and one that
 * tells it apart, or prints it, has what was sent. */
START_TEST(calls_without_a_text) {
    static const char adds[] = "{% for m in messages %}{{ '<' + m.content + '>' }}{% endfor %}";
    static const char prints[] = "{% for m in messages %}<{{ m.content }}>{% endfor %}";
#define A_CALL "\"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}]"
    static const char null[] = "[{\"role\": \"assistant\", \"content\": null, " A_CALL "}]";
    static const char none[] = "[{\"role\": \"assistant\", " A_CALL "}]";
    check_text(adds, null, "<>");
    check_text(adds, none, "<>");
    check_text(prints, null, "<None>");
    check_text(prints, none, "<>");
}
END_TEST

#define SYSTEM_FIRST "{% if messages[0].role != 'system' %}{{ raise_exception('system') }}{% endif %}"
#define SYSTEM       "{\"role\": \"system\", \"content\": \"s\"}, "

/* Templates that refuse a conversation without a system message are asked with one. */
START_TEST(templates_that_ask_for_a_system_message) {
    check_text(SYSTEM_FIRST "{% for m in messages %}<{{ m.content }}>{% endfor %}",
               "[" SYSTEM "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}, {\"type\": "
               "\"text\", \"text\": \"b\"}]}]",
               "<s><a\nb>");
    check_text(SYSTEM_FIRST CALLS "{{ a | tojson }}" ENDED,
               "[" SYSTEM "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"function\": {\"name\": "
               "\"f\", \"arguments\": \"{\\\"k\\\":1}\"}}]}]",
               "{\"k\": 1}");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("chat_messages");
    TCase *tcase = tcase_create("chat_messages");
    tcase_add_test(tcase, sent_conversations);
    tcase_add_test(tcase, who_takes_parts);
    tcase_add_test(tcase, which_arguments);
    tcase_add_test(tcase, repeated_keys);
    tcase_add_test(tcase, templates_that_ask_for_more);
    tcase_add_test(tcase, calls_without_a_text);
    tcase_add_test(tcase, templates_that_ask_for_a_system_message);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
