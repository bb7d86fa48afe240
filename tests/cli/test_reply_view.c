/* Tests tools/cli/reply_view, which shows the reasoning, the content and the calls of a reply in a chat. */
/* suite: links=command */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tests/support/token_files.h"
#include "tools/cli/conversation.h"
#include "tools/cli/reply_view.h"

static fr_tokenizer *open_gemma(void) {
    fr_tokenizer *tokenizer;
    ck_assert_int_eq(fr_tokenizer_open(TOKENIZERS "gemma", NULL, &tokenizer), FR_OK);
    return tokenizer;
}

typedef struct shown {
    char *text; /* text with escape sequences, as a terminal would get it */
    char *said; /* the reply's content */
    json_t *rest;
    bool stopped;
} shown;

/* Shows a reply, in whose text the marks become control tokens. */
static shown show(const char *reply, bool dim, const char *stop) {
    shown s = {.rest = json_object()};
    size_t size, count;
    FILE *out = open_memstream(&s.text, &size);
    fr_tokenizer *tokenizer = open_gemma();
    json_t *settings = json_object();
    fr_stream text = {.out = out, .stops = &stop, .stop_count = stop != NULL};
    fr_marked_text prompt = {.text = (char[]){""}};
    fr_reply_view view;
    int32_t *ids;
    ck_assert_int_eq(fr_tokenize(tokenizer, reply, strlen(reply), false, true, &ids, &count), FR_OK);
    ck_assert_int_eq(fr_reply_view_open(&view, tokenizer, settings, &prompt, &text), 0);
    ck_assert(!view.screen.dim); /* no dim text, because a file is not a terminal */
    view.screen.dim = dim;
    for (size_t i = 0; i < count && !s.stopped; i++)
        ck_assert_int_eq(fr_reply_view_feed(&view, ids[i], false, &s.stopped), FR_OK);
    ck_assert_int_eq(fr_reply_view_finish(&view, false, &s.stopped), FR_OK);
    ck_assert_int_eq(fr_reply_view_add(&view, s.rest), 0);
    fclose(out);
    s.said = strndup(text.bytes ? text.bytes : "", text.length);
    fr_reply_view_close(&view);
    json_decref(settings);
    fr_stream_free(&text);
    fr_tokenizer_close(tokenizer);
    fr_free(ids);
    return s;
}

static void check_shown(const char *reply, bool dim, const char *text, const char *said) {
    shown s = show(reply, dim, NULL);
    char bare[512] = ""; /* the text without the escape sequences that only separate pieces of one part */
    for (const char *at = s.text; *at; at++) {
        bool between = strncmp(at, "\033[0m\033[2m", 8) == 0;
        if (between)
            at += 7;
        else
            strncat(bare, at, 1);
    }
    ck_assert_str_eq(bare, text);
    ck_assert_str_eq(s.said, said);
    json_decref(s.rest);
    free(s.text);
    free(s.said);
}

#define THOUGHT "<|channel>thought\nhm\n\nso\n<channel|>"
#define CALL    "<|tool_call>call:f{s:<|\"|>a<|\"|>}<tool_call|>"

START_TEST(plain) {
    check_shown("hi\n", false, "hi\n", "hi\n");
    check_shown(THOUGHT "hi", false, "<think>\nhm\n\nso\n</think>\n\nhi", "hi");
    check_shown(THOUGHT, false, "<think>\nhm\n\nso\n</think>", "");
    check_shown("<|channel>thought\n<channel|>hi", false, "hi", "hi");
    check_shown("a" THOUGHT "b", false, "a\n\n<think>\nhm\n\nso\n</think>\n\nb", "ab");
    check_shown(CALL, false, "<tool_call>{\"name\": \"f\", \"arguments\": {\"s\":\"a\"}}</tool_call>", "");
    check_shown("a\n" CALL CALL, false,
                "a\n\n<tool_call>{\"name\": \"f\", \"arguments\": {\"s\":\"a\"}}</tool_call>"
                "\n<tool_call>{\"name\": \"f\", \"arguments\": {\"s\":\"a\"}}</tool_call>",
                "a\n");
    check_shown(THOUGHT CALL, false,
                "<think>\nhm\n\nso\n</think>\n\n"
                "<tool_call>{\"name\": \"f\", \"arguments\": {\"s\":\"a\"}}</tool_call>",
                "");
    check_shown("<|tool_call>call", false, "<|tool_call>call", "<|tool_call>call");
}
END_TEST

START_TEST(dim) {
    check_shown("hi", true, "hi", "hi");
    check_shown(THOUGHT "hi", true, "\033[2mhm\n\nso\033[0m\n\nhi", "hi");
    check_shown(THOUGHT, true, "\033[2mhm\n\nso\033[0m", "");
}
END_TEST

/* A stop string ends a reply if it is in the content. In the reasoning it has no effect. */
START_TEST(stops) {
    shown s = show("<|channel>thought\na stop\n<channel|>hi stop it " CALL, false, "stop");
    ck_assert(s.stopped);
    ck_assert_str_eq(s.said, "hi ");
    ck_assert_str_eq(s.text, "<think>\na stop\n</think>\n\nhi ");
    ck_assert_str_eq(json_string_value(json_object_get(s.rest, "reasoning_content")), "a stop");
    ck_assert_ptr_null(json_object_get(s.rest, "tool_calls"));
    json_decref(s.rest);
    free(s.text);
    free(s.said);
}
END_TEST

START_TEST(rest) {
    shown s = show(THOUGHT "hi" CALL, false, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(s.rest, "reasoning_content")), "hm\n\nso");
    ck_assert_uint_eq(json_array_size(json_object_get(s.rest, "tool_calls")), 1);
    ck_assert_ptr_null(json_object_get(s.rest, "content"));
    json_decref(s.rest);
    free(s.text);
    free(s.said);
}
END_TEST

FR_SUITE("reply_view") {
    TCase *tcase = tcase_create("reply_view");
    tcase_add_test(tcase, plain);
    tcase_add_test(tcase, dim);
    tcase_add_test(tcase, stops);
    tcase_add_test(tcase, rest);
    suite_add_tcase(suite, tcase);
}
