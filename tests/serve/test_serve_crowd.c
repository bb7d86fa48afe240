/* Tests many clients of the server at the same time. Each request must get the answer that it gets alone, even if
 * memory is too small for all texts together. If the queue is full, a request is refused with an error. If a client
 * disconnects, its place goes to the next client. A slow reader or a long prompt must not delay other clients. */
/* suite: threads native */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/asking.h"
#include "tests/support/command.h"
#include "tests/support/server.h"
#include "tests/support/suite.h"

/* The engine has one thread. Tests use this if the engine only has to be busy. */
#define ALONE DEMO "-t 1 "

enum { CONNECTIONS = 8, CONTEXT = 4096 /* the context of the demo model; a text ends when it is full */ };

static fr_server server;

/* ----------------------------------------------------------------------------------------------------------- crowds */

typedef struct crowd {
    uint16_t port;
    json_t *requests, *alone; /* alone: the answers when each request is sent alone */
    size_t *order, count;
    uint64_t seed;
    atomic_size_t next, answered, left;
    pthread_mutex_t lock;
    char *fault; /* the first fault that was found */
} crowd;

static void blame(crowd *c, size_t index, const json_t *body, const json_t *got) {
    pthread_mutex_lock(&c->lock);
    if (!c->fault) {
        char *alone = json_dumps(json_array_get(c->alone, index), JSON_SORT_KEYS), *asked = json_dumps(body, 0);
        char *beside = got ? json_dumps(got, JSON_SORT_KEYS) : strdup("nothing");
        size_t size = strlen(asked) + strlen(alone) + strlen(beside) + 64;
        c->fault = malloc(size);
        snprintf(c->fault, size, "%s: not\n%s\nbut\n%s", asked, alone, beside);
        free(alone);
        free(asked);
        free(beside);
    }
    pthread_mutex_unlock(&c->lock);
}

/* Disconnects in the middle of a stream, by closing the connection properly or abruptly. */
static void leave(crowd *c, uint64_t *state, const char *path, json_t *body) {
    int status;
    json_object_set_new(body, "stream", json_true());
    json_object_set_new(body, "max_tokens", json_integer(200));
    fr_events events = {.client = fr_ask_begin(c->port, path, body, &status)};
    if (status == 200)
        for (size_t i = fr_chance(state, 6); i > 0; i--) json_decref(fr_events_next(&events));
    if (events.client && fr_chance(state, 2)) {
        fr_client_abort(events.client);
        events.client = NULL;
    }
    fr_events_close(&events);
    c->left++;
}

static void send_garbage(crowd *c, uint64_t *state) {
#define POST "POST /completion HTTP/1.1\r\nHost: localhost\r\n"
    static const char *const garbage[] = {POST "Content-Length: 50\r\n\r\n{\"prompt\":", "GARBAGE\r\n\r\n",
                                          "\x16\x03\x01\x02", POST "Content-Length: 9\r\n\r\n{\"a\": [[["};
    const char *bytes = garbage[fr_chance(state, 4)];
    fr_client *client = fr_client_open(c->port);
    if (!client) return;
    fr_client_send(client, bytes, strlen(bytes));
    fr_client_closed(client, 1);
    fr_client_close(client);
}

static void ask_again(crowd *c, fr_client **client, uint64_t *state, size_t index) {
    const json_t *request = json_array_get(c->requests, index);
    const char *path = json_string_value(json_object_get(request, "path"));
    json_t *body = fr_ask_otherwise(state, json_object_get(request, "body"));
    if (fr_chance(state, 6) == 0) leave(c, state, path, body);
    if (fr_chance(state, 6) == 0) send_garbage(c, state);
    json_decref(body);
    body = fr_ask_otherwise(state, json_object_get(request, "body"));
    json_t *said = *client ? fr_ask_on(*client, path, body) : NULL;
    if (!json_equal(json_array_get(c->alone, index), said)) blame(c, index, body, said);
    c->answered += said != NULL;
    if (!said || fr_chance(state, 8) == 0) {
        fr_client_close(*client);
        *client = fr_client_open(c->port);
    }
    json_decref(said);
    json_decref(body);
}

static void *run_client(void *context) {
    crowd *c = context;
    fr_client *client = fr_client_open(c->port);
    for (size_t at; (at = c->next++) < c->count;) {
        uint64_t state = c->seed + 977 * (at + 1);
        ask_again(c, &client, &state, c->order[at]);
    }
    fr_client_close(client);
    return NULL;
}

static void make_longer(json_t *body, size_t most) {
    json_object_set_new(body, "max_tokens", json_integer((json_int_t)most));
    json_object_set_new(body, "ignore_eos", json_true());
    json_object_del(body, "stop");
    /* with one of these members a text must be able to end, but ignore_eos forbids ending */
    json_object_del(body, "response_format");
    json_object_del(body, "json_schema");
    json_object_del(body, "tool_choice");
}

static void ask_alone(crowd *c, bool longer) {
    fr_client *client = fr_client_open(c->port);
    for (size_t i = 0; i < c->count; i++) {
        json_t *request = fr_draw_request(&c->seed), *body = json_object_get(request, "body");
        const char *path = json_string_value(json_object_get(request, "path"));
        if (longer) make_longer(body, 50 + fr_chance(&c->seed, 40));
        json_t *said = fr_ask_on(client, path, body);
        ck_assert_msg(said && !json_object_get(said, "error"), "%s: %s", json_dumps(request, 0), json_dumps(said, 0));
        json_array_append_new(c->requests, request);
        json_array_append_new(c->alone, said);
    }
    fr_client_close(client);
}

static void shuffle(crowd *c) {
    for (size_t i = 0; i < c->count; i++) c->order[i] = i;
    for (size_t i = c->count; i > 1; i--) {
        size_t other = fr_chance(&c->seed, i), kept = c->order[other];
        c->order[other] = c->order[i - 1];
        c->order[i - 1] = kept;
    }
}

static void ask_alone_and_together(size_t count, uint64_t seed, bool longer) {
    pthread_t clients[CONNECTIONS];
    crowd c = {.port = server.port,
               .requests = json_array(),
               .alone = json_array(),
               .order = calloc(count, sizeof(size_t)),
               .count = count,
               .seed = seed,
               .lock = PTHREAD_MUTEX_INITIALIZER};
    ask_alone(&c, longer);
    shuffle(&c);
    for (size_t i = 0; i < CONNECTIONS; i++) ck_assert_int_eq(pthread_create(&clients[i], NULL, run_client, &c), 0);
    for (size_t i = 0; i < CONNECTIONS; i++) pthread_join(clients[i], NULL);
    ck_assert_msg(!c.fault, "%s", c.fault);
    ck_assert_uint_eq(c.answered, count);
    ck_assert_uint_gt(c.left, 0);
    json_decref(c.requests);
    json_decref(c.alone);
    free(c.order);
}

START_TEST(each_answer_is_the_same_beside_others) {
    server = fr_server_start(DEMO DEMO_DRAFTER "-np 4");
    ask_alone_and_together(60, 20261127, false);
    fr_server_stop(&server);
}
END_TEST

/* Returns the least memory for keys and values with which the server starts. With too little memory it refuses to
 * start, and its error line states this number. */
static long long least_memory(const char *options) {
    char line[256];
    snprintf(line, sizeof line, "serve --port 0 %s --kv-memory 1", options);
    fr_command c = fr_command_run(line, NULL);
    const char *least = strstr(c.err, "at least ");
    ck_assert_msg(c.status == 1 && least, "%d: %s", c.status, c.err);
    long long bytes = strtoll(least + 9, NULL, 10);
    fr_command_free(&c);
    return bytes;
}

/* There is memory for one text that fills the context. So when four texts run at the same time, they must wait for each
 * other. */
START_TEST(texts_without_memory_wait_and_are_the_same) {
#define SMALL DEMO DEMO_DRAFTER "-np 4 -c 256"
    server = fr_server_start(SMALL " --kv-memory %lld", least_memory(SMALL));
    ask_alone_and_together(24, 46, true);
    fr_server_stop(&server);
}
END_TEST

/* A text has ended, but the server still keeps it in more than half of the memory. Another text waits for memory. This
 * second text must be completed even if no further request comes. */
START_TEST(a_text_without_memory_goes_on_by_itself) {
#define PAIR DEMO "-t 1 -np 2 -c 512"
    server = fr_server_start(PAIR " --kv-memory %lld", least_memory(PAIR));
    fr_events texts[2];
    for (int i = 0; i < 2; i++) {
        json_t *body = fr_body("{s:s, s:i, s:i, s:b, s:b, s:i}", "prompt", i ? "The sea" : "The river", "n_predict",
                               i ? 480 : 400, "temperature", 0, "ignore_eos", 1, "stream", 1, "speculative.n_max", 0);
        texts[i] = fr_ask_stream(server.port, NATIVE, body);
        json_decref(body);
    }
    for (int i = 0; i < 2; i++) {
        json_decref(fr_events_said(&texts[i]));
        ck_assert_msg(texts[i].whole, "text %d has no end", i);
        fr_events_close(&texts[i]);
    }
    fr_server_stop(&server);
}
END_TEST

/* -------------------------------------------------------------------------------------------------- queue and slots */

/* Returns the body of a request whose text is longer than any test needs. */
static json_t *endless(void) {
    return fr_body("{s:s, s:i, s:i, s:b, s:b, s:i}", "prompt", "The river", "n_predict", -1, "temperature", 0,
                   "ignore_eos", 1, "stream", 1, "speculative.n_max", 0);
}

static json_t *brief(void) {
    return fr_body("{s:s, s:i, s:i}", "prompt", "The river", "n_predict", 4, "temperature", 0);
}

static void await_metric(const char *name, double value) {
    for (int i = 0; fr_client_metric(server.port, name) != value; i++) {
        ck_assert_msg(i < 4000, "%s stays %g", name, fr_client_metric(server.port, name));
        usleep(5000);
    }
}

/* Starts a stream. Returns as soon as the stream's text has begun. */
static fr_events occupy(void) {
    json_t *body = endless();
    fr_events events = fr_ask_stream(server.port, NATIVE, body);
    json_t *first = fr_events_next(&events);
    ck_assert_ptr_nonnull(first);
    json_decref(first);
    json_decref(body);
    return events;
}

static fr_client *send_brief(void) {
    json_t *body = brief();
    char *text = json_dumps(body, 0);
    fr_client *client = fr_client_open(server.port);
    ck_assert(client && fr_client_ask(client, "POST", NATIVE, NULL, text));
    json_decref(body);
    free(text);
    return client;
}

static void answers_now(void) {
    json_t *body = brief(), *said = fr_ask_ok(server.port, NATIVE, body);
    json_decref(said);
    json_decref(body);
}

START_TEST(who_comes_beyond_the_queue_is_told) {
    server = fr_server_start(ALONE "-np 2 --max-queue 1 --metrics");
    fr_events first = occupy(), second = occupy();
    fr_client *third = send_brief();
    await_metric("requests_deferred", 1);
    for (int i = 0; i < 3; i++) {
        fr_client *fourth = send_brief();
        ck_assert_int_eq(fr_client_head(fourth), 503);
        char *again = fr_client_header(fourth, "Retry-After"), *text = fr_client_body(fourth, NULL);
        ck_assert(again && strtol(again, NULL, 10) > 0);
        ck_assert_msg(strstr(text, "unavailable_error") != NULL, "%s", text);
        free(again);
        free(text);
        fr_client_close(fourth);
    }
    ck_assert(fr_client_metric(server.port, "requests_processing") == 2);
    fr_events_close(&first);
    ck_assert_int_eq(fr_client_head(third), 200);
    fr_client_close(third);
    answers_now();
    fr_events_close(&second);
    answers_now();
    fr_server_stop(&server);
}
END_TEST

/* The server has room for as many requests as it has slots and places in the queue. It must accept this many requests,
 * however quickly they come. */
START_TEST(no_place_is_refused_that_is_free) {
    server = fr_server_start(ALONE "-np 3 --max-queue 2");
    fr_client *clients[5];
    for (int i = 0; i < 5; i++) clients[i] = send_brief();
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(fr_client_head(clients[i]), 200);
        fr_client_close(clients[i]);
    }
    fr_server_stop(&server);
}
END_TEST

/* Disconnects 400 ms after the request. If the client closed the connection right after the request, this could also
 * mean that it has nothing more to send and waits for the answer. */
static void vanish(fr_client *client, bool properly) {
    usleep(400000);
    if (properly)
        fr_client_close(client);
    else
        fr_client_abort(client);
}

START_TEST(who_vanishes_leaves_the_place) {
    server = fr_server_start(ALONE "-np 1 --metrics --slots");
    fr_events stream = occupy();
    fr_client *waits = send_brief();
    await_metric("requests_deferred", 1);
    vanish(waits, _i);
    await_metric("requests_deferred", 0);
    ck_assert(fr_client_metric(server.port, "requests_processing") == 1);
    fr_client *next = send_brief();
    await_metric("requests_deferred", 1);
    vanish(stream.client, _i);
    stream.client = NULL;
    ck_assert_int_eq(fr_client_head(next), 200);
    fr_client_close(next);
    await_metric("requests_processing", 0);
    json_t *slots;
    ck_assert_int_eq(fr_ask_json(server.port, "/slots", NULL, &slots), 200);
    ck_assert(json_is_false(fr_json_get(json_array_get(slots, 0), "is_processing")));
    ck_assert(fr_client_metric(server.port, "n_tokens_max") < CONTEXT);
    json_decref(slots);
    fr_events_close(&stream);
    fr_server_stop(&server);
}
END_TEST

/* Several prompts with the same beginning come at the same time. One of them must be run whole. For each of the others,
 * only the ids after the shared pages may be run. */
START_TEST(one_beginning_is_run_once) {
    enum { BEGINNING = 500, BEHIND_MAX = 64 + 8 };
    server = fr_server_start(ALONE "-np 4 -c 1024");
    fr_client *clients[4];
    size_t whole = 0;
    for (int i = 0; i < 4; i++) {
        json_t *ids = json_array(), *body = fr_body("{s:o, s:i, s:i}", "prompt", ids, "n_predict", 2, "temperature", 0);
        for (int id = 0; id < BEGINNING; id++) json_array_append_new(ids, json_integer(10 + id % 200));
        for (int id = 0; id < 4; id++) json_array_append_new(ids, json_integer(20 + i));
        char *text = json_dumps(body, 0);
        clients[i] = fr_client_open(server.port);
        ck_assert(clients[i] && fr_client_ask(clients[i], "POST", NATIVE, NULL, text));
        json_decref(body);
        free(text);
    }
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(fr_client_head(clients[i]), 200);
        char *text = fr_client_body(clients[i], NULL);
        json_t *said = json_loads(text, 0, NULL), *timings = json_object_get(said, "timings");
        json_int_t ran = json_integer_value(fr_json_get(timings, "prompt_n"));
        whole += ran > BEGINNING;
        ck_assert_msg(ran > BEGINNING || ran <= BEHIND_MAX, "%s", text);
        json_decref(said);
        free(text);
        fr_client_close(clients[i]);
    }
    ck_assert_uint_eq(whole, 1);
    fr_server_stop(&server);
}
END_TEST

/* Sends a chat request. Returns its number of cached tokens; "usage" and "timings" must both have this number. Sets
 * *prompt to the number of prompt tokens. */
static json_int_t ask_chat(json_t *messages, bool reuses, json_int_t *prompt) {
    json_t *said, *body = fr_body("{s:O, s:i, s:i, s:b}", "messages", messages, "max_tokens", 4, "temperature", 0,
                                  "cache_prompt", reuses);
    ck_assert_int_eq(fr_ask_json(server.port, "/v1/chat/completions", body, &said), 200);
    const json_t *usage = fr_json_get(said, "usage"), *timings = fr_json_get(said, "timings");
    json_int_t cached = json_integer_value(fr_json_get(fr_json_get(usage, "prompt_tokens_details"), "cached_tokens"));
    *prompt = json_integer_value(fr_json_get(usage, "prompt_tokens"));
    ck_assert_int_eq(cached, json_integer_value(fr_json_get(timings, "cache_n")));
    ck_assert_int_eq(*prompt, cached + json_integer_value(fr_json_get(timings, "prompt_n")));
    json_decref(body);
    json_decref(said);
    return cached;
}

/* The server has one slot. Each turn of a conversation must reuse the previous turn, even if a request for a title
 * comes in between. If a request switches reuse off, its whole prompt must be run. */
START_TEST(one_slot_goes_on_with_a_conversation) {
    server = fr_server_start(DEMO "-t 1 -np 1 -c 1024");
    json_t *messages = json_array(), *title = json_pack("[{s:s, s:s}]", "role", "user", "content", "A title, please.");
    /* number of tokens of the last prompt; the next prompt shares all except those that begin the reply */
    json_int_t last = 0;
    for (int turn = 0; turn < 4; turn++) {
        json_int_t prompt, before = 0, short_prompt;
        const char *asked = turn ? "And then?" : "Tell me what the cat on the mat saw when the dog came in at last.";
        json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "user", "content", asked));
        json_int_t cached = ask_chat(messages, true, &prompt);
        ck_assert_msg(cached >= last - 16 && (turn || cached == 0), "of %lld tokens %lld", (long long)prompt,
                      (long long)cached);
        last = prompt;
        ck_assert_int_eq(ask_chat(messages, false, &before), 0);
        ck_assert_int_eq(ask_chat(messages, true, &before), prompt - 1);
        ask_chat(title, true, &short_prompt);
        json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "assistant", "content", "It saw much."));
    }
    json_decref(title);
    json_decref(messages);
    fr_server_stop(&server);
}
END_TEST

/* A client has requested a whole answer and disconnects. All choices of its request must end, even a choice that has no
 * slot yet. */
START_TEST(who_vanishes_takes_all_choices_along) {
    server = fr_server_start(ALONE "-np 2 --metrics");
    json_t *body = endless();
    json_object_set_new(body, "n", json_integer(3));
    json_object_del(body, "stream");
    char *text = json_dumps(body, 0);
    fr_client *client = fr_client_open(server.port);
    ck_assert(fr_client_ask(client, "POST", COMPLETION, NULL, text));
    await_metric("requests_processing", 1);
    vanish(client, true);
    answers_now();
    await_metric("requests_processing", 0);
    await_metric("requests_deferred", 0);
    ck_assert(fr_client_metric(server.port, "n_tokens_max") < CONTEXT);
    json_decref(body);
    free(text);
    fr_server_stop(&server);
}
END_TEST

/* One request may have choices in all slots. */
START_TEST(no_slot_is_free_where_choices_have_all) {
    server = fr_server_start(ALONE "-np 2 --slots");
    json_t *body = endless();
    ck_assert_int_eq(fr_client_once(server.port, "GET", "/slots?fail_on_no_slot=1", NULL, NULL, NULL), 200);
    json_object_set_new(body, "n", json_integer(2));
    fr_events events = fr_ask_stream(server.port, NATIVE, body);
    for (json_int_t index = 0; index == 0;) {
        json_t *event = fr_events_next(&events);
        ck_assert_ptr_nonnull(event);
        index = json_integer_value(fr_json_get(event, "index"));
        json_decref(event);
    }
    ck_assert_int_eq(fr_client_once(server.port, "GET", "/slots?fail_on_no_slot=1", NULL, NULL, NULL), 503);
    ck_assert_int_eq(fr_client_once(server.port, "GET", "/slots", NULL, NULL, NULL), 200);
    fr_events_close(&events);
    json_decref(body);
    fr_server_stop(&server);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------- pace */

/* The client reads almost nothing for a while, and then the rest of the answer. The answer must be complete. If FULL is
 * set in the environment, the answer is so long that generation must wait for the reader. */
START_TEST(a_slow_reader_holds_nobody_up) {
    server = fr_server_start(ALONE "-np 2 -c %d", getenv("FULL") ? 4096 : 512);
    int status;
    char byte;
    json_t *body = endless();
    json_object_set_new(body, "n_probs", json_integer(20));
    json_object_set_new(body, "stream", json_false());
    json_t *alone = fr_ask_ok(server.port, NATIVE, body);
    json_object_set_new(body, "stream", json_true());
    fr_client *client = fr_ask_begin(server.port, NATIVE, body, &status);
    fr_events events = {.client = client, .bytes = calloc(32, 1)};
    ck_assert_int_eq(status, 200);
    for (int i = 0; i < 20; i++) {
        answers_now();
        ck_assert_int_eq(fr_client_read(client, &byte, 1), 1);
        events.bytes[events.size++] = byte;
    }
    json_t *said = fr_events_said(&events);
    ck_assert(events.whole);
    json_object_del(json_object_get(alone, "0"), "tokens");
    json_object_del(json_object_get(said, "0"), "tokens");
    fr_same_said(alone, said, "a slow reader's");
    json_decref(alone);
    json_decref(said);
    json_decref(body);
    fr_events_close(&events);
    fr_server_stop(&server);
}
END_TEST

typedef struct reading {
    fr_events events;
    atomic_size_t count;
    atomic_bool stop;
} reading;

static void *run_reading(void *context) {
    reading *r = context;
    for (json_t *event; !r->stop && (event = fr_events_next(&r->events)); json_decref(event)) r->count++;
    return NULL;
}

/* One forward pass could run a thousand ids of this prompt. While other texts are running, the prompt must be run in
 * small pieces. */
START_TEST(a_long_prompt_lets_others_go_on) {
    server = fr_server_start(ALONE "-np 2 --chunk 1024");
    json_t *ids = json_array();
    for (int i = 0; i < 3000; i++) json_array_append_new(ids, json_integer(300 + i % 7 + i % 5));
    json_t *body = fr_body("{s:o, s:i, s:b, s:i}", "prompt", ids, "n_predict", 1, "stream", 1, "temperature", 0);
    reading r = {.events = occupy()};
    pthread_t reader;
    ck_assert_int_eq(pthread_create(&reader, NULL, run_reading, &r), 0);
    while (r.count < 20) usleep(1000);
    size_t before = r.count;
    fr_events events = fr_ask_stream(server.port, NATIVE, body);
    size_t between = r.count - before;
    r.stop = true;
    pthread_join(reader, NULL);
    ck_assert_msg(between > 24, "%zu ids of the other text while the prompt was run", between);
    fr_events_close(&events);
    fr_events_close(&r.events);
    json_decref(body);
    fr_server_stop(&server);
}
END_TEST

FR_SUITE("serve_crowd") {
    TCase *same = tcase_create("same"), *places = tcase_create("places"), *pace = tcase_create("pace");
    suite_add_tcase(suite, same);
    suite_add_tcase(suite, places);
    suite_add_tcase(suite, pace);
    tcase_set_timeout(same, 300);
    tcase_set_timeout(places, 300);
    tcase_set_timeout(pace, 300);
    tcase_add_test(same, each_answer_is_the_same_beside_others);
    tcase_add_test(same, texts_without_memory_wait_and_are_the_same);
    tcase_add_test(same, a_text_without_memory_goes_on_by_itself);
    tcase_add_test(places, who_comes_beyond_the_queue_is_told);
    tcase_add_test(places, no_place_is_refused_that_is_free);
    tcase_add_test(places, one_beginning_is_run_once);
    tcase_add_test(places, one_slot_goes_on_with_a_conversation);
    tcase_add_loop_test(places, who_vanishes_leaves_the_place, 0, 2);
    tcase_add_test(places, no_slot_is_free_where_choices_have_all);
    tcase_add_test(places, who_vanishes_takes_all_choices_along);
    tcase_add_test(pace, a_slow_reader_holds_nobody_up);
    tcase_add_test(pace, a_long_prompt_lets_others_go_on);
}
