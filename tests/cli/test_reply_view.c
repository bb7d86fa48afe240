/* Tests tools/cli/reply_view, which splits the reply of a chat into reasoning, content and calls, and shows them. */
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
    char *text; /* the text with escape sequences, as a terminal would get it */
    char *said; /* the reply's content */
    json_t *rest;
    bool stopped;
} shown;

/* Shows a reply. The marks in its text are turned into control tokens. */
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
    ck_assert(!view.screen.dim); /* nothing is dim, because a file is not a terminal */
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
    char bare[512] = ""; /* the text without the escape sequences that are between pieces of the same part */
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

/* A stop string in the content must end the reply. A stop string in the reasoning must have no effect. */
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

/* The bytes of a reply's text. Each byte also has a mark: '+' if the byte was reported as part of an accepted draft,
 * and '-' if not. */
typedef struct told_bytes {
    const fr_reply_view *view;
    char bytes[256], marks[256];
    size_t length;
} told_bytes;

static void note_bytes(void *context, fr_reply_part part, const char *bytes, size_t length) {
    told_bytes *told = context;
    const fr_stream *text = told->view->text;
    if (part != FR_REPLY_CONTENT && part != FR_REPLY_REASONING) return;
    for (size_t i = 0; i < length; i++) {
        bool accepted = part == FR_REPLY_CONTENT ? text->accepted[text->written + i] : told->view->accepted;
        told->bytes[told->length] = bytes[i];
        told->marks[told->length++] = accepted ? '+' : '-';
    }
}

/* Gives a view the tokens of a reply, of which every second one is an accepted draft. Each byte must be told as one of
 * the token that prints it, and a character as one of the token that completes it. cut: number of tokens left out at
 * the end. */
static void check_origin(const char *tokenizer_path, const char *reply, const char *tools, size_t cut, bool drafted) {
    fr_tokenizer *tokenizer;
    ck_assert_int_eq(fr_tokenizer_open(tokenizer_path, NULL, &tokenizer), FR_OK);
    json_t *settings = tools ? json_pack("{s:o}", "tools", json_loads(tools, 0, NULL)) : json_object();
    const char *stop = "a stop";
    fr_stream text = {.stops = &stop, .stop_count = 1};
    fr_marked_text prompt = {.text = (char[]){""}};
    fr_reply_view view;
    told_bytes told = {.view = &view}, expected = {0};
    int32_t *ids;
    size_t count;
    bool stopped = false;
    ck_assert_int_eq(fr_tokenize(tokenizer, reply, strlen(reply), false, true, &ids, &count), FR_OK);
    ck_assert_int_eq(fr_reply_view_open(&view, tokenizer, settings, &prompt, &text), FR_OK);
    fr_reply_view_tell(&view, note_bytes, &told);
    for (size_t i = 0; i < count - cut; i++, drafted = !drafted) {
        ck_assert_int_eq(fr_reply_view_feed(&view, ids[i], drafted, &stopped), FR_OK);
        if (fr_token_kind_of(tokenizer, ids[i]) == FR_TOKEN_CONTROL) continue;
        size_t length;
        const char *bytes = fr_token_bytes(tokenizer, ids[i], &length);
        memcpy(expected.bytes + expected.length, bytes, length);
        memset(expected.marks + expected.length, drafted ? '+' : '-', length);
        expected.length += length;
    }
    for (size_t i = expected.length; i-- > 1;)
        if (((unsigned char)expected.bytes[i] & 0xc0) == 0x80) expected.marks[i - 1] = expected.marks[i];
    ck_assert_int_eq(fr_reply_view_finish(&view, cut > 0, &stopped), FR_OK);
    ck_assert_str_eq(told.bytes, expected.bytes);
    ck_assert_str_eq(told.marks, expected.marks);
    fr_reply_view_close(&view);
    fr_stream_free(&text);
    json_decref(settings);
    fr_tokenizer_close(tokenizer);
    fr_free(ids);
}

/* Text that was held back is told as text of the ids that printed it, not of the id that released it: what could have
 * begun a mark, a call or a stop string, line breaks, bytes of a character, and all of these at the end. */
START_TEST(origin) {
    static const char tools[] = "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]";
    static const struct {
        const char *tokenizer, *reply, *tools;
        size_t cut;
    } cases[] = {
        {TOKENIZERS "qwen35", "a <b and <tool and", NULL, 0},
        {TOKENIZERS "qwen35", "x\n\ny\n", tools, 0},
        {TOKENIZERS "qwen35", "{\"name\": 1} ok", tools, 0},
        {TOKENIZERS "qwen35", "<think>so <i> a</think>b <", NULL, 0},
        {TOKENIZERS "gemma", "one a sto two a st", NULL, 0},
        {TOKENIZERS "gemma", "\xf0\x9f\xab\xa8 and \xf0\x9f\xab\xa8", NULL, 0},
        {TOKENIZERS "gemma", "\xf0\x9f\xab\xa8 and \xf0\x9f\xab\xa8", NULL, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int drafted = 0; drafted < 2; drafted++)
            check_origin(cases[i].tokenizer, cases[i].reply, cases[i].tools, cases[i].cut, drafted);
}
END_TEST

FR_SUITE("reply_view") {
    TCase *tcase = tcase_create("reply_view");
    tcase_add_test(tcase, plain);
    tcase_add_test(tcase, dim);
    tcase_add_test(tcase, stops);
    tcase_add_test(tcase, rest);
    tcase_add_test(tcase, origin);
    suite_add_tcase(suite, tcase);
}
