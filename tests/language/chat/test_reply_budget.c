/* Tests the limit of a reply's reasoning (fr_lab_reply_budget). It must force the reasoning to end at the right token,
 * in texts of published models' tokens. Over HTTP, a limit must give the same text with any draft method. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "tests/support/asking.h"
#include "tests/support/require.h"
#include "tests/support/server.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define BIRD            "\xf0\x9f\xa6\xa4" /* one character of several tokens */

enum { QWEN, GEMMA, LLAMA };
static const struct {
    const char *template, *folder, *begin, *end;
} models[] = {{"qwen3.5", "qwen35", "<think>\n", "</think>"},
              {"gemma4", "gemma", "<|channel>thought", "<channel|>"},
              {"llama3.1", "llama3", NULL, NULL}};

static fr_tokenizer *tokenizer;

static void open_model(int which) {
    char path[128], chat[128];
    fr_options *options = fr_options_new();
    snprintf(path, sizeof path, TOKENIZERS "%s", models[which].folder);
    snprintf(chat, sizeof chat, "tests/data/chat/templates/%s.jinja", models[which].template);
    require(fr_options_set_text(options, FR_OPT_CHAT_TEMPLATE, chat));
    require(fr_tokenizer_open(path, options, &tokenizer));
    fr_options_free(options);
}

static fr_lab_reply_budget *open_budget(const char *prompt, size_t count, size_t most) {
    fr_lab_reply_budget *budget;
    char text[64] = "";
    fr_span all = {0, prompt ? strlen(prompt) : 0};
    if (prompt) snprintf(text, sizeof text, "%s", prompt);
    const fr_marked_text marked = {text, all.end, &all, 1};
    require(fr_lab_reply_budget_open(tokenizer, NULL, prompt ? &marked : NULL, count, most, &budget));
    return budget;
}

/* Returns the only id that the budget allows next, or -1 if it allows all ids. */
static int32_t forced_by(fr_lab_reply_budget *budget, const int32_t *ids, size_t count) {
    size_t vocab = fr_tokenizer_count(tokenizer), left = 0;
    int32_t only = -1;
    float *logits = calloc(vocab, sizeof *logits);
    require(fr_lab_reply_budget_mask(budget, ids, count, logits, vocab));
    for (size_t id = 0; id < vocab; id++)
        if (!isinf(logits[id])) left++, only = (int32_t)id;
    free(logits);
    ck_assert(left == vocab || left == 1);
    return left == 1 ? only : -1;
}

static const struct {
    int model;
    bool opened; /* true: the reasoning begins in the prompt */
    size_t most;
    const char *text;
    bool forced; /* true: after the text, only the mark that ends the reasoning is allowed */
} cases[] = {
    {QWEN, false, 0, "", false},
    {QWEN, false, 2, " one two three", false},
    {QWEN, false, 2, "<think> one", false},
    {QWEN, false, 2, "<think> one two", true},
    {QWEN, false, 2, " one<think> one two", true},
    {QWEN, false, 0, "<think>", true},
    {QWEN, false, 2, "<think> one two</think>", false},
    {QWEN, false, 2, "<think> one two</think> three four", false},
    {QWEN, false, 2, "<think> one</think><think>", false},
    {QWEN, false, 2, "<think> one</think><think> two", true},
    {QWEN, true, 0, "", true},
    {QWEN, true, 2, " one", false},
    {QWEN, true, 2, " one two", true},
    {QWEN, true, 1, " one</think> two", false},
    {GEMMA, false, 0, "<|channel>", false},
    {GEMMA, false, 0, "<|channel>thought", true},
    {GEMMA, false, 2, "<|channel>thought one two", true},
    {GEMMA, false, 1, "<|channel>other one two", false},
    {GEMMA, true, 1, " one", true},
};

START_TEST(reasoning_is_ended) {
    open_model(cases[_i].model);
    const char *begin = models[cases[_i].model].begin, *end = models[cases[_i].model].end, *text = cases[_i].text;
    int32_t *ids, *marks, forced;
    size_t count, there;
    require(fr_tokenize(tokenizer, end, strlen(end), false, true, &marks, &there));
    ck_assert_uint_eq(there, 1);
    require(fr_tokenize(tokenizer, text, strlen(text), false, true, &ids, &count));
    fr_lab_reply_budget *budget = open_budget(cases[_i].opened ? begin : "", 0, cases[_i].most);
    forced = forced_by(budget, ids, count);
    ck_assert_msg(forced == (cases[_i].forced ? *marks : -1), "\"%s\": %d", text, forced);
    fr_lab_reply_budget_close(budget);
    budget = open_budget(NULL, count, cases[_i].most); /* all tokens belong to the prompt, so none counts */
    ck_assert_int_eq(forced_by(budget, ids, count), -1);
    fr_lab_reply_budget_close(budget);
    fr_free(ids);
    fr_free(marks);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* The limit waits until the current character has all its bytes. But some bytes never become a character. After such
 * bytes the limit must not wait any longer. */
START_TEST(characters_are_whole) {
    int32_t *ids;
    size_t count;
    open_model(QWEN);
    require(fr_tokenize(tokenizer, BIRD, strlen(BIRD), false, true, &ids, &count));
    ck_assert_uint_gt(count, 1);
    fr_lab_reply_budget *budget = open_budget(models[QWEN].begin, 0, 1);
    for (size_t i = 1; i < count; i++) ck_assert_int_eq(forced_by(budget, ids, i), -1);
    ck_assert_int_ge(forced_by(budget, ids, count), 0);
    const int32_t pieces[] = {ids[0], ids[0], ids[0], ids[0]};
    ck_assert_int_eq(forced_by(budget, pieces, 3), -1);
    ck_assert_int_ge(forced_by(budget, pieces, 4), 0);
    fr_lab_reply_budget_close(budget);
    fr_free(ids);
    fr_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(who_does_not_reason_has_none) {
    open_model(LLAMA);
    ck_assert_ptr_null(open_budget("", 0, 1));
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* ----------------------------------------------------------------------------------------------- requests over HTTP */

static fr_server server;

/* Requests a reply from the server. Returns the message of its first choice. */
static json_t *message_of(const char *member, const char *drafts) {
    char body[600];
    json_t *answer;
    snprintf(body, sizeof body,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"max_tokens\": 24, "
             "\"ignore_eos\": true, \"chat_template_kwargs\": {\"enable_thinking\": true}, \"temperature\": 0.9, "
             "\"seed\": 7, %s, %s}",
             member, drafts);
    json_t *request = json_loads(body, 0, NULL);
    ck_assert_int_eq(fr_ask_json(server.port, "/v1/chat/completions", request, &answer), 200);
    json_t *message = json_incref(json_object_get(json_array_get(json_object_get(answer, "choices"), 0), "message"));
    json_decref(request);
    json_decref(answer);
    return message;
}

static size_t length_of(const json_t *message, const char *key) {
    return json_string_length(json_object_get(message, key));
}

/* Here the model would reason for longer than the limit. The reasoning must end at the same token with any draft
 * method. */
START_TEST(drafts_change_nothing) {
    static const char *const members[] = {"\"reasoning_budget_tokens\": 6", "\"thinking_budget_tokens\": 6",
                                          "\"reasoning_budget\": 6", "\"thinking_token_budget\": 6"};
    static const char *const drafts[] = {"\"speculative.n_max\": 0", "\"speculative.n_max\": 3",
                                         "\"speculative.type\": \"ngram\"", "\"speculative.n_max\": 7"};
    server = fr_server_start("-m tests/data/models/qwen35-odd -t 2 -c 256 -np 2");
    json_t *free_one = message_of("\"reasoning_budget\": -1", drafts[0]), *first = message_of(members[0], drafts[0]);
    ck_assert_uint_eq(length_of(free_one, "content"), 0);
    ck_assert_uint_gt(length_of(first, "content"), 0);
    ck_assert_uint_gt(length_of(first, "reasoning_content"), 0);
    ck_assert_uint_lt(length_of(first, "reasoning_content"), length_of(free_one, "reasoning_content"));
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        json_t *same = message_of(members[i], drafts[i]);
        ck_assert_msg(json_equal(first, same), "%s, %s", members[i], drafts[i]);
        json_decref(same);
    }
    json_t *none = message_of("\"reasoning_budget\": 0", drafts[1]);
    ck_assert_uint_eq(length_of(none, "reasoning_content"), 0);
    json_t *schema = message_of("\"reasoning_budget\": 4, \"json_schema\": {\"enum\": [\"abc\"]}", drafts[1]);
    ck_assert_str_eq(json_string_value(json_object_get(schema, "content")), "\"abc\"");
    json_decref(schema);
    json_decref(none);
    json_decref(first);
    json_decref(free_one);
    fr_server_stop(&server);
}
END_TEST

FR_SUITE("reply_budget") {
    TCase *tcase = tcase_create("all");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, reasoning_is_ended, 0, COUNT_OF(cases));
    tcase_add_test(tcase, characters_are_whole);
    tcase_add_test(tcase, who_does_not_reason_has_none);
    tcase_add_test(tcase, drafts_change_nothing);
    suite_add_tcase(suite, tcase);
}
