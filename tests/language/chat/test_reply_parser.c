/* Tests the reading of replies that are given as ids, with tokenizers and templates of published models. A mark must be
 * its token. Other tokens with the same text are not a mark. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_buffer.h"
#include "src/language/tokenizer/tokenizer.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* calls.json has templates. Returns the folder in tests/data with the tokenizer for one of them, or NULL if there is
 * none. */
static const char *folder_of(const char *template) {
    static const struct {
        const char *template, *folder;
    } known[] = {{"gemma4", "gemma"},
                 {"glm4.6", "glm4"},
                 {"glm4.7", "glm4"},
                 {"qwen3.5", "qwen35"},
                 {"deepseek-v3.1", "deepseek3"},
                 {"llama3.1", "llama3"}};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        char path[64];
        snprintf(path, sizeof path, "chat/templates/%s.jinja", known[i].template);
        if (strcmp(path, template) == 0) return known[i].folder;
    }
    return NULL;
}

static fr_tokenizer *open_tokenizer(const char *folder, const char *template) {
    char path[128], chat[128];
    fr_options *options = fr_options_new();
    fr_tokenizer *tokenizer;
    snprintf(path, sizeof path, TOKENIZERS "%s", folder);
    snprintf(chat, sizeof chat, "tests/data/%s", template);
    require(fr_options_set_text(options, FR_OPT_CHAT_TEMPLATE, chat));
    require(fr_tokenizer_open(path, options, &tokenizer));
    fr_options_free(options);
    return tokenizer;
}

static json_t *message_of(const fr_reply_parser *parser) {
    char *json;
    size_t length;
    require(fr_reply_parser_message(parser, &json, &length));
    json_t *message = json_loadb(json, length, JSON_ALLOW_NUL, NULL);
    fr_free(json);
    return message;
}

static json_t *read_ids(fr_reply_parser *parser, const int32_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++) require(fr_reply_parser_feed(parser, ids[i]));
    require(fr_reply_parser_finish(parser));
    return message_of(parser);
}

static void check_arguments(const json_t *calls, const json_t *expected, const char *title) {
    ck_assert_msg(json_array_size(calls) == json_array_size(expected), "%s: %zu calls", title, json_array_size(calls));
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *function = json_object_get(json_array_get(calls, i), "function");
        const json_t *wanted = json_array_get(expected, i);
        const char *text = json_string_value(json_object_get(function, "arguments"));
        json_t *arguments = json_loads(text, 0, NULL);
        ck_assert(json_equal(json_object_get(function, "name"), json_object_get(wanted, "name")));
        ck_assert_msg(json_equal(arguments, json_object_get(wanted, "arguments")), "%s: %s", title, text);
        json_decref(arguments);
    }
}

static const char *text_at(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Returns the end of a prompt as a marked text. All of it is trusted, as if the template had written it. */
static fr_marked_text trusted(const char *text, fr_span *all) {
    *all = (fr_span){0, strlen(text)};
    return (fr_marked_text){(char *)(uintptr_t)text, strlen(text), all, 1};
}

static void check_reply(const fr_tokenizer *tokenizer, const json_t *root, const json_t *item) {
    json_t *options = json_object();
    json_object_set(options, "tools", json_object_get(root, "tools"));
    char *settings = json_dumps(options, 0);
    const json_t *expected = json_object_get(item, "message");
    const char *reply = text_at(item, "reply"), *title = text_at(item, "title");
    fr_reply_parser *parser;
    fr_span all;
    fr_marked_text prompt = trusted(text_at(item, "prompt"), &all);
    int32_t *ids;
    size_t count;
    require(fr_tokenize(tokenizer, reply, strlen(reply), false, true, &ids, &count));
    require(fr_reply_parser_new(tokenizer, NULL, NULL, &parser));
    require(fr_reply_parser_begin(parser, &prompt, settings, true, 1));
    json_t *message = read_ids(parser, ids, count);
    ck_assert_msg(strcmp(text_at(message, "content"), text_at(expected, "content")) == 0, "%s: %s", title,
                  text_at(message, "content"));
    ck_assert_str_eq(text_at(message, "reasoning_content"), text_at(expected, "reasoning_content"));
    check_arguments(json_object_get(message, "tool_calls"), json_object_get(expected, "tool_calls"), title);
    fr_reply_parser_free(parser);
    json_decref(message);
    json_decref(options);
    free(settings);
    fr_free(ids);
}

START_TEST(rendered_calls) {
    json_t *root = fr_load_json("tests/data/replies/calls.json"), *cases = json_object_get(root, "cases");
    fr_tokenizer *tokenizer = NULL;
    const char *open = "";
    size_t checked = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *item = json_array_get(cases, i);
        const char *template = text_at(item, "template"), *folder = folder_of(template);
        if (!folder) continue;
        if (strcmp(open, template) != 0) {
            fr_tokenizer_close(tokenizer);
            tokenizer = open_tokenizer(folder, template);
            open = template;
        }
        check_reply(tokenizer, root, item);
        checked++;
    }
    ck_assert_uint_ge(checked, 60);
    fr_tokenizer_close(tokenizer);
    json_decref(root);
}
END_TEST

/* If a mark's text consists of other tokens, it is ordinary text. A mark at the end of a prompt is recognized only if
 * all of it is trusted. */
START_TEST(spelled_marks) {
    fr_tokenizer *tokenizer = open_tokenizer("qwen35", "chat/templates/qwen3.5.jinja");
    static const char reply[] = "<think>a</think><tool_call>\n<function=f>\n</function>\n</tool_call>";
    for (int trust = 0; trust < 2; trust++) {
        fr_reply_parser *parser;
        fr_span all;
        fr_marked_text prompt = trusted("<|im_start|>assistant\n<think>\n", &all);
        int32_t *ids;
        size_t count;
        if (!trust) all.end -= 1; /* the last line break is not trusted */
        require(fr_tokenize(tokenizer, reply, strlen(reply), false, false, &ids, &count));
        require(fr_reply_parser_new(tokenizer, NULL, NULL, &parser));
        require(fr_reply_parser_begin(parser, &prompt, NULL, true, 1));
        json_t *message = read_ids(parser, ids, count);
        ck_assert_str_eq(text_at(message, trust ? "reasoning_content" : "content"), reply);
        ck_assert_ptr_null(json_object_get(message, "tool_calls"));
        fr_reply_parser_free(parser);
        json_decref(message);
        fr_free(ids);
    }
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* A parser can be used for several replies, and one reply must not affect the next. */
START_TEST(one_after_another) {
    fr_tokenizer *tokenizer = open_tokenizer("gemma", "chat/templates/gemma4.jinja");
    static const char *const replies[] = {"<|channel>thought\nhm", "hi<|tool_call>call:f{", "hello"};
    static const char *const contents[] = {"", "hi<|tool_call>call:f{", "hello"};
    fr_reply_parser *parser;
    require(fr_reply_parser_new(tokenizer, NULL, NULL, &parser));
    ck_assert_int_eq(fr_reply_parser_feed(parser, 5), FR_USAGE);
    ck_assert_int_eq(fr_reply_parser_finish(parser), FR_USAGE);
    for (size_t i = 0; i < COUNT_OF(replies); i++) {
        int32_t *ids;
        size_t count;
        require(fr_tokenize(tokenizer, replies[i], strlen(replies[i]), false, true, &ids, &count));
        require(fr_reply_parser_begin(parser, NULL, "{}", true, 1));
        json_t *message = read_ids(parser, ids, count);
        ck_assert_str_eq(text_at(message, "content"), contents[i]);
        ck_assert(i == 0 || !json_object_get(message, "reasoning_content"));
        json_decref(message);
        fr_free(ids);
    }
    ck_assert_int_eq(fr_reply_parser_begin(parser, NULL, "[]", true, 1), FR_INPUT);
    ck_assert_int_eq(fr_reply_parser_begin(parser, NULL, "{\"tools\": 3}", true, 1), FR_INPUT);
    ck_assert_int_eq(fr_reply_parser_begin(parser, NULL, "{", true, 1), FR_INPUT);
    fr_reply_parser_free(parser);
    ck_assert_int_eq(fr_reply_parser_new(NULL, NULL, NULL, &parser), FR_INPUT);
    ck_assert_ptr_null(parser);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* If a prompt ends inside a message of the assistant, the last mark in it decides which part the reply continues. */
START_TEST(replies_that_go_on) {
    static const struct {
        const char *message, *reply, *reasoning, *content;
    } cases[] = {
        {"\"content\": \"\", \"reasoning_content\": \"It is\"", " short.</think>\n\nYes", " short.", "Yes"},
        {"\"content\": \"The\", \"reasoning_content\": \"Hm.\"", " end", "", " end"},
        {"\"content\": \"<think>It is\"", " short.</think>\n\nYes", " short.", "Yes"},
        {"\"content\": \"a <think> is\"", " one", "", " one"},
    };
    static const char options[] = "{\"continue_final_message\": true}";
    fr_tokenizer *tokenizer = open_tokenizer("qwen35", "chat/templates/qwen3.5.jinja");
    fr_reply_parser *parser;
    require(fr_reply_parser_new(tokenizer, NULL, NULL, &parser));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char messages[256];
        fr_marked_text prompt;
        int32_t *ids;
        size_t count;
        snprintf(messages, sizeof messages,
                 "[{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"assistant\", %s}]", cases[i].message);
        require(fr_chat_render(tokenizer, messages, options, &prompt));
        require(fr_tokenize(tokenizer, cases[i].reply, strlen(cases[i].reply), false, true, &ids, &count));
        require(fr_reply_parser_begin(parser, &prompt, options, true, 1));
        json_t *message = read_ids(parser, ids, count);
        ck_assert_str_eq(text_at(message, "content"), cases[i].content);
        ck_assert_str_eq(text_at(message, "reasoning_content"), cases[i].reasoning);
        json_decref(message);
        fr_free(ids);
        fr_marked_text_free(&prompt);
    }
    fr_reply_parser_free(parser);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* Llama 2's decoder removes the space before a text's first token. If the reply continues a message, the space must be
 * kept. */
START_TEST(blanks_of_what_goes_on) {
    json_t *root = fr_load_json(TOKENIZERS "styles/llama2.json");
    fr_tokenizer *tokenizer = fr_open_value(json_object_get(root, "tokenizer"));
    fr_reply_parser *parser;
    int32_t *ids;
    size_t count;
    require(fr_reply_parser_new(tokenizer, NULL, NULL, &parser));
    require(fr_tokenize(tokenizer, "one", 3, false, true, &ids, &count));
    for (int goes_on = 0; goes_on < 2; goes_on++) {
        require(fr_reply_parser_begin(parser, NULL, goes_on ? "{\"continue_final_message\": true}" : "{}", true, 1));
        json_t *message = read_ids(parser, ids, count);
        ck_assert_str_eq(text_at(message, "content"), goes_on ? " one" : "one");
        json_decref(message);
    }
    fr_free(ids);
    fr_reply_parser_free(parser);
    fr_tokenizer_close(tokenizer);
    json_decref(root);
}
END_TEST

FR_SUITE("reply_parser") {
    TCase *tcase = tcase_create("reply_parser");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, rendered_calls);
    tcase_add_test(tcase, spelled_marks);
    tcase_add_test(tcase, one_after_another);
    tcase_add_test(tcase, replies_that_go_on);
    tcase_add_test(tcase, blanks_of_what_goes_on);
    suite_add_tcase(suite, tcase);
}
