/* Tests the adapters (LoRA) of a server. Each request may choose their scales. Texts with different adapters run at the
 * same time and must not share a prefix. /lora-adapters must list and set the scales as llama.cpp's server does. The
 * texts must be those of `batch` with the same adapters. */
/* suite: threads native */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/asking.h"
#include "tests/support/command.h"
#include "tests/support/server.h"
#include "tests/support/suite.h"

#define LLAMA "-m tests/data/models/llama "
#define FIRST "tests/data/adapters/llama"
#define OTHER "tests/data/adapters/llama-other"

enum { SETS = 4, IDS = 24 };

/* Sets of scales for the two adapters. `options` are the options of the command, and `lora` is the "lora" of a
 * request. */
static const struct {
    const char *options, *lora;
} sets[SETS] = {{"", "[{\"id\": 0, \"scale\": 0}]"},
                {"--lora " FIRST, "[{\"id\": 0, \"scale\": 1}]"},
                {"--lora-scaled " OTHER ":0.5", "[{\"id\": 1, \"scale\": 0.5}]"},
                {"--lora " FIRST "=-1," OTHER, "[{\"id\": 1, \"scale\": 1.0}, {\"id\": 0, \"scale\": -1}]"}};

static fr_server server;

static json_t *parse(const char *text) {
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    ck_assert_msg(value != NULL, "%s", text);
    return value;
}

/* Makes a prompt of more than 64 ids, because requests share prompts in blocks of 64 ids. */
static json_t *make_prompt(void) {
    json_t *ids = json_array();
    for (int i = 0; i < 90; i++) json_array_append_new(ids, json_integer((7 + 13 * i) % 150));
    return ids;
}

/* Returns the ids that `batch` generates with these options. */
static json_t *ask_batch(const char *options) {
    json_t *line = fr_body("{s:o, s:i, s:i, s:b}", "ids", make_prompt(), "n", IDS, "temp", 0, "ignore_eos", 1);
    char *text = json_dumps(line, JSON_COMPACT);
    fr_command batch = fr_command_feed(text, "batch " LLAMA "%s -f - -o -", options);
    json_t *answer = parse(batch.out), *ids = json_incref(fr_json_get(answer, "ids"));
    ck_assert_uint_eq(json_array_size(ids), IDS);
    json_decref(answer);
    json_decref(line);
    fr_command_free(&batch);
    free(text);
    return ids;
}

/* Makes the body of a request. `lora` is the value of its member "lora"; NULL means that the body lacks this member. */
static json_t *body_of(const char *lora) {
    json_t *body = fr_body("{s:o, s:i, s:i, s:b, s:b}", "prompt", make_prompt(), "n_predict", IDS, "temperature", 0,
                           "ignore_eos", 1, "return_tokens", 1);
    if (lora) json_object_set_new(body, "lora", parse(lora));
    return body;
}

/* Sends the request and checks the ids of the answer. Returns how many ids of the prompt were reused. */
static json_int_t ask(const char *lora, const json_t *expected) {
    json_t *answer, *body = body_of(lora);
    ck_assert_int_eq(fr_ask_json(server.port, NATIVE, body, &answer), 200);
    ck_assert_msg(json_equal(fr_json_get(answer, "tokens"), expected), "%s", lora ? lora : "no lora");
    json_int_t cached = json_integer_value(fr_json_get(fr_json_get(answer, "timings"), "cache_n"));
    json_decref(answer);
    json_decref(body);
    return cached;
}

static void post(const char *body, int status, const char *answer) {
    json_t *sent = parse(body), *got;
    ck_assert_int_eq(fr_ask_json(server.port, "/lora-adapters", sent, &got), status);
    char *text = json_dumps(got, JSON_COMPACT);
    ck_assert_msg(strstr(text, answer) != NULL, "%s: %s", body, text);
    free(text);
    json_decref(got);
    json_decref(sent);
}

static void expect_list(double first, double second) {
    json_t *got, *expected = fr_body("[{s:i, s:s, s:f, s:s, s:s}, {s:i, s:s, s:f, s:s, s:s}]", "id", 0, "path", FIRST,
                                     "scale", first, "task_name", "", "prompt_prefix", "", "id", 1, "path", OTHER,
                                     "scale", second, "task_name", "", "prompt_prefix", "");
    ck_assert_int_eq(fr_ask_json(server.port, "/lora-adapters", NULL, &got), 200);
    ck_assert(json_equal(got, expected));
    json_decref(got);
    json_decref(expected);
}

START_TEST(each_request_chooses_its_adapters) {
    json_t *expected[SETS];
    for (size_t i = 0; i < SETS; i++) expected[i] = ask_batch(sets[i].options);
    for (size_t i = 1; i < SETS; i++) ck_assert(!json_equal(expected[i], expected[i - 1]));
    server = fr_server_start(LLAMA "--lora " FIRST "," OTHER " --lora-init-without-apply -np %d", SETS);
    expect_list(0, 0);
    ck_assert_int_eq(ask(NULL, expected[0]), 0);
    /* The first request with a set of scales must find no prefix in the cache, although earlier requests had the same
     * prompt. The second request with the same set must find the prefix. */
    for (size_t i = 1; i < SETS; i++) ck_assert_int_eq(ask(sets[i].lora, expected[i]), 0);
    for (size_t i = 0; i < SETS; i++) ck_assert_int_ge(ask(sets[i].lora, expected[i]), 64);
    ck_assert_int_ge(ask("[]", expected[0]), 64);
    /* Sends two requests with each set, all at the same time. */
    fr_events events[2 * SETS];
    for (size_t i = 0; i < 2 * SETS; i++) {
        json_t *body = body_of(sets[i % SETS].lora);
        json_object_set_new(body, "stream", json_true());
        events[i] = fr_ask_stream(server.port, NATIVE, body);
        json_decref(body);
    }
    for (size_t i = 0; i < 2 * SETS; i++) {
        json_t *said = fr_events_said(&events[i]);
        ck_assert(json_equal(fr_json_get(fr_json_get(said, "0"), "tokens"), expected[i % SETS]));
        json_decref(said);
        fr_events_close(&events[i]);
    }
    fr_server_stop(&server);
    for (size_t i = 0; i < SETS; i++) json_decref(expected[i]);
}
END_TEST

START_TEST(the_scales_are_listed_and_set) {
    json_t *plain = ask_batch(sets[0].options), *half = ask_batch(sets[2].options), *both = ask_batch(sets[3].options);
    server = fr_server_start(LLAMA "--lora " FIRST "=-1 --lora " OTHER);
    expect_list(-1, 1);
    ask(NULL, both);
    post("[{\"id\": 1, \"scale\": 0.5}]", 200, "{\"success\":true}");
    expect_list(0, 0.5);
    ask(NULL, half);
    ask(sets[3].lora, both);
    ask(NULL, half);
    post("{\"id\": 0}", 400, "must be an array");
    post("[{\"id\": 2, \"scale\": 1}]", 400, "the model has 2");
    post("[{\"id\": 0, \"scale\": \"1\"}]", 400, "must be a number");
    post("[{\"id\": 0, \"scale\": 1e10}]", 400, "must be a number");
    expect_list(0, 0.5);
    post("[]", 200, "{\"success\":true}");
    expect_list(0, 0);
    ask(NULL, plain);
    fr_server_stop(&server);
    json_decref(plain);
    json_decref(half);
    json_decref(both);
}
END_TEST

/* Each dialect has the text of an answer in a member "text" or "content". Returns the longest of these members, at any
 * depth of the answer. */
static const char *find_text(const json_t *value, const char *best) {
    const char *key;
    json_t *inner;
    size_t i;
    if (json_is_array(value))
        json_array_foreach (value, i, inner) best = find_text(inner, best);
    json_object_foreach ((json_t *)(uintptr_t)value, key, inner) {
        bool is_text = json_is_string(inner) && (strcmp(key, "text") == 0 || strcmp(key, "content") == 0);
        if (is_text && json_string_length(inner) > strlen(best)) best = json_string_value(inner);
        best = find_text(inner, best);
    }
    return best;
}

START_TEST(all_dialects_pass_them_on) {
#define ASKED  "\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]"
#define CHOSEN "\"lora\": [{\"id\": 0, \"scale\": 1}], \"temperature\": 0"
    static const char *const bodies[][2] = {
        {CHAT, "{" ASKED ", \"max_tokens\": 12, " CHOSEN "}"},
        {"/v1/messages", "{" ASKED ", \"max_tokens\": 12, " CHOSEN "}"},
        {"/v1/responses", "{\"input\": \"hi\", \"max_output_tokens\": 12, " CHOSEN "}"},
        {"/api/chat", "{" ASKED ", \"stream\": false, \"options\": {\"num_predict\": 12, " CHOSEN "}}"}};
    enum { BODIES = sizeof bodies / sizeof *bodies };
    json_t *answers[BODIES + 1];
    server = fr_server_start(LLAMA "--lora " FIRST " --lora-init-without-apply");
    for (size_t i = 0; i <= BODIES; i++) {
        json_t *body = parse(bodies[i % BODIES][1]);
        if (i == BODIES) json_object_del(body, "lora");
        ck_assert_int_eq(fr_ask_json(server.port, bodies[i % BODIES][0], body, &answers[i]), 200);
        json_decref(body);
    }
    const char *first = find_text(answers[0], "");
    ck_assert_uint_gt(strlen(first), 4);
    for (size_t i = 1; i < BODIES; i++) ck_assert_str_eq(find_text(answers[i], ""), first);
    ck_assert_str_ne(find_text(answers[BODIES], ""), first);
    for (size_t i = 0; i <= BODIES; i++) json_decref(answers[i]);
    fr_server_stop(&server);
}
END_TEST

/* A slot's text was made with certain scales. The saved slot can be restored only while the server has the same
 * scales. */
START_TEST(saved_slots_keep_to_their_adapters) {
    char folder[] = "/tmp/forerun-slots-XXXXXX", path[64];
    json_t *file = fr_body("{s:s}", "filename", "a"), *got, *half = ask_batch(sets[2].options);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    server =
        fr_server_start(LLAMA "--lora " FIRST "," OTHER " --lora-init-without-apply -np 1 --slot-save-path %s", folder);
    ask(sets[2].lora, half);
    ck_assert_int_eq(fr_ask_json(server.port, "/slots/0?action=save", file, &got), 200);
    json_decref(got);
    ck_assert_int_eq(fr_ask_json(server.port, "/slots/0?action=restore", file, &got), 400);
    json_decref(got);
    post(sets[2].lora, 200, "success");
    ck_assert_int_eq(fr_ask_json(server.port, "/slots/0?action=restore", file, &got), 200);
    json_decref(got);
    ck_assert_int_ge(ask(NULL, half), 89);
    /* a request with other scales must not reuse the restored session */
    ck_assert_int_eq(fr_ask_json(server.port, "/slots/0?action=restore", file, &got), 200);
    json_decref(got);
    json_t *plain = ask_batch(sets[0].options);
    ck_assert_int_eq(ask(sets[0].lora, plain), 0);
    fr_server_stop(&server);
    snprintf(path, sizeof path, "%s/a", folder);
    unlink(path);
    rmdir(folder);
    json_decref(file);
    json_decref(half);
    json_decref(plain);
}
END_TEST

FR_SUITE("serve_adapters") {
    TCase *tests = tcase_create("adapters");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, each_request_chooses_its_adapters);
    tcase_add_test(tests, the_scales_are_listed_and_set);
    tcase_add_test(tests, all_dialects_pass_them_on);
    tcase_add_test(tests, saved_slots_keep_to_their_adapters);
    suite_add_tcase(suite, tests);
}
