/* Chat templates: what the published Jinja templates give, byte for byte, and messages of the wrong shape.
 *
 * Expected texts are in tests/data/chat; how they were made stands in make_cases.py there. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/text/tokenizer.h"
#include "tests/token_files.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static fr_tokenizer *open_gemma(void) {
    fr_tokenizer *tokenizer;
    ck_assert_int_eq(fr_tokenizer_open(TOKENIZERS "gemma", &tokenizer), FR_OK);
    return tokenizer;
}

static void check_case(const fr_tokenizer *tokenizer, const json_t *item) {
    const char *title = json_string_value(json_object_get(item, "title")), *message;
    char *messages = json_dumps(json_object_get(item, "messages"), JSON_ENCODE_ANY);
    char *options = json_dumps(json_object_get(item, "context"), 0), *text;
    size_t length;
    fr_status status = fr_chat_render(tokenizer, messages, options, &text, &length);
    const json_t *rendered = json_object_get(item, "rendered");
    message = status == FR_OK ? text : fr_last_error();
    ck_assert_msg(status == (rendered ? FR_OK : FR_INPUT), "%s: %s: %s", title, fr_status_name(status), message);
    if (rendered) {
        bool same = strcmp(text, json_string_value(rendered)) == 0 && length == strlen(text);
        ck_assert_msg(same, "%s:\n%s\nnot\n%s", title, text, json_string_value(rendered));
    } else {
        ck_assert_ptr_null(text);
    }
    fr_free(text);
    free(messages);
    free(options);
}

START_TEST(reference_cases) {
    static const struct {
        const char *path, *style, *tokens;
        size_t count;
    } files[] = {{"tests/data/chat/gemma4.json", "gemma4", TOKENIZERS "gemma", 21},
                 {"tests/data/chat/gemma4_more.json", "gemma4", TOKENIZERS "gemma", 200},
                 {"tests/data/chat/glm4.7.json", "glm4.7", TOKENIZERS "glm4", 21}};
    fr_tokenizer *tokenizer;
    ck_assert_int_eq(fr_tokenizer_open(files[_i].tokens, &tokenizer), FR_OK);
    json_t *root = fr_load_json(files[_i].path), *cases = json_object_get(root, files[_i].style);
    ck_assert_uint_ge(json_array_size(cases), files[_i].count);
    for (size_t i = 0; i < json_array_size(cases); i++) check_case(tokenizer, json_array_get(cases, i));
    json_decref(root);
    fr_tokenizer_close(tokenizer);
}
END_TEST

static void check_text(const fr_tokenizer *tokenizer, const char *messages, const char *options, const char *expected) {
    char *text;
    size_t length;
    ck_assert_int_eq(fr_chat_render(tokenizer, messages, options, &text, &length), FR_OK);
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(length, strlen(expected));
    fr_free(text);
}

static void check_bytes(const fr_tokenizer *tokenizer, const char *messages, const char *expected, size_t size) {
    char *text;
    size_t length;
    fr_status status = fr_chat_render(tokenizer, messages, "{\"add_generation_prompt\": false}", &text, &length);
    ck_assert_msg(status == FR_OK, "%s: %s", messages, fr_last_error());
    ck_assert_uint_eq(length, size);
    ck_assert_mem_eq(text, expected, size);
    fr_free(text);
}

#define HELLO "[{\"role\": \"user\", \"content\": \"Hello!\"}]"

/* Without options: a generation prompt, no thinking. */
START_TEST(defaults) {
    fr_tokenizer *tokenizer = open_gemma();
    const char *expected = "<bos><|turn>user\nHello!<turn|>\n<|turn>model\n<|channel>thought\n<channel|>";
    check_text(tokenizer, HELLO, NULL, expected);
    check_text(tokenizer, HELLO, "{}", expected);
    check_text(tokenizer, HELLO, "{\"tools\": null, \"enable_thinking\": null, \"unknown\": 3}", expected);
    check_text(tokenizer, HELLO, "{\"add_generation_prompt\": false}", "<bos><|turn>user\nHello!<turn|>\n");
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* A picture, and then a text: GLM-OCR's turns, as in the prompt of its reference. */
START_TEST(a_picture_before_the_text) {
    fr_tokenizer *tokenizer;
    ck_assert_int_eq(fr_tokenizer_open(TOKENIZERS "glm4", &tokenizer), FR_OK);
    check_text(tokenizer,
               "[{\"role\": \"user\", \"content\": [{\"type\": \"image\"}, {\"type\": \"text\", \"text\": \"Text "
               "Recognition:\"}]}]",
               "{\"pictures\": true}",
               "[gMASK]<sop><|user|>\n<|begin_of_image|><|image|><|end_of_image|>Text Recognition:<|assistant|>\n");
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* The text holds its own <bos>, and its turns are the special tokens. */
START_TEST(tokens_of_a_chat) {
    static const char *const expected[] = {"<bos>", "<|turn>", "<turn|>", "<|turn>", "<|channel>", "<channel|>"};
    fr_tokenizer *tokenizer = open_gemma();
    char *text;
    size_t length, count, next = 0;
    int32_t *ids;
    ck_assert_int_eq(fr_chat_render(tokenizer, HELLO, NULL, &text, &length), FR_OK);
    ck_assert_int_eq(fr_tokenize(tokenizer, text, length, false, true, &ids, &count), FR_OK);
    for (size_t i = 0; i < count; i++) {
        if (ids[i] > 18) continue; /* the special tokens' ids are 0 to 18 */
        ck_assert_uint_lt(next, COUNT_OF(expected));
        ck_assert_int_eq(ids[i], fr_tokenizer_id(tokenizer, expected[next++]));
    }
    ck_assert_uint_eq(next, COUNT_OF(expected));
    fr_free(ids);
    fr_free(text);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* Users and models write NULs: as Jinja, a renderer knows nothing special about them. */
START_TEST(nuls_in_texts) {
    static const struct {
        const char *messages, *text;
        size_t length;
    } cases[] = {
#define CASE(messages, text) {messages, text, sizeof(text) - 1}
        CASE("[{\"role\": \"user\", \"content\": \"a\\u0000b\"}, {\"role\": \"assistant\", \"content\": \"\\u0000c\"}]",
             "<bos><|turn>user\na\0b<turn|>\n<|turn>model\n\0c<turn|>\n"),
        CASE("[{\"role\": \"user\\u0000\", \"content\": [{\"type\": \"text\", \"text\": \"x\\u0000\"}]}]",
             "<bos><|turn>user\0\nx\0<turn|>\n"),
        CASE("[{\"role\": \"system\", \"content\": [\"'\\u0000'\"]}]", "<bos><|turn>system\n[\"'\\x00'\"]<turn|>\n"),
        CASE("[{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"name\": \"f\\u0000\", \"arguments\": "
             "\"\\u0000x\"}}]}, {\"role\": \"tool\", \"content\": [{\"type\": \"text\", \"text\": \"\\u0000y\"}]}]",
             "<bos><|turn>model\n<|tool_call>call:f\0{\0x}<tool_call|><|tool_response>response:f\0"
             "{value:<|\"|>\0y<|\"|>}<tool_response|>"),
#undef CASE
    };
    fr_tokenizer *tokenizer = open_gemma();
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_bytes(tokenizer, cases[i].messages, cases[i].text, cases[i].length);
    fr_tokenizer_close(tokenizer);
    ck_assert_int_eq(fr_tokenizer_open(TOKENIZERS "glm4", &tokenizer), FR_OK);
    check_bytes(tokenizer, "[{\"role\": \"user\", \"content\": \"a\\u0000b\"}]", "[gMASK]<sop><|user|>a\0b", 23);
    fr_tokenizer_close(tokenizer);
}
END_TEST

static const char small[] =
    "{\"added_tokens\":[],\"decoder\":{\"type\":\"Fuse\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"%s\":0,\"%s\":1},"
    "\"merges\":[]}}";

START_TEST(families) {
    char json[512], *text;
    size_t length;
    fr_tokenizer *tokenizer;
    snprintf(json, sizeof json, small, "<|turn>", "<|im_end|>");
    ck_assert_int_eq(fr_open_text(json, strlen(json), NULL, &tokenizer), FR_OK);
    ck_assert_int_eq(fr_chat_render(tokenizer, HELLO, NULL, &text, &length), FR_INPUT);
    ck_assert_str_eq(fr_last_error(), "this model has no chat template that forerun knows");
    fr_tokenizer_close(tokenizer);
    snprintf(json, sizeof json, small, "<|turn>", "<turn|>");
    ck_assert_int_eq(fr_open_text(json, strlen(json), "{\"bos_token\": \"<start>\"}", &tokenizer), FR_OK);
    check_text(tokenizer, HELLO, "{\"add_generation_prompt\": false}", "<start><|turn>user\nHello!<turn|>\n");
    fr_tokenizer_close(tokenizer);
    ck_assert_int_eq(fr_chat_render(NULL, HELLO, NULL, &text, &length), FR_INPUT);
}
END_TEST

START_TEST(wrong_shapes) {
    static const struct {
        const char *messages, *options, *line;
    } cases[] = {
        {"", NULL, "messages: not valid JSON"},
        {"[{\"role\": \"user\"}", NULL, "messages: not valid JSON"},
        {"[{\"role\": \"user\", \"\\u0000\": 1}]", NULL, "messages: not valid JSON"},
        {"[{\"role\": \"user\", \"role\": \"user\"}]", NULL, "messages: not valid JSON"},
        {"[]", NULL, "not a JSON array with at least one message"},
        {"{}", NULL, "not a JSON array with at least one message"},
        {"[" HELLO "]", NULL, "messages[0] is not an object with a \"role\""},
        {"[{\"role\": 3}]", NULL, "messages[0] is not an object with a \"role\""},
        {"[{\"role\": \"user\"}, null]", NULL, "messages[1] is not an object with a \"role\""},
        {HELLO, "[]", "not a JSON object"},
        {HELLO, "{", "chat options: not valid JSON"},
        {HELLO, "{\"enable_thinking\": 1}", "\"enable_thinking\" is neither true nor false"},
        {HELLO, "{\"tools\": {}}", "\"tools\" is not an array"},
        {HELLO, "{\"tools\": [3]}", "tools[0] has no \"function\" object"},
        {"[{\"role\": \"assistant\", \"tool_calls\": [{}]}]", NULL, "messages[0]: tool_calls[0] names no function"},
    };
    fr_tokenizer *tokenizer = open_gemma();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *text;
        size_t length;
        ck_assert_int_eq(fr_chat_render(tokenizer, cases[i].messages, cases[i].options, &text, &length), FR_INPUT);
        ck_assert_ptr_null(text);
        ck_assert_msg(strstr(fr_last_error(), cases[i].line), "%s: \"%s\"", cases[i].messages, fr_last_error());
    }
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* A reply made of thoughts without end takes time in proportion to its length. */
START_TEST(many_channels) {
    static const char begin[] = "[{\"role\": \"assistant\", \"content\": \"";
    size_t rounds = 100000, at = strlen(begin);
    char *messages = malloc(rounds * 10 + 200), *text;
    memcpy(messages, begin, at);
    for (size_t i = 0; i < rounds; i++, at += 10) memcpy(messages + at, "<channel|>", 10);
    memcpy(messages + at, "x<|channel>\"}]", 15);
    fr_tokenizer *tokenizer = open_gemma();
    size_t length;
    ck_assert_int_eq(fr_chat_render(tokenizer, messages, "{\"add_generation_prompt\": false}", &text, &length), FR_OK);
    ck_assert_str_eq(text, "<bos><|turn>model\nx<turn|>\n");
    fr_free(text);
    free(messages);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* Damaged messages are refused or rendered, never more. */
START_TEST(mutations) {
    static const char bytes[] = "\"{}[],:01-.truefalsnl\\u \xFF";
    json_t *root = fr_load_json("tests/data/chat/gemma4_more.json"), *cases = json_object_get(root, "gemma4");
    fr_tokenizer *tokenizer = open_gemma();
    uint64_t state = 1;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        char *messages = json_dumps(json_object_get(json_array_get(cases, i), "messages"), 0);
        for (int round = 0; round < 10 && strlen(messages) > 2; round++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            messages[(state >> 33) % strlen(messages)] = bytes[(state >> 20) % (sizeof bytes - 1)];
            char *text;
            size_t length;
            fr_status status = fr_chat_render(tokenizer, messages, NULL, &text, &length);
            ck_assert(status == FR_OK || status == FR_INPUT);
            fr_free(text);
        }
        free(messages);
    }
    json_decref(root);
    fr_tokenizer_close(tokenizer);
}
END_TEST

static Suite *chat_suite(void) {
    Suite *suite = suite_create("chat");
    TCase *cases = tcase_create("chat");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, reference_cases, 0, 3);
    tcase_add_test(cases, defaults);
    tcase_add_test(cases, a_picture_before_the_text);
    tcase_add_test(cases, tokens_of_a_chat);
    tcase_add_test(cases, nuls_in_texts);
    tcase_add_test(cases, families);
    tcase_add_test(cases, wrong_shapes);
    tcase_add_test(cases, many_channels);
    tcase_add_test(cases, mutations);
    suite_add_tcase(suite, cases);
    return suite;
}

int main(void) {
    SRunner *runner = srunner_create(chat_suite());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
