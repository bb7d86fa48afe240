/* Tests the server as a program. Its answers must be those of batch, whole or as a stream, with and without drafts. Its
 * routes must give what clients of llama.cpp's and OpenAI's servers read. If it can't serve a request, it must refuse
 * it with the name of the member that is the reason.
 *
 * test_serve_crowd.c tests many clients at once. test_serve_models.c tests several models and saved sessions.
 * test_serve_ends.c tests the end of the server. */
/* suite: threads native */
#include <check.h>
#include <png.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/asking.h"
#include "tests/support/command.h"
#include "tests/support/require.h"
#include "tests/support/server.h"
#include "tests/support/suite.h"

#define PICTURES "-m tests/data/glm-ocr "

#define INVALID "invalid_request_error"

static fr_server server;

static void start(const char *options) {
    server = fr_server_start("%s", options);
}

static void start_demo(void) {
    start(DEMO DEMO_DRAFTER "-np 3 --metrics --slots");
}

static void stop(void) {
    fr_server_stop(&server);
}

/* -------------------------------------------------------------------------------------------- comparison with batch */

/* Makes the body of a request. It contains all settings that influence a text, because the defaults of serve and batch
 * differ. */
static json_t *body_of(const char *path, bool sampled) {
    json_t *body = fr_body("{s:s, s:i, s:f, s:i, s:f, s:f, s:i, s:[s]}", "prompt", "The river in winter", "max_tokens",
                           24, "temperature", sampled ? 0.9 : 0.0, "top_k", 50, "top_p", 0.97, "min_p", 0.01, "seed",
                           77, "stop", "qq");
    if (strcmp(path, NATIVE) == 0) {
        json_object_update_new(body, fr_body("{s:i, s:b}", "n_probs", 2, "return_tokens", 1));
    } else if (strcmp(path, COMPLETION) == 0) {
        json_object_update_new(body, fr_body("{s:i}", "logprobs", 2));
    } else {
        json_object_del(body, "prompt");
        json_object_update_new(body, fr_body("{s:[{s:s, s:s}], s:b, s:i}", "messages", "role", "user", "content",
                                             "The river in winter", "logprobs", 1, "top_logprobs", 2));
    }
    return body;
}

/* Makes a line of a batch that requests the same text as choice number `choice` of the body. */
static json_t *line_of(const char *path, const json_t *body, int choice) {
    static const char *const servers[] = {"max_tokens", "temperature", "n_probs", "return_tokens"};
    json_t *same = json_copy((json_t *)(uintptr_t)body);
    json_object_set_new(same, "seed", json_integer(77 + choice));
    if (strcmp(path, NATIVE) != 0)
        return fr_body("{s:s, s:s, s:s, s:o}", "custom_id", "x", "method", "POST", "url", path, "body", same);
    json_object_set(same, "n", json_object_get(same, "max_tokens"));
    json_object_set(same, "temp", json_object_get(same, "temperature"));
    json_object_set(same, "logprobs", json_object_get(same, "n_probs"));
    for (size_t i = 0; i < 4; i++) json_object_del(same, servers[i]);
    return same;
}

/* Makes the expected choice of a server's answer from batch's answer to a line. batch runs without drafts, and runs
 * each text alone. */
static json_t *answer_of_batch(const char *path, const json_t *answer, int choice) {
    if (strcmp(path, NATIVE) == 0)
        return fr_body("{s:i, s:O, s:O, s:O}", "index", choice, "content", fr_json_get(answer, "text"), "tokens",
                       fr_json_get(answer, "ids"), "completion_probabilities", fr_json_get(answer, "logprobs"));
    json_t *body = fr_json_get(fr_json_get(answer, "response"), "body");
    json_t *one = json_copy(json_array_get(fr_json_get(body, "choices"), 0));
    json_object_set_new(one, "index", json_integer(choice));
    return one;
}

static json_t *ask_batch(const char *path, const json_t *body, int choices) {
    char *text;
    size_t size;
    FILE *lines = open_memstream(&text, &size);
    for (int i = 0; i < choices; i++) {
        json_t *line = line_of(path, body, i);
        json_dumpf(line, lines, 0);
        fputc('\n', lines);
        json_decref(line);
    }
    fclose(lines);
    fr_command batch = fr_command_feed(text, "batch " DEMO "-np 1 -f - -o -");
    json_t *answers = json_array();
    char *at = batch.out;
    for (int i = 0; i < choices; i++, at = strchr(at, '\n') + 1) {
        json_t *answer = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
        ck_assert_ptr_nonnull(answer);
        json_array_append_new(answers, answer_of_batch(path, answer, i));
        json_decref(answer);
    }
    fr_command_free(&batch);
    free(text);
    json_t *whole = strcmp(path, NATIVE) ? fr_body("{s:o}", "choices", answers) : answers;
    json_t *said = fr_whole_said(whole);
    json_decref(whole);
    return said;
}

/* Checks the counts in an answer. Then removes the members of llama.cpp's format that batch's answer lacks. */
static void leave_common(const char *path, json_t *said, size_t choices) {
    static const char *const own[] = {"stop",      "stop_type",    "tokens_predicted", "tokens_evaluated",
                                      "truncated", "has_new_line", "stopping_word",    "system_fingerprint"};
    const char *key;
    json_t *choice;
    json_object_del(said, "prompt_tokens");
    json_object_del(said, "completion_tokens");
    ck_assert_uint_eq(json_object_size(said), choices);
    if (strcmp(path, NATIVE) != 0) return;
    json_object_foreach (said, key, choice)
        for (size_t i = 0; i < sizeof own / sizeof *own; i++) json_object_del(choice, own[i]);
}

static void compare_with_batch(const char *path, json_t *body, int choices, int depth, bool stream) {
    char what[128];
    json_t *expected = ask_batch(path, body, choices);
    json_object_set_new(body, "stream", json_boolean(stream));
    json_object_set_new(body, "speculative.n_max", json_integer(depth));
    if (choices > 1) json_object_set_new(body, "n", json_integer(choices));
    json_t *said = fr_ask_ok(server.port, path, body);
    leave_common(path, said, (size_t)choices);
    snprintf(what, sizeof what, "%s, %d choices, %d drafts, stream %d", path, choices, depth, stream);
    fr_same_said(expected, said, what);
    json_decref(expected);
    json_decref(said);
    json_decref(body);
}

static const char *const paths[] = {CHAT, COMPLETION, NATIVE};

START_TEST(answers_are_those_of_batch) {
    for (int way = 0; way < 8; way++)
        compare_with_batch(paths[_i], body_of(paths[_i], way & 1), 1, way & 2 ? 4 : 0, way & 4);
}
END_TEST

START_TEST(further_choices_draw_with_further_seeds) {
    for (int stream = 0; stream < 2; stream++)
        compare_with_batch(paths[_i], body_of(paths[_i], true), 3, stream ? 4 : 0, stream);
}
END_TEST

/* If a request asks for drafts, they must be made and counted. */
START_TEST(timings_count_drafts) {
    json_t *body = fr_body("{s:s, s:i, s:i, s:i}", "prompt", "import os\nimport", "n_predict", 40, "temperature", 0,
                           "speculative.n_max", 4),
           *with, *without;
    ck_assert_int_eq(fr_ask_json(server.port, NATIVE, body, &with), 200);
    json_object_set_new(body, "speculative.n_max", json_integer(0));
    ck_assert_int_eq(fr_ask_json(server.port, NATIVE, body, &without), 200);
    const json_t *timings = fr_json_get(with, "timings"), *plain = fr_json_get(without, "timings");
    ck_assert_int_gt(json_integer_value(fr_json_get(timings, "draft_n")), 0);
    ck_assert_int_gt(json_integer_value(fr_json_get(timings, "draft_n_accepted")), 0);
    ck_assert_int_gt((int)json_array_size(fr_json_get(timings, "draft_by_depth")), 1);
    ck_assert_ptr_null(json_object_get(plain, "draft_n"));
    ck_assert_int_eq(json_integer_value(fr_json_get(plain, "predicted_n")), 40);
    json_decref(with);
    json_decref(without);
    json_decref(body);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- routes */

static json_t *get(const char *path) {
    json_t *answer;
    int status = fr_ask_json(server.port, path, NULL, &answer);
    ck_assert_msg(status == 200 && answer, "%s: %d", path, status);
    return answer;
}

static json_t *post(const char *path, json_t *body) {
    json_t *answer;
    int status = fr_ask_json(server.port, path, body, &answer);
    ck_assert_msg(status == 200 && answer, "%s: %d %s", path, status, json_dumps(answer, 0));
    json_decref(body);
    return answer;
}

/* Posts a body and frees it. Returns the answer, which must report success. */
static json_t *say(const char *path, json_t *body) {
    json_t *said = fr_ask_ok(server.port, path, body);
    json_decref(body);
    return said;
}

/* Checks that the object has all of these members, each with a value of this type. */
static void has(const json_t *object, json_type type, const char *const *keys) {
    for (; *keys; keys++) ck_assert_msg(json_typeof(fr_json_get(object, *keys)) == type, "%s: another type", *keys);
}

START_TEST(models_and_properties_are_told) {
    json_t *models = get("/v1/models"), *props = get("/props");
    const json_t *one = json_array_get(fr_json_get(models, "data"), 0);
    ck_assert_str_eq(json_string_value(fr_json_get(models, "object")), "list");
    has(one, JSON_STRING, (const char *[]){"id", "object", "owned_by", NULL});
    has(one, JSON_INTEGER, (const char *[]){"created", NULL});
    has(fr_json_get(one, "meta"), JSON_INTEGER,
        (const char *[]){"n_vocab", "n_ctx_train", "n_embd", "n_params", "size", NULL});
    has(fr_json_get(one, "meta"), JSON_STRING, (const char *[]){"ftype", NULL});
    static const char *const caps[] = {"supports_string_content", "supports_typed_content", "supports_system_role",
                                       "supports_tools", "supports_tool_calls"};
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
        ck_assert_msg(json_is_true(fr_json_get(fr_json_get(props, "chat_template_caps"), caps[i])), "%s", caps[i]);
    ck_assert_str_eq(json_string_value(fr_json_get(props, "media_marker")), "<__media__>"); /* llama.cpp's default
                                                                                             * marker */
    char *text; /* text of the whole answer */
    ck_assert_int_eq(fr_client_once(server.port, "GET", "/props", NULL, NULL, &text), 200);
    ck_assert_msg(strstr(text, "\"temperature\":0.8,") && strstr(text, "\"top_p\":0.95,"), "%s", text);
    free(text);
    has(props, JSON_STRING,
        (const char *[]){"model_alias", "model_path", "chat_template", "bos_token", "eos_token", "build_info",
                         "model_ftype", NULL});
    ck_assert_int_eq(json_integer_value(fr_json_get(props, "total_slots")), 3);
    ck_assert_str_eq(json_string_value(fr_json_get(props, "bos_token")), "<bos>");
    const json_t *settings = fr_json_get(props, "default_generation_settings");
    ck_assert_int_eq(json_integer_value(fr_json_get(settings, "n_ctx")), 4096);
    const json_t *params = fr_json_get(settings, "params");
    has(params, JSON_REAL, (const char *[]){"temperature", "top_p", "min_p", "dry_multiplier", NULL});
    ck_assert_int_eq(json_integer_value(fr_json_get(params, "seed")), -1);
    ck_assert(json_is_true(fr_json_get(props, "endpoint_slots")));
    ck_assert(json_is_true(fr_json_get(props, "endpoint_metrics")));
    json_decref(models);
    json_decref(props);
}
END_TEST

START_TEST(texts_become_tokens_and_texts_again) {
    json_t *tokens = post("/tokenize", fr_body("{s:s, s:b}", "content", "The river é", "add_special", 1));
    json_t *plain = post("/tokenize", fr_body("{s:s}", "content", "The river é"));
    const json_t *ids = fr_json_get(tokens, "tokens"), *bare = fr_json_get(plain, "tokens");
    ck_assert_uint_eq(json_array_size(ids), json_array_size(bare) + 1);
    ck_assert_int_eq(json_integer_value(json_array_get(ids, 0)), 2);
    json_t *text = post("/detokenize", fr_body("{s:O}", "tokens", bare));
    ck_assert_str_eq(json_string_value(fr_json_get(text, "content")), "The river é");
    /* vLLM's clients read the text in "prompt" */
    ck_assert(json_equal(fr_json_get(text, "content"), fr_json_get(text, "prompt")));
    json_t *vllm = post("/tokenize", fr_body("{s:s}", "prompt", "The river é"));
    json_t *info = get("/tokenizer_info");
    ck_assert(json_equal(fr_json_get(vllm, "tokens"), fr_json_get(tokens, "tokens")));
    ck_assert_uint_eq((size_t)json_integer_value(fr_json_get(vllm, "count")),
                      json_array_size(fr_json_get(tokens, "tokens")));
    json_decref(vllm);
    vllm = post("/tokenize", fr_body("{s:s, s:b}", "prompt", "The river é", "add_special_tokens", 0));
    ck_assert(json_equal(fr_json_get(vllm, "tokens"), fr_json_get(plain, "tokens")));
    ck_assert_str_eq(json_string_value(fr_json_get(info, "bos_token")), "<bos>");
    ck_assert(json_is_string(fr_json_get(info, "eos_token")) && json_is_string(fr_json_get(info, "chat_template")));
    json_decref(vllm);
    json_decref(info);
    json_t *pieces = post("/tokenize", fr_body("{s:s, s:b}", "content", "The river é", "with_pieces", 1));
    const json_t *first = json_array_get(fr_json_get(pieces, "tokens"), 0);
    ck_assert(json_equal(fr_json_get(first, "id"), json_array_get(bare, 0)));
    ck_assert_str_eq(json_string_value(fr_json_get(first, "piece")), "The");
    json_t *prompt =
        post("/apply-template", fr_body("{s:[{s:s, s:s}]}", "messages", "role", "user", "content", "Rain?"));
    const char *rendered = json_string_value(fr_json_get(prompt, "prompt"));
    const char *expected = "<bos><|turn>user\nRain?<turn|>\n<|turn>model\n";
    ck_assert_msg(strncmp(rendered, expected, strlen(expected)) == 0, "%s", rendered);
    json_decref(tokens);
    json_decref(plain);
    json_decref(text);
    json_decref(pieces);
    json_decref(prompt);
}
END_TEST

static double metric(const char *name) {
    char *page, key[128];
    ck_assert_int_eq(fr_client_once(server.port, "GET", "/metrics", NULL, NULL, &page), 200);
    snprintf(key, sizeof key, "\n%s%s ", strchr(name, ':') ? "" : "llamacpp:", name);
    char *line = strstr(page, key);
    ck_assert_msg(line != NULL, "no %s in\n%s", name, page);
    double value = strtod(line + strlen(key), NULL);
    free(page);
    return value;
}

START_TEST(metrics_and_slots_count) {
    json_t *said = say(COMPLETION, body_of(COMPLETION, false)), *slots = get("/slots");
    ck_assert(metric("tokens_predicted_total") == 24);
    ck_assert(metric("prompt_tokens_total") == 8);
    ck_assert(metric("requests_processing") == 0 && metric("requests_deferred") == 0);
    ck_assert(metric("spec_decode_num_draft_tokens_total") >= metric("spec_decode_num_accepted_tokens_total"));
    ck_assert_uint_eq(json_array_size(slots), 3);
    const json_t *slot = json_array_get(slots, 0);
    has(slot, JSON_INTEGER, (const char *[]){"id", "n_ctx", "id_task", "n_prompt_tokens", NULL});
    ck_assert(json_is_false(fr_json_get(slot, "is_processing")) && json_is_true(fr_json_get(slot, "speculative")));
    const json_t *next = json_array_get(fr_json_get(slot, "next_token"), 0);
    ck_assert_int_eq(json_integer_value(fr_json_get(next, "n_remain")), -1);
    json_decref(said);
    json_decref(slots);
}
END_TEST

/* /rounds must list the rounds in order, with the ids that each round generated. The first rounds have rows of the
 * prompt. Each later round has one row for the last id of the text and one row for each draft. */
START_TEST(rounds_say_whose_rows_they_had) {
    json_t *said = say(COMPLETION, body_of(COMPLETION, false)), *answer = get("/rounds"), *rounds, *round;
    size_t given = 0, prompt = 0, rows = 0, i, total = (size_t)json_integer_value(fr_json_get(answer, "total"));
    rounds = json_object_get(answer, "rounds");
    ck_assert_int_eq(json_integer_value(fr_json_get(answer, "slots")), 3);
    ck_assert_uint_eq(json_array_size(rounds), total);
    json_array_foreach (rounds, i, round) {
        const json_t *parts = fr_json_get(round, "rows"), *part = json_array_get(parts, 0);
        ck_assert_uint_eq(json_array_size(parts), 1);
        ck_assert_int_eq(json_integer_value(json_array_get(part, 0)), 0);
        size_t ids = (size_t)json_integer_value(json_array_get(part, 2));
        ck_assert_int_eq(json_is_true(json_array_get(part, 3)), given == 0);
        *(given ? &rows : &prompt) += (size_t)json_integer_value(json_array_get(part, 1));
        given += ids;
        ck_assert(json_real_value(fr_json_get(round, "ms")) > 0);
    }
    ck_assert_uint_eq(given, 24);
    ck_assert_uint_eq(prompt, 8);
    ck_assert(metric("n_decode_total") == (double)total);
    double drafted = metric("spec_decode_num_draft_tokens_total");
    ck_assert(drafted > 0 && (double)rows == (double)(total - 1) + drafted);
    char path[64];
    snprintf(path, sizeof path, "/rounds?after=%zu", total - 1);
    json_t *last = get(path);
    ck_assert(json_equal(json_array_get(fr_json_get(last, "rounds"), 0), json_array_get(rounds, total - 1)));
    ck_assert_uint_eq(json_array_size(fr_json_get(last, "rounds")), 1);
    json_decref(last);
    json_decref(said);
    json_decref(answer);
}
END_TEST

/* Counts the rounds from number `after` on that have rows of a long prompt. Each of them must have at most `piece` such
 * rows, and also rows of the stream. Sets *rows to the number of the prompt's rows. The stream continues meanwhile, so
 * the server may already have dropped some of these rounds from its record; in this case sets *lost to true. */
static size_t rounds_beside(size_t after, size_t piece, size_t *rows, bool *lost) {
    char path[64];
    size_t i, count = 0;
    snprintf(path, sizeof path, "/rounds?after=%zu", after);
    json_t *answer = get(path), *rounds = json_object_get(answer, "rounds"), *round;
    *lost = (size_t)json_integer_value(fr_json_get(answer, "total")) - after > json_array_size(rounds);
    *rows = 0;
    json_array_foreach (rounds, i, round) {
        const json_t *parts = fr_json_get(round, "rows");
        size_t most = 0;
        for (size_t p = 0; p < json_array_size(parts); p++) {
            const json_t *part = json_array_get(parts, p);
            if (json_is_true(json_array_get(part, 3))) most += (size_t)json_integer_value(json_array_get(part, 1));
        }
        if (most == 0) continue;
        ck_assert_uint_le(most, piece);
        ck_assert_uint_eq(json_array_size(parts), 2);
        *rows += most;
        count++;
    }
    json_decref(answer);
    return count;
}

/* A stream continues while the prompt of another request is run in pieces. The number of rounds that the stream gets
 * meanwhile must be the same whether or not the other request wants its prompt echoed with log-probabilities. If the
 * server has dropped some of these rounds from its record, the test tries again with other ids. */
START_TEST(an_echoed_prompt_holds_up_no_stream) {
    enum { LONG = 300, PIECE = 16, TRIES = 40 };
    start(DEMO "-np 2 -c 2048 -ub 16 --slots --spec-type none");
    json_t *endless =
        fr_body("{s:s, s:i, s:b, s:b}", "prompt", "The sea", "max_tokens", 1500, "ignore_eos", 1, "stream", 1);
    for (int echoes = 0; echoes < 2; echoes++) {
        size_t rows = 0, rounds = 0;
        bool lost = true;
        for (int try = 0; lost && try < TRIES; try++) {
            fr_events events = fr_ask_stream(server.port, COMPLETION, endless);
            /* waits for more than one event, because the server may hold back a text's second token for other
             * sessions */
            for (int i = 0; i < 8; i++) json_decref(fr_events_next(&events));
            json_t *before = get("/rounds"), *answer, *ids = json_array();
            for (int i = 0; i < LONG; i++)
                json_array_append_new(ids, json_integer(200 + (i + 7 * try) * (3 + echoes) % 700));
            json_t *body = fr_body("{s:o, s:i, s:b}", "prompt", ids, "max_tokens", 1, "echo", echoes);
            if (echoes) json_object_set_new(body, "logprobs", json_integer(1));
            ck_assert_int_eq(fr_ask_json(server.port, COMPLETION, body, &answer), 200);
            rounds = rounds_beside((size_t)json_integer_value(fr_json_get(before, "total")), PIECE, &rows, &lost);
            fr_events_close(&events);
            json_decref(before);
            json_decref(answer);
            json_decref(body);
        }
        ck_assert(!lost);
        ck_assert_uint_eq(rows, LONG);
        ck_assert_uint_ge(rounds, (LONG + PIECE - 1) / PIECE);
    }
    json_decref(endless);
    stop();
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- refusals */

static void refused(const char *method, const char *path, const char *body, int status, const char *type,
                    const char *names) {
    char *text;
    int got = fr_client_once(server.port, method, path, NULL, body, &text);
    json_t *answer = text ? json_loads(text, 0, NULL) : NULL, *error = json_object_get(answer, "error");
    ck_assert_msg(got == status && error, "%s %s %.200s: %d %s", method, path, body, got, text);
    ck_assert_int_eq(json_integer_value(fr_json_get(error, "code")), status);
    ck_assert_str_eq(json_string_value(fr_json_get(error, "type")), type);
    const char *message = json_string_value(fr_json_get(error, "message"));
    ck_assert_msg(!names || strstr(message, names), "%.100s: \"%s\" has no %s", body, message, names);
    json_decref(answer);
    free(text);
}

START_TEST(what_is_no_request_is_refused) {
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "3",
                                      "\"x\"",
                                      "{\"prompt\": \"a\"} b",
                                      "{\"prompt\": \"\xff\"}",
                                      "{}",
                                      "{\"prompt\": []}",
                                      "{\"prompt\": {}}",
                                      "{\"prompt\": [99999]}",
                                      "{\"prompt\": \"a\", \"n\": 0}",
                                      "{\"prompt\": \"a\", \"temperature\": -1}",
                                      "{\"prompt\": \"a\", \"stop\": 5}",
                                      "{\"prompt\": \"a\", \"stream\": 1}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refused("POST", COMPLETION, bad[i], 400, INVALID, NULL);
        refused("POST", NATIVE, bad[i], 400, INVALID, NULL);
        refused("POST", CHAT, bad[i], 400, INVALID, NULL);
    }
    refused("POST", CHAT, "{\"messages\": []}", 400, INVALID, NULL);
    refused("POST", CHAT, "{\"messages\": [3]}", 400, INVALID, NULL);
    refused("POST", "/tokenize", "{\"content\": 3}", 400, INVALID, "content");
    refused("POST", "/tokenize", "{\"contents\": \"a\"}", 400, INVALID, "missing");
    refused("POST", "/tokenize", "{\"content\": \"a\", \"add_special\": 1}", 400, INVALID, "add_special");
    refused("POST", "/tokenize", "{\"content\": \"a\", \"with_pieces\": \"no\"}", 400, INVALID, "with_pieces");
    refused("POST", "/detokenize", "{\"tokens\": [4096]}", 400, INVALID, NULL);
    refused("POST", "/detokenize", "{\"tokens\": [-1]}", 400, INVALID, "tokens");
    refused("POST", "/apply-template", "{\"messages\": 3}", 400, INVALID, "messages");
    refused("POST", "/v1/rerank", "{}", 501, "not_supported_error", "--embeddings");
    refused("POST", "/reranking", "{}", 501, "not_supported_error", "--embeddings");
    refused("GET", "/nothing", NULL, 404, "not_found_error", "/nothing");
    refused("GET", CHAT, NULL, 405, INVALID, "POST");
    refused("POST", "/health", "{}", 405, INVALID, "GET");
    refused("POST", "/slots/0?action=erase", "{}", 501, "not_supported_error", "--slot-save-path");
}
END_TEST

static void check_same_call(const json_t *function, const json_t *said) {
    const json_t *call = json_array_get(json_object_get(said, "tool_calls"), 0);
    ck_assert(json_equal(function, json_object_get(call, "function")));
}

/* A request may require a call of any tool or of a certain tool. The reply must then be one such call, whatever the
 * model is. */
START_TEST(tools_that_must_be_called_are) {
    static const char tools[] =
        "[{\"type\": \"function\", \"function\": {\"name\": \"add\", \"description\": \"d\", \"parameters\": "
        "{\"properties\": {\"to\": {\"enum\": [\"x\", \"y\"]}, \"n\": {\"type\": \"integer\", \"minimum\": 3, "
        "\"maximum\": 40}}, \"required\": [\"to\", \"n\"]}}}, {\"type\": \"function\", \"function\": {\"name\": "
        "\"stop\", \"description\": \"d\"}}]";
    json_t *said[3] = {NULL};
    for (int i = 0; i < 9; i++) {
        json_t *choice = i / 3 == 0   ? json_string("required")
                         : i / 3 == 1 ? fr_body("{s:s, s:{s:s}}", "type", "function", "function", "name", "add")
                                      : fr_body("{s:s, s:{s:s}}", "type", "function", "function", "name", "stop");
        json_t *body = fr_body("{s:[{s:s, s:s}], s:o, s:o, s:f, s:i, s:i, s:b, s:i, s:b}", "messages", "role", "user",
                               "content", "Add it", "tools", json_loads(tools, 0, NULL), "tool_choice", choice,
                               "temperature", 1.0, "seed", 5, "max_tokens", 200, "parallel_tool_calls", 0,
                               "speculative.n_max", i % 3 == 0 ? 0 : 4, "stream", i % 3 == 2);
        json_t *now = fr_ask_ok(server.port, CHAT, body), *one = json_object_get(now, "0");
        const json_t *call = json_array_get(json_object_get(one, "tool_calls"), 0);
        const json_t *function = json_object_get(call, "function"), *name = json_object_get(function, "name");
        json_t *arguments = json_loads(json_string_value(json_object_get(function, "arguments")), 0, NULL);
        ck_assert_str_eq(json_string_value(json_object_get(one, "finish_reason")), "tool_calls");
        ck_assert_uint_eq(json_array_size(json_object_get(one, "tool_calls")), 1);
        ck_assert_str_eq(json_string_value(name), i < 3 ? json_string_value(name) : i < 6 ? "add" : "stop");
        json_int_t n = json_integer_value(json_object_get(arguments, "n"));
        if (strcmp(json_string_value(name), "add") == 0)
            ck_assert(n >= 3 && n <= 40);
        else
            ck_assert_uint_eq(json_object_size(arguments), 0);
        if (i % 3 == 0)
            said[i / 3] = json_deep_copy(one);
        else
            check_same_call(function, said[i / 3]);
        json_decref(arguments);
        json_decref(now);
        json_decref(body);
    }
    for (int i = 0; i < 3; i++) json_decref(said[i]);
}
END_TEST

START_TEST(what_is_not_built_is_refused_by_name) {
    static const char *const fields[][2] = {{"grammar", "\"root ::= x\""},
                                            {"json_schema", "{\"not\": {}}"},
                                            {"response_format", "{\"type\": \"structural_tag\"}"},
                                            {"lora", "[{\"id\": 0, \"scale\": 1}]"},
                                            {"tool_choice", "\"required\""},
                                            {"echo", "true"},
                                            {"t_max_predict_ms", "\"1\""},
                                            {"accept", "\"rejection\""},
                                            {"speculative.n_max", "99"}};
    char body[512];
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        snprintf(body, sizeof body,
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"max_tokens\": 1, "
                 "\"%s\": %s}",
                 fields[i][0], fields[i][1]);
        refused("POST", CHAT, body, 400, INVALID, fields[i][0]);
    }
    json_decref(say(COMPLETION, fr_body("{s:s, s:i, s:{s:i}, s:n}", "prompt", "a", "max_tokens", 1, "nobody_knows",
                                        "it", 3, "seed")));
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------- echoes */

/* The ids of a text. own[i] is the log-probability of id i after the ids before it. best[i] is that of the likeliest id
 * at this position. Both are computed from the text's logits. */
typedef struct likelihoods {
    const int32_t *ids;
    size_t count, at;
    double own[64], best[64];
} likelihoods;

static fr_status take_rows(void *context, const float *logits, size_t rows, size_t vocab) {
    likelihoods *l = context;
    for (size_t r = 0; r < rows && l->at + 1 < l->count; r++, logits += vocab) {
        double sum = 0, largest = -INFINITY;
        for (size_t i = 0; i < vocab; i++) largest = fmax(largest, logits[i]);
        for (size_t i = 0; i < vocab; i++) sum += exp(logits[i] - largest);
        l->at++;
        l->own[l->at] = logits[l->ids[l->at]] - largest - log(sum);
        l->best[l->at] = -log(sum);
    }
    return FR_OK;
}

/* Checks "logprobs" of an echoed prompt: the log-probability of each token, the likeliest tokens, and the offset of
 * each token in the text. */
static void check_echo(const json_t *choice, const likelihoods *l, const char *text) {
    const json_t *logprobs = fr_json_get(choice, "logprobs"), *tokens = fr_json_get(logprobs, "tokens");
    const json_t *offsets = fr_json_get(logprobs, "text_offset");
    size_t length = strlen(text);
    ck_assert(strncmp(json_string_value(fr_json_get(choice, "text")), text, length) == 0);
    ck_assert(json_is_null(json_array_get(fr_json_get(logprobs, "token_logprobs"), 0)));
    ck_assert(json_is_null(json_array_get(fr_json_get(logprobs, "top_logprobs"), 0)));
    ck_assert_str_eq(json_string_value(json_array_get(tokens, 0)), "<bos>");
    for (size_t i = 1; i < json_array_size(tokens); i++) {
        const char *token = json_string_value(json_array_get(tokens, i));
        size_t at = (size_t)json_integer_value(json_array_get(offsets, i));
        ck_assert(strncmp(json_string_value(fr_json_get(choice, "text")) + at, token, strlen(token)) == 0);
        if (i >= l->count) continue;
        json_t *best = json_array_get(fr_json_get(logprobs, "top_logprobs"), i), *value;
        double most = -INFINITY, own = json_number_value(json_array_get(fr_json_get(logprobs, "token_logprobs"), i));
        json_object_foreach (best, token, value) most = fmax(most, json_number_value(value));
        ck_assert_double_eq_tol(own, l->own[i], 1e-4);
        ck_assert_double_eq_tol(most, l->best[i], 1e-4);
        ck_assert_uint_le(json_object_size(best), 2);
    }
}

/* The log-probabilities of an echoed prompt must be those that follow from its logits. This must hold with and without
 * generated ids, for whole answers and streams, and for each choice. */
START_TEST(prompts_are_echoed_with_their_log_probabilities) {
    static const char text[] = "The river in winter is a long way from the sea";
    int32_t *ids;
    size_t count;
    fr_model *model;
    fr_session *session;
    require(fr_model_open("tools/demo/target", NULL, &model));
    require(fr_tokenize(fr_model_tokenizer(model), text, strlen(text), true, false, &ids, &count));
    likelihoods l = {.ids = ids, .count = count};
    require(fr_session_open(model, NULL, NULL, &session));
    require(fr_session_logits(session, ids, count, 0, take_rows, &l));
    for (int most = 0; most < 4; most += 3) {
        json_t *body = fr_body("{s:[s, s], s:i, s:b, s:i, s:i, s:i, s:f}", "prompt", "a", text, "max_tokens", most,
                               "echo", 1, "logprobs", 1, "n", 2, "seed", 3, "temperature", 0.7);
        json_t *answer, *choice;
        ck_assert_int_eq(fr_ask_json(server.port, COMPLETION, body, &answer), 200);
        ck_assert_uint_eq(json_array_size(fr_json_get(answer, "choices")), 4);
        for (size_t i = 2; i < 4; i++) {
            choice = json_array_get(fr_json_get(answer, "choices"), i);
            check_echo(choice, &l, text);
            ck_assert_uint_eq(json_array_size(fr_json_get(fr_json_get(choice, "logprobs"), "tokens")),
                              count + (size_t)most);
        }
        json_object_set_new(body, "stream", json_true());
        json_object_set_new(body, "stream_options", fr_body("{s:b}", "include_usage", 1));
        json_t *streamed = fr_ask_ok(server.port, COMPLETION, body), *whole = fr_whole_said(answer);
        fr_same_said(whole, streamed, "a prompt that is echoed");
        json_decref(streamed);
        json_decref(whole);
        json_decref(answer);
        json_decref(body);
    }
    fr_session_close(session);
    fr_model_close(model);
    fr_free(ids);
}
END_TEST

/* post_sampling_probs requests the probabilities after the samplers. After greedy sampling only one token remains, with
 * probability 1. */
START_TEST(probabilities_of_draws_are_told) {
    static const char *const forms[] = {NATIVE, CHAT};
    for (size_t p = 0; p < 2; p++) {
        json_t *body =
            fr_body("{s:s, s:[{s:s, s:s}], s:i, s:f, s:i, s:b}", "prompt", "Once upon", "messages", "role", "user",
                    "content", "Hi", "max_tokens", 3, "temperature", 0.0, "n_probs", 4, "post_sampling_probs", 1);
        json_t *answer;
        ck_assert_int_eq(fr_ask_json(server.port, forms[p], body, &answer), 200);
        const json_t *list = json_object_get(answer, "completion_probabilities");
        const json_t *choice = json_array_get(json_object_get(answer, "choices"), 0);
        if (p) list = fr_json_get(fr_json_get(choice, "logprobs"), "content");
        ck_assert_uint_eq(json_array_size(list), 3);
        for (size_t i = 0; i < 3; i++) {
            const json_t *one = json_array_get(list, i), *best = fr_json_get(one, "top_probs");
            ck_assert(json_number_value(fr_json_get(one, "prob")) == 1);
            ck_assert_uint_eq(json_array_size(best), 1); /* tokens of probability 0 are left out */
            ck_assert(json_number_value(fr_json_get(json_array_get(best, 0), "prob")) == 1);
        }
        json_decref(answer);
        json_decref(body);
    }
}
END_TEST

/* best_of requests that more choices are generated than the answer has. The answer must have those with the highest
 * mean log-probability, in descending order. */
START_TEST(the_likeliest_choices_are_answered) {
    json_t *body = fr_body("{s:s, s:i, s:i, s:i, s:f, s:i}", "prompt", "Once upon", "max_tokens", 6, "n", 5, "seed", 11,
                           "temperature", 1.0, "logprobs", 0);
    json_t *all, *best;
    double mean[5] = {0};
    ck_assert_int_eq(fr_ask_json(server.port, COMPLETION, body, &all), 200);
    for (size_t i = 0; i < 5; i++) {
        const json_t *choice = json_array_get(fr_json_get(all, "choices"), i);
        const json_t *values = fr_json_get(fr_json_get(choice, "logprobs"), "token_logprobs");
        for (size_t t = 0; t < json_array_size(values); t++)
            mean[i] += json_number_value(json_array_get(values, t)) / (double)json_array_size(values);
    }
    json_object_set_new(body, "n", json_integer(2));
    json_object_set_new(body, "best_of", json_integer(5));
    json_object_del(body, "logprobs");
    ck_assert_int_eq(fr_ask_json(server.port, COMPLETION, body, &best), 200);
    ck_assert_uint_eq(json_array_size(fr_json_get(best, "choices")), 2);
    for (size_t place = 0; place < 2; place++) {
        const json_t *shown = json_array_get(fr_json_get(best, "choices"), place);
        size_t likeliest = 0;
        for (size_t i = 1; i < 5; i++)
            if (mean[i] > mean[likeliest]) likeliest = i;
        const json_t *expected = json_array_get(fr_json_get(all, "choices"), likeliest);
        ck_assert_str_eq(json_string_value(fr_json_get(shown, "text")),
                         json_string_value(fr_json_get(expected, "text")));
        ck_assert_int_eq(json_integer_value(fr_json_get(shown, "index")), (json_int_t)place);
        ck_assert(json_is_null(fr_json_get(shown, "logprobs")));
        mean[likeliest] = -INFINITY;
    }
    json_decref(all);
    json_decref(best);
    json_decref(body);
}
END_TEST

/* When the time for a text is over, the text must end at a line break. */
START_TEST(time_is_a_limit) {
    json_t *all, *some;
    for (int timed = 0; timed < 2; timed++) {
        json_t *body = fr_body("{s:s, s:i, s:f, s:b, s:i}", "prompt", "def f(x):\n    return x\n\n", "n_predict", 600,
                               "temperature", 0.0, "ignore_eos", 1, "t_max_predict_ms", timed);
        ck_assert_int_eq(fr_ask_json(server.port, NATIVE, body, timed ? &some : &all), 200);
        json_decref(body);
    }
    const char *whole = json_string_value(fr_json_get(all, "content"));
    const char *text = json_string_value(fr_json_get(some, "content"));
    ck_assert_uint_lt(strlen(text), strlen(whole));
    ck_assert_int_eq(strncmp(whole, text, strlen(text)), 0);
    ck_assert_ptr_nonnull(strchr(text, '\n'));
    ck_assert_str_eq(json_string_value(fr_json_get(some, "stop_type")), "limit");
    ck_assert(json_is_false(fr_json_get(some, "truncated")));
    json_decref(all);
    json_decref(some);
}
END_TEST

START_TEST(a_prompt_beyond_the_context_is_refused) {
    json_t *ids = json_array(), *answer;
    for (int i = 0; i < 5000; i++) json_array_append_new(ids, json_integer(300 + i % 7));
    for (int stream = 0; stream < 2; stream++) {
        json_t *body = fr_body("{s:O, s:b}", "prompt", ids, "stream", stream);
        ck_assert_int_eq(fr_ask_json(server.port, NATIVE, body, &answer), 400);
        const json_t *error = fr_json_get(answer, "error");
        ck_assert_str_eq(json_string_value(fr_json_get(error, "type")), "exceed_context_size_error");
        ck_assert_int_eq(json_integer_value(fr_json_get(error, "n_prompt_tokens")), 5000);
        ck_assert_int_eq(json_integer_value(fr_json_get(error, "n_ctx")), 4096);
        json_decref(answer);
        json_decref(body);
    }
    json_decref(ids);
    char *text = malloc(40001); /* too long for the model, but this route only renders the prompt */
    memset(text, 'q', 40000);
    text[40000] = '\0';
    answer = post("/apply-template", fr_body("{s:[{s:s, s:s}]}", "messages", "role", "user", "content", text));
    ck_assert_uint_gt(json_string_length(fr_json_get(answer, "prompt")), 40000);
    json_decref(answer);
    free(text);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------- keys */

static int ask_with(const char *header, const char *path) {
    return fr_client_once(server.port, "GET", path, header, NULL, NULL);
}

static void check_keys(const char *good) {
    char bearer[128], own[128], longer[128];
    snprintf(bearer, sizeof bearer, "Authorization: Bearer %s\r\n", good);
    snprintf(own, sizeof own, "X-Api-Key: %s\r\n", good);
    snprintf(longer, sizeof longer, "X-Api-Key: %sx\r\n", good);
    ck_assert_int_eq(ask_with(bearer, "/v1/models"), 200);
    ck_assert_int_eq(ask_with(own, "/v1/models"), 200);
    ck_assert_int_eq(ask_with(longer, "/v1/models"), 401);
    ck_assert_int_eq(ask_with(NULL, "/v1/models"), 401);
    ck_assert_int_eq(ask_with(NULL, "/nothing"), 401);
    ck_assert_int_eq(ask_with(NULL, "/health"), 200);
}

START_TEST(keys_come_from_everywhere) {
    char path[] = "/tmp/forerun-keys-XXXXXX", options[128];
    int file = mkstemp(path);
    ck_assert_int_eq(write(file, "from-file\nother\n", 16), 16);
    close(file);
    snprintf(options, sizeof options, DEMO "--api-key first,second --api-key-file %s", path);
    setenv("FORERUN_API_KEY", "from-environment", 1);
    start(options);
    unsetenv("FORERUN_API_KEY");
    check_keys("first");
    check_keys("second");
    check_keys("from-file");
    check_keys("other");
    check_keys("from-environment");
    stop();
    unlink(path);
}
END_TEST

/* SIGHUP makes the server read its keys from the file again. If the file has no keys at that time, the old keys stay
 * valid. */
START_TEST(keys_are_read_again) {
    char path[] = "/tmp/forerun-keys-XXXXXX", options[128];
    int file = mkstemp(path), status = 0;
    ck_assert_int_eq(write(file, "# who may ask\nold # a neighbour's\n", 34), 34);
    snprintf(options, sizeof options, DEMO "--api-key-file %s", path);
    start(options);
    check_keys("old");
    ck_assert_int_eq(ftruncate(file, 0), 0);
    ck_assert_int_eq(pwrite(file, "new#1\n", 6, 0), 6);
    ck_assert_int_eq(kill(server.process, SIGHUP), 0);
    for (int i = 0; i < 500 && status != 200; i++) {
        usleep(10000);
        status = ask_with("X-Api-Key: new#1\r\n", "/v1/models");
    }
    ck_assert_int_eq(status, 200);
    ck_assert_int_eq(ask_with("X-Api-Key: old\r\n", "/v1/models"), 401);
    ck_assert_int_eq(ftruncate(file, 0), 0);
    ck_assert_int_eq(kill(server.process, SIGHUP), 0);
    char *said = fr_server_said(&server);
    for (; !strstr(said, "stay"); usleep(10000)) {
        free(said);
        said = fr_server_said(&server);
    }
    free(said);
    check_keys("new#1");
    stop();
    close(file);
    unlink(path);
}
END_TEST

/* Finds the line of the log that contains `what`. If the line is JSON, returns its value. */
static json_t *logged(const char *said, const char *what) {
    const char *at = strstr(said, what);
    ck_assert_msg(at, "no %s in %s", what, said);
    while (at > said && at[-1] != '\n') at--;
    return json_loadb(at, strcspn(at, "\n"), 0, NULL);
}

/* Each request must have a line in the log, except successful probes. Nothing that a client sends may begin a new line
 * there. */
START_TEST(requests_are_logged) {
    start(DEMO "-np 1 --log-format json");
    json_t *body = fr_body("{s:s, s:i}", "prompt", "The", "n_predict", 5), *answer;
    ck_assert_int_eq(fr_ask_json(server.port, NATIVE, body, &answer), 200);
    json_decref(answer);
    json_decref(body);
    ck_assert_int_eq(fr_client_once(server.port, "GET", "/health", NULL, NULL, NULL), 200);
    ck_assert_int_eq(fr_client_once(server.port, "POST", "/no%0Athing", NULL, "{}", NULL), 404);
    int status = kill(server.process, SIGTERM);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(fr_server_wait(&server), 0);
    char *said = fr_server_said(&server);
    json_t *text = logged(said, "\"/completion\""), *missing = logged(said, "404");
    ck_assert_ptr_nonnull(text);
    ck_assert_str_eq(json_string_value(json_object_get(text, "client")), "127.0.0.1");
    ck_assert_int_eq(json_integer_value(json_object_get(text, "status")), 200);
    ck_assert_int_eq(json_integer_value(json_object_get(text, "completion_tokens")), 5);
    ck_assert_str_eq(json_string_value(json_object_get(text, "end")), "length");
    ck_assert(json_number_value(json_object_get(text, "seconds")) > 0);
    ck_assert_str_eq(json_string_value(json_object_get(missing, "path")), "/no\nthing");
    ck_assert_ptr_nonnull(json_string_value(json_object_get(missing, "error")));
    ck_assert_ptr_null(strstr(said, "/health"));
    json_decref(text);
    json_decref(missing);
    free(said);
}
END_TEST

/* While the model is being loaded, the server's answers must say so. */
START_TEST(health_says_when_it_is_ready) {
    server = fr_server_begin(DEMO);
    json_t *answer;
    int status = fr_ask_json(server.port, "/health", NULL, &answer);
    ck_assert(status == 200 || status == 503);
    if (status == 503) {
        const json_t *error = fr_json_get(answer, "error");
        ck_assert_str_eq(json_string_value(fr_json_get(error, "message")), "Loading model");
        ck_assert_str_eq(json_string_value(fr_json_get(error, "type")), "unavailable_error");
    }
    json_decref(answer);
    fr_server_await_ready(&server);
    json_t *ready = get("/v1/health");
    ck_assert_str_eq(json_string_value(fr_json_get(ready, "status")), "ok");
    json_decref(ready);
    refused("POST", "/v1/embeddings", "{}", 501, "not_supported_error", "--embeddings");
    refused("GET", "/metrics", NULL, 501, "not_supported_error", "--metrics");
    refused("GET", "/slots", NULL, 501, "not_supported_error", "--slots");
    stop();
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- the page */

static void has_header(const fr_client *client, const char *name, const char *value) {
    char *got = fr_client_header(client, name);
    ck_assert_msg(got && strcmp(got, value) == 0, "%s: %s", name, got);
    free(got);
}

/* Fetches a file of the chat page. Compares it with the file in the sources, byte by byte. */
static void check_page_file(fr_client *client, const char *path, const char *file, const char *type) {
    static char bytes[1 << 18], tag[128];
    char name[128], *body, *policy;
    size_t length, size;
    snprintf(name, sizeof name, "tools/serve/page/%s", file);
    FILE *source = fopen(name, "rb");
    ck_assert_msg(source != NULL, "%s", name);
    size = fread(bytes, 1, sizeof bytes, source);
    fclose(source);
    ck_assert(fr_client_ask(client, "GET", path, NULL, NULL));
    ck_assert_int_eq(fr_client_head(client), 200);
    has_header(client, "Content-Type", type);
    has_header(client, "X-Content-Type-Options", "nosniff");
    has_header(client, "Referrer-Policy", "no-referrer");
    has_header(client, "Cache-Control", "no-cache");
    policy = fr_client_header(client, "Content-Security-Policy");
    static const char *const parts[] = {"default-src 'none'", "script-src 'self';", "style-src 'self';",
                                        "connect-src 'self'", "font-src 'self'",    "frame-ancestors 'none'",
                                        "base-uri 'none'"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(policy && strstr(policy, parts[i]), "%s in %s", parts[i], policy);
    ck_assert_ptr_null(strstr(policy, "unsafe"));
    char *etag = fr_client_header(client, "ETag");
    body = fr_client_body(client, &length);
    ck_assert_uint_eq(length, size);
    ck_assert_int_eq(memcmp(body, bytes, size), 0);
    snprintf(tag, sizeof tag, "If-None-Match: \"x\", W/%s\r\n", etag);
    ck_assert(fr_client_ask(client, "GET", path, tag, NULL));
    ck_assert_int_eq(fr_client_head(client), 304);
    free(fr_client_body(client, &length));
    ck_assert(fr_client_ask(client, "GET", path, "If-None-Match: \"x\"\r\n", NULL));
    ck_assert_int_eq(fr_client_head(client), 200);
    free(fr_client_body(client, &length));
    free(body);
    free(etag);
    free(policy);
}

/* The chat page is served even without a key. It then asks the user for a key. Nothing else is served without a key. */
START_TEST(the_page_is_there) {
    static const char script[] = "text/javascript; charset=utf-8";
    static const char *const scripts[] = {"main",   "api",      "branches", "colours",  "dom",
                                          "files",  "formulas", "markdown", "messages", "pictures",
                                          "rounds", "settings", "store"};
    start(DEMO "--api-key k");
    fr_client *client = fr_client_open(server.port);
    check_page_file(client, "/", "index.html", "text/html; charset=utf-8");
    check_page_file(client, "/page/page.css", "page.css", "text/css; charset=utf-8");
    check_page_file(client, "/page/icon.svg", "icon.svg", "image/svg+xml");
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        char path[64], *file = path + strlen("/page/");
        snprintf(path, sizeof path, "/page/%s.js", scripts[i]);
        check_page_file(client, path, file, script);
    }
    static const char *const libraries[] = {"/page/katex.mjs", "/page/highlight.js", "/page/licences.txt",
                                            "/page/fonts/KaTeX_Main-Regular.woff2"};
    /* These files come from the Debian packages with which this build was made. */
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        ck_assert(fr_client_ask(client, "GET", libraries[i], NULL, NULL));
        ck_assert_int_eq(fr_client_head(client), 200);
        size_t length;
        free(fr_client_body(client, &length));
        ck_assert_uint_gt(length, 10000);
    }
    fr_client_close(client);
    static const char *const closed[] = {"/page/", "/page/none.js", "/page/../serve.c", "/index.html", "/rounds", "//"};
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
        refused("GET", closed[i], NULL, 401, "authentication_error", NULL);
    refused("POST", "/", "{}", 405, INVALID, "GET");
    stop();
}
END_TEST

START_TEST(there_may_be_no_page) {
    start(DEMO "--no-ui");
    refused("GET", "/", NULL, 404, "not_found_error", "--no-ui");
    refused("GET", "/page/main.js", NULL, 404, "not_found_error", "--no-ui");
    refused("GET", "/page/none.js", NULL, 404, "not_found_error", NULL);
    refused("GET", "/rounds", NULL, 501, "not_supported_error", "--slots");
    stop();
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- pictures */

/* Returns a file as a data: URI. The caller frees it. */
static char *data_uri(const char *path) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text;
    size_t size;
    FILE *file = fopen(path, "r"), *out = open_memstream(&text, &size);
    unsigned char b[3];
    ck_assert_ptr_nonnull(file);
    fputs("data:image/png;base64,", out);
    for (size_t got; (got = fread(b, 1, 3, file)) > 0; memset(b, 0, 3)) {
        if (got < 3) memset(b + got, 0, 3 - got);
        fprintf(out, "%c%c", digits[b[0] >> 2], digits[(b[0] & 3) << 4 | b[1] >> 4]);
        fputc(got > 1 ? digits[(b[1] & 15) << 2 | b[2] >> 6] : '=', out);
        fputc(got > 2 ? digits[b[2] & 63] : '=', out);
    }
    fclose(file);
    fclose(out);
    return text;
}

static json_t *picture_body(const char *url) {
    return fr_body("{s:[{s:s, s:[{s:s, s:{s:s}}, {s:s, s:s}]}], s:i, s:i}", "messages", "role", "user", "content",
                   "type", "image_url", "image_url", "url", url, "type", "text", "text",
                   "Text Recognition:", "max_tokens", 8, "temperature", 0);
}

/* The server recognizes the format of a picture by the picture's bytes. A request must never be able to name a file on
 * the server's machine. */
START_TEST(pictures_come_as_data) {
    char *uri = data_uri("tests/data/images/png-2-8.png"), *other = data_uri("tests/data/images/png-0-8.png");
    start(PICTURES "-np 2");
    json_t *first = say(CHAT, picture_body(uri));
    json_t *again = say(CHAT, picture_body(uri));
    fr_same_said(first, again, "a picture again");
    json_t *body = picture_body(other), *answer;
    json_object_set_new(body, "stream", json_true());
    json_decref(say(CHAT, json_incref(body)));
    static const char *const bad[] = {"tests/data/images/png-2-8.png", "file:///etc/passwd",
                                      "http://127.0.0.1/a.png",        "data:image/png;base64,AAAA",
                                      "data:image/png;base64,=",       "data:text/plain,a"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *asked = picture_body(bad[i]);
        ck_assert_int_eq(fr_ask_json(server.port, CHAT, asked, &answer), 400);
        json_decref(asked);
        json_decref(answer);
    }
    json_decref(body);
    json_decref(first);
    json_decref(again);
    free(uri);
    free(other);
    stop();
}
END_TEST

/* Draws a disc or a square on a background with a gradient. Returns the drawing as a PNG in base64. The caller frees
 * it. */
static char *draw(bool round, int width, int height) {
    char path[] = "/tmp/forerun-drawing-XXXXXX";
    unsigned char *rgb = calloc((size_t)(width * height), 3);
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = PNG_FORMAT_RGB};
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int across = x - width / 2, down = y - height / 2, half = height / 3;
            bool inside = round ? across * across + down * down < half * half : abs(across) < half && abs(down) < half;
            unsigned char *pixel = rgb + 3 * (y * width + x);
            pixel[0] = inside ? 220 : (unsigned char)(2 * y);
            pixel[1] = inside ? 30 : 200;
            pixel[2] = inside ? 40 : (unsigned char)(2 * x);
        }
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert(png_image_write_to_file(&image, path, 0, rgb, 0, NULL));
    char *uri = data_uri(path), *data = strdup(strchr(uri, ',') + 1);
    free(uri);
    free(rgb);
    close(fd);
    unlink(path);
    return data;
}

enum { DIALECTS = 3 };
static const char *const dialects[DIALECTS] = {CHAT, "/v1/responses", "/v1/messages"};

/* Makes a request in the format of a dialect (the API of another server), with two pictures between texts. */
static json_t *two_pictures(int dialect, const char *one, const char *other) {
    static const char *const forms[DIALECTS] = {
        "{'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,%s'}}",
        "{'type': 'input_image', 'image_url': 'data:image/png;base64,%s'}",
        "{'type': 'image', 'source': {'type': 'base64', 'media_type': 'image/png', 'data': '%s'}}"};
    static const char *const rests[DIALECTS] = {"'messages': [%s], 'max_tokens': 8",
                                                "'input': [%s], 'max_output_tokens': 8",
                                                "'messages': [%s], 'max_tokens': 8"};
    const char *type = dialect == 1 ? "input_text" : "text";
    size_t room = strlen(one) + strlen(other) + 1024;
    char *first = malloc(room), *second = malloc(room), *turn = malloc(2 * room), *body = malloc(2 * room);
    snprintf(first, room, forms[dialect], one);
    snprintf(second, room, forms[dialect], other);
    snprintf(turn, 2 * room,
             "{'role': 'user', 'content': [{'type': '%s', 'text': 'Is'}, %s, {'type': '%s', 'text': 'or'}, %s, "
             "{'type': '%s', 'text': 'round?'}]}",
             type, first, type, second, type);
    size_t used = (size_t)snprintf(body, 2 * room, "{'temperature': 0, ");
    used += (size_t)snprintf(body + used, 2 * room - used, rests[dialect], turn);
    snprintf(body + used, 2 * room - used, "}");
    for (char *at = body; *at; at++) *at = *at == '\'' ? '"' : *at;
    json_t *value = json_loads(body, 0, NULL);
    ck_assert_ptr_nonnull(value);
    free(first);
    free(second);
    free(turn);
    free(body);
    return value;
}

/* Asks about two pictures in a dialect. Returns the text of the reply. The caller frees it. */
static char *said_by(int dialect, const char *one, const char *other) {
    json_t *body = two_pictures(dialect, one, other), *answer;
    const char *text = NULL;
    int status = fr_ask_json(server.port, dialects[dialect], body, &answer);
    ck_assert_msg(status == 200, "%s: %d", dialects[dialect], status);
    if (dialect == 0)
        json_unpack(answer, "{s:[{s:{s:s}}]}", "choices", "message", "content", &text);
    else if (dialect == 1)
        json_unpack(answer, "{s:[{s:[{s:s}]}]}", "output", "content", "text", &text);
    else
        json_unpack(answer, "{s:[{s:s}]}", "content", "text", &text);
    ck_assert_msg(text != NULL, "%s: no text", dialects[dialect]);
    char *copy = strdup(text);
    json_decref(body);
    json_decref(answer);
    return copy;
}

static double tower_runs(void) {
    return metric("forerun:vision_tower_runs_total");
}

/* A question about two drawings must have the same answer in all dialects. If the drawings are swapped, the answer must
 * change. The vision encoder must run once for each drawing. */
START_TEST(drawings_in_every_dialect) {
    char *disc = draw(true, 90, 60), *square = draw(false, 64, 100);
    start(PICTURES "-np 2 --metrics");
    char *expected = said_by(0, disc, square), *swapped = said_by(0, square, disc);
    ck_assert_str_ne(expected, swapped);
    ck_assert(tower_runs() == 2);
    for (int dialect = 0; dialect < DIALECTS; dialect++) {
        char *text = said_by(dialect, disc, square), *other = said_by(dialect, square, disc);
        ck_assert_str_eq(text, expected);
        ck_assert_str_eq(other, swapped);
        free(text);
        free(other);
    }
    const char *const orders[][2] = {{disc, square}, {square, disc}};
    char *of_ollama[2];
    for (int i = 0; i < 2; i++) {
        json_t *body = json_pack("{s:b, s:{s:i, s:i}, s:[{s:s, s:s, s:[s, s]}]}", "stream", 0, "options", "num_predict",
                                 8, "temperature", 0, "messages", "role", "user", "content", "round?", "images",
                                 orders[i][0], orders[i][1]),
               *answer;
        const char *text = NULL;
        ck_assert_int_eq(fr_ask_json(server.port, "/api/chat", body, &answer), 200);
        ck_assert_int_eq(json_unpack(answer, "{s:{s:s}}", "message", "content", &text), 0);
        of_ollama[i] = strdup(text);
        json_decref(body);
        json_decref(answer);
    }
    ck_assert_str_ne(of_ollama[0], of_ollama[1]);
    ck_assert(tower_runs() == 2);
    char *third = draw(true, 91, 60), *text = said_by(2, third, disc);
    ck_assert(tower_runs() == 3);
    stop();
    free(of_ollama[0]);
    free(of_ollama[1]);
    free(third);
    free(text);
    free(expected);
    free(swapped);
    free(disc);
    free(square);
}
END_TEST

static void wait_for_requests(double wanted) {
    for (int i = 0; i < 3000 && metric("requests_processing") != wanted; i++) usleep(10000);
    ck_assert(metric("requests_processing") == wanted);
}

/* The vision encoder takes a long time for a large picture. Meanwhile other texts must begin and end. When the
 * picture's client disconnects, the encoder must stop. */
START_TEST(a_picture_holds_up_no_text) {
    char *drawing = draw(true, 2000, 1500);
    size_t room = strlen(drawing) + 32;
    char *uri = malloc(room);
    snprintf(uri, room, "data:image/png;base64,%s", drawing);
    start(PICTURES "-np 3 --metrics");
    json_t *body = picture_body(uri), *answer;
    char *line = json_dumps(body, 0);
    fr_client *client = fr_client_open(server.port);
    ck_assert(client && fr_client_ask(client, "POST", CHAT, NULL, line));
    wait_for_requests(1);
    json_t *text = fr_body("{s:s, s:i}", "prompt", "The river", "max_tokens", 4);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(fr_ask_json(server.port, COMPLETION, text, &answer), 200);
        json_decref(answer);
    }
    ck_assert_msg(tower_runs() == 0, "the texts had to wait for the picture");
    ck_assert(metric("requests_processing") == 1);
    fr_client_abort(client);
    wait_for_requests(0);
    ck_assert(tower_runs() == 0);
    stop();
    free(line);
    free(uri);
    free(drawing);
    json_decref(text);
    json_decref(body);
}
END_TEST

FR_SUITE("serve") {
    TCase *demo = tcase_create("demo"), *others = tcase_create("others");
    tcase_set_timeout(demo, 300);
    tcase_set_timeout(others, 300);
    tcase_add_checked_fixture(demo, start_demo, stop);
    tcase_add_loop_test(demo, answers_are_those_of_batch, 0, 3);
    tcase_add_loop_test(demo, further_choices_draw_with_further_seeds, 0, 3);
    tcase_add_test(demo, timings_count_drafts);
    tcase_add_test(demo, models_and_properties_are_told);
    tcase_add_test(demo, texts_become_tokens_and_texts_again);
    tcase_add_test(demo, metrics_and_slots_count);
    tcase_add_test(demo, rounds_say_whose_rows_they_had);
    tcase_add_test(demo, what_is_no_request_is_refused);
    tcase_add_test(demo, what_is_not_built_is_refused_by_name);
    tcase_add_test(demo, tools_that_must_be_called_are);
    tcase_add_test(demo, prompts_are_echoed_with_their_log_probabilities);
    tcase_add_test(demo, probabilities_of_draws_are_told);
    tcase_add_test(demo, the_likeliest_choices_are_answered);
    tcase_add_test(demo, time_is_a_limit);
    tcase_add_test(demo, a_prompt_beyond_the_context_is_refused);
    tcase_add_test(others, an_echoed_prompt_holds_up_no_stream);
    tcase_add_test(others, the_page_is_there);
    tcase_add_test(others, there_may_be_no_page);
    tcase_add_test(others, keys_come_from_everywhere);
    tcase_add_test(others, keys_are_read_again);
    tcase_add_test(others, requests_are_logged);
    tcase_add_test(others, health_says_when_it_is_ready);
    tcase_add_test(others, pictures_come_as_data);
    tcase_add_test(others, drawings_in_every_dialect);
    tcase_add_test(others, a_picture_holds_up_no_text);
    suite_add_tcase(suite, demo);
    suite_add_tcase(suite, others);
}
