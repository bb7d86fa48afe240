/* Tests tools/serve/answer*, which answers requests whose choices are still running. The exchanges of this test store
 * what they would send. The members of objects are those of OpenAI's API reference ("The chat completion object", "The
 * chat completion chunk object", "The completion object") and of llama.cpp's server. */
/* suite: links=server-answer */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/brief.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tools/jobs/job_parts.h"
#include "tools/serve/answer.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define DEMO            "tools/demo/target"
#define GEMMA           "tests/data/models/gemma4-e" /* a model whose tokenizer has marks for reasoning and calls */

/* ------------------------------------------------------------------------------------------------- stored exchanges */

struct fr_http_exchange {
    unsigned status; /* status of a whole answer; 0: there is none yet */
    json_t *whole;
    char *text, type[64]; /* body and content type of a stream */
    size_t length, ends;
    FILE *out;
};

void fr_http_exchange_set_header(fr_http_exchange *exchange, const char *name, const char *value) {
    (void)value;
    ck_assert_ptr_null(exchange->out);
    ck_assert_str_eq(name, "Cache-Control");
}

void fr_http_exchange_answer_json(fr_http_exchange *exchange, unsigned status, json_t *value) {
    ck_assert_ptr_null(exchange->out);
    ck_assert_uint_eq(exchange->status, 0);
    exchange->status = status;
    exchange->whole = value;
    exchange->ends++;
}

bool fr_http_exchange_gone(fr_http_exchange *exchange) {
    (void)exchange;
    return false;
}

void fr_http_exchange_begin(fr_http_exchange *exchange, const char *type) {
    ck_assert_ptr_null(exchange->out);
    ck_assert_uint_eq(exchange->status, 0);
    snprintf(exchange->type, sizeof exchange->type, "%s", type);
    exchange->out = open_memstream(&exchange->text, &exchange->length);
}

void fr_http_exchange_write(fr_http_exchange *exchange, const char *bytes, size_t length) {
    ck_assert_uint_eq(exchange->ends, 0);
    fwrite(bytes, 1, length, exchange->out);
}

void fr_http_exchange_end(fr_http_exchange *exchange) {
    fflush(exchange->out);
    exchange->ends++;
}

/* --------------------------------------------------------------------------------------------------------- requests */

static struct {
    fr_arguments args;
    fr_loaded loaded;
    fr_job_setting setting;
} served;

static void open_model(const char *path, const char *drafter, int64_t context) {
    served.args.text[FR_ARG_MODEL] = path;
    served.args.number[FR_ARG_PREDICT] = 24;
    served.loaded.options = fr_options_new();
    served.setting = (fr_job_setting){.args = &served.args, .loaded = &served.loaded, .fingerprint = "fr1-x"};
    served.setting.file = "x";
    require(fr_options_set(served.loaded.options, FR_OPT_CONTEXT, context));
    require(fr_options_set(served.loaded.options, FR_OPT_THREADS, 1));
    require(fr_model_open(path, served.loaded.options, &served.loaded.model));
    if (drafter) require(fr_drafter_open(drafter, served.loaded.model, NULL, &served.loaded.drafter));
    require(
        fr_engine_open(served.loaded.model, served.loaded.drafter, served.loaded.options, 4, &served.setting.engine));
}

static void close_model(void) {
    fr_engine_close(served.setting.engine);
    fr_drafter_close(served.loaded.drafter);
    fr_model_close(served.loaded.model);
    fr_options_free(served.loaded.options);
    memset(&served, 0, sizeof served);
}

typedef struct answered {
    fr_generation_request request;
    fr_http_exchange exchange;
    fr_choice choices[4];
} answered;

/* Makes a request from the body. For /completion the body has the members of a line of a batch. There are `n` choices
 * that have not begun. The first has the body's seed, and each next one has a seed that is larger by 1. */
static void read_request(answered *a, fr_job_form form, const char *body, size_t n, bool stream) {
    *a = (answered){0};
    a->request = (fr_generation_request){.exchange = &a->exchange,
                                         .setting = &served.setting,
                                         .form = form,
                                         .model = "m",
                                         .stream = stream,
                                         .choices = a->choices,
                                         .count = n,
                                         .each = n,
                                         .slot = -1,
                                         .created = 7,
                                         .id = "chatcmpl-x"};
    for (size_t i = 0; i < n; i++) {
        char line[2048];
        const char *url = form == FR_JOB_CHAT ? "chat/completions" : "completions";
        if (form == FR_JOB_NATIVE)
            snprintf(line, sizeof line, "%s", body);
        else
            snprintf(line, sizeof line, "{\"custom_id\": \"x\", \"url\": \"/v1/%s\", \"body\": %s}", url, body);
        char *seed = strstr(line, "SEED");
        if (seed) memcpy(seed, (char[]){'5', (char)('0' + i), ' ', ' '}, sizeof "SEED" - 1);
        fr_job_begin(&a->choices[i].job, &served.setting,
                     &(fr_job_line){.text = line, .length = strlen(line), .row = 1});
        a->choices[i].job.form = form;
    }
}

static void free_request(answered *a) {
    if (a->exchange.out) fclose(a->exchange.out);
    for (size_t i = 0; i < a->request.count; i++) {
        fr_answer_forget(&a->choices[i]);
        fr_job_end(&a->choices[i].job);
    }
    json_decref(a->exchange.whole);
    json_decref(a->request.dialect_body);
    free(a->exchange.text);
}

static void begin(answered *a) {
    for (size_t i = 0; i < a->request.count; i++) fr_answer_began(&a->request, &a->choices[i]);
}

/* Runs rounds of all choices, as a scheduler does. Stops when all choices have ended, or after `most` rounds. */
static void run_rounds(answered *a, size_t most) {
    for (size_t round = 0; round < most; round++) {
        fr_round rounds[4];
        int32_t ids[4][FR_STEP_MAX];
        fr_choice *under_way[4];
        size_t count = 0;
        for (size_t i = 0; i < a->request.count; i++) {
            if (a->choices[i].job.ended) continue;
            under_way[count] = &a->choices[i];
            rounds[count] = fr_job_round(&a->choices[i].job, ids[count]);
            count++;
        }
        if (count == 0) return;
        require(fr_engine_step(served.setting.engine, rounds, count));
        for (size_t i = 0; i < count; i++) {
            fr_job_take(&under_way[i]->job, &rounds[i]);
            if (rounds[i].count == 0 && !under_way[i]->job.ended)
                fr_answer_progress(&a->request, under_way[i]);
            else
                fr_answer_step(&a->request, under_way[i]);
        }
    }
}

static void run(answered *a) {
    begin(a);
    run_rounds(a, 1000);
    fr_answer_end(&a->request);
    ck_assert_uint_eq(a->exchange.ends, 1);
    ck_assert(a->request.answered);
}

/* Gives a choice the ids of this reply and then the end token, as if the model had generated them. Each step gives
 * `step` ids. */
static void take(answered *a, fr_choice *choice, const char *reply, size_t step) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(served.loaded.model);
    int32_t *ids;
    size_t count;
    require(fr_tokenize(tokenizer, reply, strlen(reply), false, true, &ids, &count));
    for (size_t at = 0; at <= count && !choice->job.ended; at += step) {
        int32_t some[FR_STEP_MAX + 1];
        size_t size = count - at < step ? count - at : step;
        memcpy(some, ids + at, size * sizeof *ids);
        if (at + size == count) some[size++] = fr_tokenizer_eos(tokenizer);
        fr_job_take(&choice->job, &(fr_round){.session = choice->job.session, .ids = some, .count = size});
        fr_answer_step(&a->request, choice);
    }
    fr_free(ids);
}

static void feed(answered *a, const char *reply, size_t step) {
    begin(a);
    take(a, &a->choices[0], reply, step);
    fr_answer_end(&a->request);
}

/* -------------------------------------------------------------------------------------------------- reading streams */

static const json_t *get(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(value != NULL, "no \"%s\"", key);
    return value;
}

static const char *text_at(const json_t *object, const char *key) {
    return json_string_value(get(object, key));
}

static size_t count_at(const json_t *object, const char *key) {
    return (size_t)json_integer_value(get(object, key));
}

/* Returns the events of a stream. An event that is JSON becomes its value. Every other event, such as a comment or
 * [DONE], becomes a string. */
static json_t *events_of(const fr_http_exchange *exchange) {
    json_t *events = json_array();
    ck_assert_str_eq(exchange->type, "text/event-stream");
    for (const char *at = exchange->text, *end; *at; at = end + 2) {
        end = strstr(at, "\n\n");
        ck_assert_ptr_nonnull(end);
        ck_assert_ptr_null(memchr(at, '\n', (size_t)(end - at)));
        bool data = strncmp(at, "data: ", 6) == 0;
        json_t *value = data ? json_loadb(at + 6, (size_t)(end - at - 6), JSON_ALLOW_NUL, NULL) : NULL;
        json_array_append_new(events, value ? value : json_stringn(at, (size_t)(end - at)));
    }
    return events;
}

static void append_text(json_t *object, const char *key, const json_t *text) {
    const char *before = json_string_value(json_object_get(object, key));
    if (json_is_string(text))
        json_object_set_new(object, key, json_sprintf("%s%s", before ? before : "", json_string_value(text)));
}

static void append_list(json_t *object, const char *key, const json_t *list) {
    json_t *all = json_object_get(object, key);
    if (!all) json_object_set_new(object, key, all = json_array());
    ck_assert(json_is_array(list));
    json_array_extend(all, (json_t *)(uintptr_t)list);
}

/* Appends the log-probabilities of a chunk to the log-probabilities of the choice. */
static void append_logprobs(json_t *choice, const json_t *logprobs) {
    const char *key;
    json_t *list, *all = json_object_get(choice, "logprobs");
    if (json_is_null(logprobs)) return;
    if (!json_is_object(all)) json_object_set_new(choice, "logprobs", all = json_object());
    json_object_foreach ((json_t *)(uintptr_t)logprobs, key, list) append_list(all, key, list);
}

static void append_delta(json_t *choice, const json_t *delta) {
    json_t *message = json_object_get(choice, "message"), *calls = json_object_get(delta, "tool_calls"), *call;
    size_t i;
    const json_t *role = json_object_get(delta, "role");
    if (role) {
        ck_assert_uint_eq(json_object_size(message), 0);
        ck_assert(json_is_null(json_object_get(delta, "content")));
        json_object_set(message, "role", (json_t *)(uintptr_t)role);
        json_object_set_new(message, "content", json_null());
    }
    append_text(message, "content", json_object_get(delta, "content"));
    append_text(message, "reasoning_content", json_object_get(delta, "reasoning_content"));
    json_array_foreach (calls, i, call) {
        json_t *own = json_copy(call);
        ck_assert_uint_eq(count_at(own, "index"), json_array_size(json_object_get(message, "tool_calls")));
        json_object_del(own, "index");
        json_t *one = json_pack("[o]", own);
        append_list(message, "tool_calls", one);
        json_decref(one);
    }
}

/* Joins the chunks of a stream to the choice that a whole answer would have. */
static json_t *joined(const json_t *events, fr_job_form form, size_t index) {
    json_t *choice = json_pack("{s:i}", "index", (int)index), *event;
    bool chat = form == FR_JOB_CHAT;
    if (chat) json_object_set_new(choice, "message", json_object());
    json_object_set_new(choice, "logprobs", json_null());
    size_t i;
    json_array_foreach (events, i, event) {
        const json_t *choices = json_object_get(event, "choices"), *one = json_array_get(choices, 0);
        if (!one || count_at(one, "index") != index) continue;
        ck_assert_uint_eq(json_array_size(choices), 1);
        ck_assert_str_eq(text_at(event, "object"), chat ? "chat.completion.chunk" : "text_completion");
        ck_assert_ptr_null(json_object_get(choice, "finish_reason"));
        if (chat)
            append_delta(choice, get(one, "delta"));
        else
            append_text(choice, "text", get(one, "text"));
        append_logprobs(choice, get(one, "logprobs"));
        if (!json_is_null(get(one, "finish_reason")))
            json_object_set(choice, "finish_reason", json_object_get(one, "finish_reason"));
    }
    return choice;
}

/* If a message has no text, its content in a stream is null. In a whole answer it is "", or null if the message has
 * calls. Changes the content of a stream's message to that of a whole answer. */
static void settle(json_t *choice) {
    json_t *message = json_object_get(choice, "message");
    bool silent = json_is_null(json_object_get(message, "content")) && !json_object_get(message, "tool_calls");
    if (message && silent) json_object_set_new(message, "content", json_string(""));
}

static void check_equal(const json_t *a, const json_t *b, const char *what) {
    size_t flags = JSON_ENCODE_ANY | JSON_SORT_KEYS;
    char *left = json_dumps(a, flags), *right = json_dumps(b, flags);
    ck_assert_msg(json_equal((json_t *)(uintptr_t)a, (json_t *)(uintptr_t)b), "%s:\n%.900s\n%.900s", what, left, right);
    free(left);
    free(right);
}

/* Returns the last event before [DONE]. The stream must end with [DONE]. */
static const json_t *last_of(const json_t *events) {
    size_t count = json_array_size(events);
    ck_assert_str_eq(json_string_value(json_array_get(events, count - 1)), "data: [DONE]");
    return json_array_get(events, count - 2);
}

/* ---------------------------------------------------------------------------------------------- streams and answers */

#define CHAT_BODY "{\"messages\": [{\"role\": \"user\", \"content\": \"def f(x):\"}], \"max_tokens\": 40"
#define TEXT_BODY "{\"prompt\": \"def f(x):\", \"max_tokens\": 40"
#define LINE_BODY "{\"prompt\": \"def f(x):\", \"n\": 40"

static const struct {
    fr_job_form form;
    const char *body;
    size_t n;
} bodies[] = {
    {FR_JOB_CHAT, CHAT_BODY "}", 1},
    {FR_JOB_CHAT, CHAT_BODY ", \"logprobs\": true, \"top_logprobs\": 2}", 1},
    {FR_JOB_CHAT, CHAT_BODY ", \"temperature\": 0.9, \"seed\": SEED, \"logprobs\": true}", 3},
    {FR_JOB_CHAT, CHAT_BODY ", \"stop\": [\"zz\", \"For less\", \"e det\"], \"logprobs\": true}", 1},
    {FR_JOB_COMPLETION, TEXT_BODY "}", 1},
    {FR_JOB_COMPLETION, TEXT_BODY ", \"logprobs\": 2, \"stop\": [\"(x < 1\", \"Return a (y\"]}", 1},
    {FR_JOB_COMPLETION, TEXT_BODY ", \"logprobs\": 0, \"temperature\": 1.2, \"seed\": SEED}", 3},
    {FR_JOB_COMPLETION, TEXT_BODY ", \"logprobs\": 1, \"stop\": [\"n a (\"]}", 1},
};

static const char *const drafters[] = {NULL, "tools/demo/assistant"};

/* Runs one choice round by round. Writes the text of each id to `all`. If the id was an accepted draft, also writes the
 * text to `drafted`. The counts of each round tell which ids were accepted drafts. */
static void run_and_note(answered *a, FILE *drafted, FILE *all) {
    fr_job *job = &a->choices[0].job;
    begin(a);
    while (!job->ended) {
        int32_t ids[FR_STEP_MAX];
        fr_round round = fr_job_round(job, ids);
        require(fr_engine_step(served.setting.engine, &round, 1));
        for (size_t i = 0; i < round.count; i++) {
            size_t length;
            const char *bytes = fr_token_bytes(fr_model_tokenizer(served.loaded.model), ids[i], &length);
            fwrite(bytes, 1, length, all);
            if (i < round.accepted) fwrite(bytes, 1, length, drafted);
        }
        fr_job_take(job, &round);
        fr_answer_step(&a->request, &a->choices[0]);
    }
    fr_answer_end(&a->request);
    fclose(drafted);
    fclose(all);
}

static const char *text_of_chunk(const json_t *event) {
    const json_t *one = json_array_get(json_object_get(event, "choices"), 0), *delta = json_object_get(one, "delta");
    const char *text = json_string_value(delta ? json_object_get(delta, "content") : json_object_get(one, "text"));
    return text ? text : "";
}

/* The text of a chunk must come from accepted drafts alone, or not from drafts at all. The chunk's member "drafted"
 * must say which of the two it is. */
START_TEST(chunks_tell_what_was_drafted) {
    char *expected[2], *got[2];
    size_t sizes[4], i;
    const size_t body = _i % 2 ? 4 : 0;
    answered a;
    json_t *event;
    open_model(DEMO, drafters[_i / 2], 256);
    read_request(&a, bodies[body].form, bodies[body].body, 1, true);
    a.request.return_drafted = true;
    run_and_note(&a, open_memstream(&expected[0], &sizes[0]), open_memstream(&expected[1], &sizes[1]));
    json_t *events = events_of(&a.exchange);
    FILE *drafted = open_memstream(&got[0], &sizes[2]), *all = open_memstream(&got[1], &sizes[3]);
    json_array_foreach (events, i, event) {
        const char *text = text_of_chunk(event);
        ck_assert_int_eq(json_is_boolean(json_object_get(event, "drafted")), *text != '\0');
        fputs(text, all);
        if (json_is_true(json_object_get(event, "drafted"))) fputs(text, drafted);
    }
    fclose(drafted);
    fclose(all);
    ck_assert_str_eq(got[1], expected[1]);
    ck_assert_str_eq(got[0], expected[0]);
    ck_assert_int_eq(*got[0] != '\0', drafters[_i / 2] != NULL);
    for (i = 0; i < 2; i++) free(expected[i]);
    for (i = 0; i < 2; i++) free(got[i]);
    json_decref(events);
    free_request(&a);
    close_model();
}
END_TEST

/* Returns the answer to a body as {"choices", "usage"}. For a stream, this object is made from the chunks. The number
 * of cached tokens is left out, because it depends on earlier requests. */
static json_t *answer_to(size_t body, bool stream) {
    answered a;
    read_request(&a, bodies[body].form, bodies[body].body, bodies[body].n, stream);
    a.request.include_usage = stream;
    run(&a);
    json_t *answer = json_object(), *choices = json_array(), *events = stream ? events_of(&a.exchange) : NULL;
    if (!stream) ck_assert_uint_eq(a.exchange.status, 200);
    const json_t *last = stream ? last_of(events) : a.exchange.whole;
    for (size_t i = 0; i < a.request.count; i++) {
        json_t *choice = stream ? joined(events, a.request.form, i)
                                : json_incref(json_array_get(get(a.exchange.whole, "choices"), i));
        settle(choice);
        json_array_append_new(choices, choice);
    }
    ck_assert_uint_eq(json_array_size(get(last, "choices")), stream ? 0 : a.request.count);
    ck_assert_str_eq(text_at(last, "id"), "chatcmpl-x");
    ck_assert_str_eq(text_at(last, "model"), "m");
    ck_assert_str_eq(text_at(last, "system_fingerprint"), "fr1-x");
    ck_assert_uint_eq(count_at(last, "created"), 7);
    ck_assert_uint_eq(count_at(get(last, "usage"), "prompt_tokens"), a.choices[0].job.prompt.count);
    json_object_set_new(answer, "choices", choices);
    json_t *usage = json_deep_copy(get(last, "usage")), *details = json_object_get(usage, "prompt_tokens_details");
    ck_assert(json_is_integer(get(details, "cached_tokens")));
    json_object_del(details, "cached_tokens");
    json_object_set_new(answer, "usage", usage);
    json_decref(events);
    free_request(&a);
    return answer;
}

/* A whole answer and a stream must have the same content, with and without drafts. */
START_TEST(streams_say_what_whole_answers_say) {
    json_t *first = NULL;
    for (size_t d = 0; d < COUNT_OF(drafters); d++) {
        open_model(DEMO, drafters[d], 256);
        for (int stream = 0; stream < 2; stream++) {
            json_t *answer = answer_to((size_t)_i, stream);
            if (first) check_equal(answer, first, stream ? "stream" : "drafts");
            if (first)
                json_decref(answer);
            else
                first = answer;
        }
        close_model();
    }
    const json_t *choice = json_array_get(json_object_get(first, "choices"), 0), *usage = get(first, "usage");
    bool stops = strstr(bodies[_i].body, "stop") && !strstr(bodies[_i].body, "< 1");
    ck_assert_str_eq(text_at(choice, "finish_reason"), stops ? "stop" : "length");
    ck_assert_uint_eq(count_at(usage, "total_tokens"),
                      count_at(usage, "prompt_tokens") + count_at(usage, "completion_tokens"));
    if (!stops) ck_assert_uint_eq(count_at(usage, "completion_tokens"), 40 * bodies[_i].n);
    json_decref(first);
}
END_TEST

/* A request asks for several choices. Each must be the same as if it were the only choice. */
START_TEST(choices_take_turns) {
    open_model(DEMO, NULL, 256);
    json_t *three = answer_to(2, true), *choices = json_object_get(three, "choices");
    for (size_t i = 0; i < 3; i++) {
        char body[512];
        answered a;
        snprintf(body, sizeof body, CHAT_BODY ", \"temperature\": 0.9, \"seed\": 5%zu, \"logprobs\": true}", i);
        read_request(&a, FR_JOB_CHAT, body, 1, false);
        run(&a);
        json_t *alone = json_array_get(json_object_get(a.exchange.whole, "choices"), 0);
        json_object_set_new(alone, "index", json_integer((json_int_t)i));
        check_equal(json_array_get(choices, i), alone, "alone");
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(text_at(get(json_array_get(choices, i), "message"), "content"),
                             text_at(get(json_array_get(choices, j), "message"), "content"));
        free_request(&a);
    }
    json_decref(three);
    close_model();
}
END_TEST

/* The log-probabilities of a token must come with the chunk in which the token's text begins. So the text that was sent
 * so far always ends inside the text of the last token in "logprobs", or at its end. */
START_TEST(log_probabilities_come_with_their_text) {
    open_model(DEMO, drafters[_i % 2], 256);
    answered a;
    read_request(&a, FR_JOB_COMPLETION, TEXT_BODY ", \"logprobs\": 0, \"stop\": [\"(x < 1\", \"Return a (y\"]}", 1,
                 true);
    run(&a);
    json_t *events = events_of(&a.exchange), *event, *token;
    size_t i, j, said = 0, told = 0, held = 0;
    json_array_foreach (events, i, event) {
        const json_t *choice = json_array_get(json_object_get(event, "choices"), 0);
        const json_t *tokens = json_object_get(json_object_get(choice, "logprobs"), "tokens");
        if (!choice || !json_is_null(get(choice, "finish_reason"))) continue;
        size_t before = said;
        said += strlen(text_at(choice, "text"));
        json_array_foreach (tokens, j, token) {
            ck_assert_uint_ge(told, before);
            ck_assert_uint_lt(told, said);
            told += strlen(json_string_value(token));
        }
        ck_assert_uint_ge(told, said);
        held += json_array_size(tokens) > 1;
    }
    ck_assert_uint_gt(held, 0);
    json_decref(events);
    free_request(&a);
    close_model();
}
END_TEST

/* ------------------------------------------------------------------------------------------------- parts of replies */

#define THOUGHT "<|channel>thought\nhm\n\nso\n<channel|>"
#define CALL    "<|tool_call>call:f{s:<|\"|>a<|\"|>}<tool_call|>"
#define TOOLS                                                                                            \
    ", \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": " \
    "\"object\", \"properties\": {\"s\": {\"type\": \"string\"}}}}}]"
#define HI "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"max_tokens\": 200"

static const struct {
    const char *reply, *content, *reasoning, *finish;
    size_t calls;
} replies[] = {
    {"hi", "hi", NULL, "stop", 0},
    {THOUGHT "hi\nyou", "hi\nyou", "hm\n\nso", "stop", 0},
    {THOUGHT, NULL, "hm\n\nso", "stop", 0},
    {CALL, NULL, NULL, "tool_calls", 1},
    {"a\n" CALL CALL, "a", NULL, "tool_calls", 2},
    {THOUGHT "so" CALL, "so", "hm\n\nso", "tool_calls", 1},
    {"<|tool_call>call:f", "<|tool_call>call:f", NULL, "stop", 0},
    {"a sto" THOUGHT "p b", "a stop b", "hm\n\nso", "stop", 0},
    {"well stop it" CALL, "well ", NULL, "stop", 0},
    {"\xe2\x82", "\xef\xbf\xbd", NULL, "stop", 0},
    {"\xe2\x82\xac\xf0\x9f\x98\x80", "\xe2\x82\xac\xf0\x9f\x98\x80", NULL, "stop", 0},
};

/* The parts of a reply must be the same however many ids a step returns. */
START_TEST(parts_are_told_apart) {
    json_t *first = NULL;
    const char *body = HI TOOLS ", \"stop\": \"stop\", \"logprobs\": true}";
    open_model(GEMMA, NULL, 512);
    for (size_t step = 0; step <= FR_STEP_MAX; step += step < 3 ? 1 : 13) {
        answered a;
        read_request(&a, FR_JOB_CHAT, body, 1, step > 0);
        ck_assert_str_eq(a.choices[0].job.error, "");
        feed(&a, replies[_i].reply, step ? step : 5);
        json_t *events = step ? events_of(&a.exchange) : NULL;
        json_t *choice =
            step ? joined(events, FR_JOB_CHAT, 0) : json_incref(json_array_get(get(a.exchange.whole, "choices"), 0));
        settle(choice);
        if (first) check_equal(choice, first, replies[_i].reply);
        if (first)
            json_decref(choice);
        else
            first = choice;
        json_decref(events);
        free_request(&a);
    }
    const json_t *message = get(first, "message"), *calls = json_object_get(message, "tool_calls");
    const char *said = text_at(message, "content");
    const json_t *reasoning = json_object_get(message, "reasoning_content");
    ck_assert_str_eq(said ? said : "", replies[_i].content ? replies[_i].content : "");
    ck_assert_ptr_eq(reasoning ? replies[_i].reasoning : NULL, replies[_i].reasoning);
    if (reasoning) ck_assert_str_eq(json_string_value(reasoning), replies[_i].reasoning);
    ck_assert_uint_eq(json_array_size(calls), replies[_i].calls);
    ck_assert_str_eq(text_at(first, "finish_reason"), replies[_i].finish);
    if (calls) {
        const json_t *call = json_array_get(calls, 0), *function = get(call, "function");
        ck_assert_str_eq(text_at(call, "type"), "function");
        ck_assert_uint_gt(strlen(text_at(call, "id")), 0);
        ck_assert_str_eq(text_at(function, "name"), "f");
        ck_assert_str_eq(text_at(function, "arguments"), "{\"s\":\"a\"}");
    }
    json_decref(first);
    close_model();
}
END_TEST

/* This request allows one call, which ends the reply. A second call must be dropped, even if the same step has
 * generated it. */
START_TEST(one_call_ends_a_reply) {
    open_model(GEMMA, NULL, 512);
    for (size_t step = 0; step <= FR_STEP_MAX; step += step < 3 ? 1 : 13) {
        answered a;
        read_request(&a, FR_JOB_CHAT, HI TOOLS ", \"parallel_tool_calls\": false}", 1, step > 0);
        ck_assert_str_eq(a.choices[0].job.error, "");
        feed(&a, "a" CALL CALL "b", step ? step : 5);
        json_t *events = step ? events_of(&a.exchange) : NULL;
        json_t *choice =
            step ? joined(events, FR_JOB_CHAT, 0) : json_incref(json_array_get(get(a.exchange.whole, "choices"), 0));
        ck_assert_uint_eq(json_array_size(get(get(choice, "message"), "tool_calls")), 1);
        ck_assert_str_eq(text_at(get(choice, "message"), "content"), "a");
        ck_assert_str_eq(text_at(choice, "finish_reason"), "tool_calls");
        json_decref(choice);
        json_decref(events);
        free_request(&a);
    }
    close_model();
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- dialects */

/* Returns the events of a stream in which each event has a name. Checks that the name is the event's type. */
static json_t *named_events_of(const fr_http_exchange *exchange) {
    json_t *events = json_array();
    ck_assert_str_eq(exchange->type, "text/event-stream");
    for (const char *at = exchange->text, *end; *at; at = end + 2) {
        end = strstr(at, "\n\n");
        ck_assert_ptr_nonnull(end);
        const char *data = strstr(at, "\ndata: ");
        ck_assert(strncmp(at, "event: ", 7) == 0 && data && data < end);
        json_t *event = json_loadb(data + 7, (size_t)(end - data - 7), JSON_ALLOW_NUL, NULL);
        size_t length = strlen(text_at(event, "type"));
        ck_assert_uint_eq(length, (size_t)(data - at - 7));
        ck_assert_mem_eq(at + 7, text_at(event, "type"), length);
        json_array_append_new(events, event);
    }
    return events;
}

static bool is_event(const json_t *event, const char *type) {
    return strcmp(text_at(event, "type"), type) == 0;
}

/* Joins the output of a stream of /v1/responses. The output has the items in the order in which they were added. Each
 * item has the texts of its deltas. */
static json_t *responses_output(const json_t *events) {
    static const char *const deltas[] = {"response.reasoning_text.delta", "response.output_text.delta",
                                         "response.function_call_arguments.delta"};
    json_t *output = json_array(), *event;
    size_t i;
    json_array_foreach (events, i, event) {
        ck_assert_uint_eq(count_at(event, "sequence_number"), i);
        size_t last = json_array_size(output) - 1;
        json_t *item = json_array_get(output, last), *parts = json_object_get(item, "content");
        if (json_object_get(event, "output_index") && !is_event(event, "response.output_item.added"))
            ck_assert_uint_eq(count_at(event, "output_index"), last);
        if (json_object_get(event, "item_id")) ck_assert_str_eq(text_at(event, "item_id"), text_at(item, "id"));
        if (is_event(event, "response.output_item.added"))
            json_array_append_new(output, json_deep_copy(get(event, "item")));
        if (is_event(event, "response.content_part.added"))
            json_array_append_new(parts, json_deep_copy(get(event, "part")));
        for (size_t d = 0; d < COUNT_OF(deltas); d++)
            if (is_event(event, deltas[d]))
                append_text(d < 2 ? json_array_get(parts, 0) : item, d < 2 ? "text" : "arguments", get(event, "delta"));
        if (is_event(event, "response.output_item.done")) {
            json_object_set(item, "status", (json_t *)(uintptr_t)get(get(event, "item"), "status"));
            check_equal(get(event, "item"), item, "an item's end");
        }
    }
    return output;
}

/* Joins the parts of a stream of /v1/messages to the content of one message. */
static json_t *messages_content(const json_t *events) {
    static const char *const keys[] = {"text", "thinking", "partial_json"};
    json_t *content = json_array(), *event, *open = NULL;
    size_t i;
    json_array_foreach (events, i, event) {
        const json_t *delta = json_object_get(event, "delta");
        if (json_object_get(event, "index"))
            ck_assert_uint_eq(count_at(event, "index") + !is_event(event, "content_block_start"),
                              json_array_size(content));
        if (is_event(event, "content_block_start")) {
            ck_assert_ptr_null(open);
            json_array_append_new(content, open = json_deep_copy(get(event, "content_block")));
        }
        for (size_t k = 0; is_event(event, "content_block_delta") && k < COUNT_OF(keys); k++)
            if (json_object_get(delta, keys[k])) append_text(open, keys[k], get(delta, keys[k]));
        if (!is_event(event, "content_block_stop")) continue;
        const json_t *input = json_object_get(open, "partial_json");
        if (input) json_object_set_new(open, "input", json_loads(json_string_value(input), 0, NULL));
        json_object_del(open, "partial_json");
        open = NULL;
    }
    ck_assert_ptr_null(open);
    return content;
}

/* Compares the items of a whole answer with reply number `which`, by kind and text. Reasoning must come first, then
 * text, then calls. */
static void check_items(const json_t *items, const fr_dialect *dialect, size_t which) {
    bool anthropic = dialect == &fr_dialect_messages;
    json_t *said = json_object(), *item;
    size_t calls = 0, i;
    json_array_foreach (items, i, item) {
        const json_t *part = anthropic ? item : json_array_get(json_object_get(item, "content"), 0);
        bool call = is_event(item, anthropic ? "tool_use" : "function_call");
        bool thought = is_event(item, anthropic ? "thinking" : "reasoning");
        calls += call;
        if (call) ck_assert_str_eq(text_at(item, "name"), "f");
        if (call && anthropic) ck_assert_str_eq(text_at(get(item, "input"), "s"), "a");
        if (call && !anthropic) ck_assert_str_eq(text_at(item, "arguments"), "{\"s\":\"a\"}");
        if (call)
            ck_assert_uint_gt(strlen(text_at(item, anthropic ? "id" : "call_id")), 0);
        else
            append_text(said, thought ? "thought" : "text", get(part, thought && anthropic ? "thinking" : "text"));
    }
    const char *text = json_string_value(json_object_get(said, "text"));
    ck_assert_str_eq(text ? text : "", replies[which].content ? replies[which].content : "");
    const char *thought = json_string_value(json_object_get(said, "thought"));
    ck_assert_str_eq(thought ? thought : "", replies[which].reasoning ? replies[which].reasoning : "");
    ck_assert_uint_eq(calls, replies[which].calls);
    ck_assert_uint_gt(json_array_size(items), 0);
    json_decref(said);
}

static const char *reason_of(const json_t *answer, bool anthropic) {
    return anthropic ? text_at(answer, "stop_reason") : text_at(answer, "status");
}

/* Checks a reply in a dialect. If `step` is 0, the reply is a whole answer. Otherwise it is a stream whose steps return
 * `step` ids each. All these forms must have the same content. */
static void check_dialect(const fr_dialect *dialect, size_t which, size_t step, json_t **first) {
    bool anthropic = dialect == &fr_dialect_messages;
    answered a;
    read_request(&a, FR_JOB_CHAT, HI TOOLS ", \"stop\": \"stop\"}", 1, step > 0);
    fr_answer_in(&a.request, dialect, json_object());
    feed(&a, replies[which].reply, step ? step : 5);
    json_t *events = step ? named_events_of(&a.exchange) : NULL, *output = NULL;
    const json_t *last = json_array_get(events, json_array_size(events) - (anthropic ? 2 : 1));
    if (anthropic)
        output = step ? messages_content(events) : json_incref(json_object_get(a.exchange.whole, "content"));
    else
        output = step ? responses_output(events) : json_incref(json_object_get(a.exchange.whole, "output"));
    if (step && !anthropic) check_equal(get(get(last, "response"), "output"), output, "a stream's end");
    check_items(output, dialect, which);
    if (*first)
        check_equal(output, *first, replies[which].reply);
    else
        *first = json_incref(output);
    const json_t *end = !step ? a.exchange.whole : get(last, anthropic ? "delta" : "response");
    bool stop = strstr(replies[which].reply, "well stop") != NULL;
    ck_assert_str_eq(reason_of(end, anthropic), !anthropic             ? "completed"
                                                : replies[which].calls ? "tool_use"
                                                : stop                 ? "stop_sequence"
                                                                       : "end_turn");
    if (anthropic && stop) ck_assert_str_eq(text_at(end, "stop_sequence"), "stop");
    json_decref(output);
    json_decref(events);
    free_request(&a);
}

START_TEST(dialects_tell_the_same_items) {
    const fr_dialect *const dialects[] = {&fr_dialect_responses, &fr_dialect_messages};
    open_model(GEMMA, NULL, 512);
    for (size_t d = 0; d < COUNT_OF(dialects); d++) {
        json_t *first = NULL;
        for (size_t step = 0; step <= FR_STEP_MAX; step += step < 3 ? 1 : 13)
            check_dialect(dialects[d], (size_t)_i, step, &first);
        json_decref(first);
    }
    close_model();
}
END_TEST

/* A call of one of OpenAI's custom tools has a text instead of arguments, and its items and events have their own
 * kinds. A call of a tool in a namespace must have the tool's name inside this namespace. */
START_TEST(custom_tools_are_called_with_a_text) {
    static const char *const called[] = {
        "{\"called\": {\"f\": {\"type\": \"custom\", \"name\": \"apply_patch\"}}}",
        "{\"called\": {\"f\": {\"type\": \"function\", \"name\": \"read\", \"namespace\": \"files\"}}}"};
    open_model(GEMMA, NULL, 512);
    for (size_t i = 0; i < 2 * COUNT_OF(called); i++) {
        bool stream = i % 2, custom = i < 2;
        json_t *body = json_loads(called[i / 2], 0, NULL), *events = NULL, *item = NULL, *event;
        answered a;
        read_request(&a, FR_JOB_CHAT, HI TOOLS "}", 1, stream);
        fr_answer_in(&a.request, &fr_dialect_responses, body);
        feed(&a, CALL, 5);
        size_t at, deltas = 0, dones = 0;
        if (stream) events = named_events_of(&a.exchange);
        json_array_foreach (events, at, event) {
            if (is_event(event, "response.output_item.added") && custom)
                ck_assert_str_eq(text_at(get(event, "item"), "input"), "");
            if (is_event(event, "response.custom_tool_call_input.delta")) {
                ck_assert_str_eq(text_at(event, "delta"), "a");
                deltas++;
            }
            if (is_event(event, "response.custom_tool_call_input.done")) {
                ck_assert_str_eq(text_at(event, "input"), "a");
                dones++;
            }
            if (is_event(event, "response.output_item.done")) item = json_incref(json_object_get(event, "item"));
        }
        ck_assert_uint_eq(deltas, stream && custom);
        ck_assert_uint_eq(dones, stream && custom);
        if (!stream) item = json_incref(json_array_get(get(a.exchange.whole, "output"), 0));
        ck_assert_str_eq(text_at(item, "type"), custom ? "custom_tool_call" : "function_call");
        ck_assert_str_eq(text_at(item, "name"), custom ? "apply_patch" : "read");
        if (custom)
            ck_assert_str_eq(text_at(item, "input"), "a");
        else
            ck_assert_str_eq(text_at(item, "arguments"), "{\"s\":\"a\"}");
        if (custom)
            ck_assert_int_eq(strncmp(text_at(item, "id"), "ctc_", 4), 0);
        else
            ck_assert_str_eq(text_at(item, "namespace"), "files");
        ck_assert_str_eq(text_at(item, "status"), "completed");
        json_decref(item);
        json_decref(events);
        free_request(&a);
    }
    close_model();
}
END_TEST

/* The client itself runs a search for tools. In the answer, the search is an item of its own kind, and no events have
 * its arguments. If a client asks for encrypted reasoning, it must get an item of reasoning with
 * "encrypted_content". */
START_TEST(clients_run_searches_and_keep_thoughts) {
    open_model(GEMMA, NULL, 512);
    for (int stream = 0; stream < 2; stream++) {
        answered a;
        read_request(&a, FR_JOB_CHAT, HI TOOLS "}", 1, stream);
        fr_answer_in(&a.request, &fr_dialect_responses,
                     json_pack("{s:{s:{s:s, s:s}}, s:[s]}", "called", "f", "type", "tool_search", "name", "tool_search",
                               "include", "reasoning.encrypted_content"));
        feed(&a, THOUGHT "so" CALL, 5);
        json_t *events = stream ? named_events_of(&a.exchange) : NULL, *event;
        const json_t *whole =
            stream ? get(json_array_get(events, json_array_size(events) - 1), "response") : a.exchange.whole;
        const json_t *output = get(whole, "output"), *thought = json_array_get(output, 0),
                     *call = json_array_get(output, 2);
        ck_assert_str_eq(text_at(thought, "encrypted_content"), "forerun:hm\n\nso");
        ck_assert_str_eq(text_at(call, "type"), "tool_search_call");
        ck_assert_str_eq(text_at(call, "execution"), "client");
        ck_assert_str_eq(text_at(get(call, "arguments"), "s"), "a");
        ck_assert_ptr_null(json_object_get(call, "name"));
        size_t i;
        json_array_foreach (events, i, event) ck_assert_ptr_null(strstr(text_at(event, "type"), "arguments"));
        json_decref(events);
        free_request(&a);
    }
    close_model();
}
END_TEST

/* In a chat, a call of a custom tool has the type "custom", both in the deltas of a stream and in a whole message. */
START_TEST(custom_tools_of_chats_are_called_with_a_text) {
    open_model(GEMMA, NULL, 512);
    for (int stream = 0; stream < 2; stream++) {
        answered a;
        read_request(&a, FR_JOB_CHAT, HI TOOLS "}", 1, stream);
        a.request.called = json_pack("{s:{s:s, s:s}}", "f", "type", "custom", "name", "f");
        feed(&a, CALL, 5);
        json_t *events = stream ? events_of(&a.exchange) : NULL;
        json_t *choice =
            stream ? joined(events, FR_JOB_CHAT, 0) : json_incref(json_array_get(get(a.exchange.whole, "choices"), 0));
        const json_t *call = json_array_get(get(get(choice, "message"), "tool_calls"), 0);
        ck_assert_str_eq(text_at(call, "type"), "custom");
        ck_assert_str_eq(text_at(get(call, "custom"), "name"), "f");
        ck_assert_str_eq(text_at(get(call, "custom"), "input"), "a");
        ck_assert_ptr_null(json_object_get(call, "function"));
        json_decref(choice);
        json_decref(events);
        json_decref(a.request.called);
        free_request(&a);
    }
    close_model();
}
END_TEST

/* Joins the lines of /api/chat into a message. */
static json_t *ollama_message(const fr_http_exchange *exchange) {
    json_t *message = json_object();
    ck_assert_str_eq(exchange->type, "application/x-ndjson");
    for (const char *at = exchange->text, *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        ck_assert_ptr_nonnull(end);
        json_t *line = json_loadb(at, (size_t)(end - at), JSON_ALLOW_NUL, NULL);
        const json_t *said = get(line, "message"), *calls = json_object_get(said, "tool_calls");
        append_text(message, "content", get(said, "content"));
        append_text(message, "thinking", json_object_get(said, "thinking"));
        if (calls) append_list(message, "tool_calls", calls);
        ck_assert(json_is_true(get(line, "done")) == (end[1] == '\0'));
        if (!end[1]) ck_assert_str_eq(text_at(line, "done_reason"), "stop");
        json_decref(line);
    }
    json_object_set_new(message, "role", json_string("assistant"));
    return message;
}

START_TEST(ollama_tells_lines) {
    json_t *first = NULL;
    open_model(GEMMA, NULL, 512);
    for (size_t step = 0; step <= FR_STEP_MAX; step += step < 3 ? 1 : 13) {
        answered a;
        read_request(&a, FR_JOB_CHAT, HI TOOLS ", \"stop\": \"stop\"}", 1, step > 0);
        fr_answer_in(&a.request, &fr_dialect_ollama_chat, json_object());
        feed(&a, replies[_i].reply, step ? step : 5);
        json_t *message =
            step ? ollama_message(&a.exchange) : json_incref(json_object_get(a.exchange.whole, "message"));
        if (first)
            check_equal(message, first, replies[_i].reply);
        else
            first = json_incref(message);
        json_decref(message);
        free_request(&a);
    }
    const json_t *calls = json_object_get(first, "tool_calls"), *thought = json_object_get(first, "thinking");
    ck_assert_str_eq(text_at(first, "content"), replies[_i].content ? replies[_i].content : "");
    ck_assert((thought != NULL) == (replies[_i].reasoning != NULL));
    if (thought) ck_assert_str_eq(json_string_value(thought), replies[_i].reasoning);
    ck_assert_uint_eq(json_array_size(calls), replies[_i].calls);
    if (calls) ck_assert_str_eq(text_at(get(get(json_array_get(calls, 0), "function"), "arguments"), "s"), "a");
    json_decref(first);
    close_model();
}
END_TEST

/* An answer ends in one of three ways: at a limit, by a failure before the first text, or by a failure after it. */
START_TEST(dialects_tell_how_it_ends) {
    open_model(GEMMA, NULL, 256);
    for (int i = 0; i < 8; i++) {
        bool anthropic = i & 1, stream = i & 2, fails = i & 4;
        answered a;
        read_request(&a, FR_JOB_CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"max_tokens\": 3}",
                     1, stream);
        fr_answer_in(&a.request, anthropic ? &fr_dialect_messages : &fr_dialect_responses, json_object());
        begin(&a);
        run_rounds(&a, fails ? 2 : 20);
        fr_job *job = &a.choices[0].job;
        if (fails) fr_job_take(job, &(fr_round){.session = job->session, .status = FR_NUMERIC, .error = "no number"});
        if (fails) fr_answer_step(&a.request, &a.choices[0]);
        fr_answer_end(&a.request);
        ck_assert_uint_eq(a.exchange.ends, 1);
        bool streamed = a.exchange.out != NULL;
        json_t *events = streamed ? named_events_of(&a.exchange) : NULL;
        const json_t *last = json_array_get(events, json_array_size(events) - 1);
        const json_t *whole = !streamed ? a.exchange.whole : anthropic ? last : get(last, "response");
        if (fails) {
            const json_t *error = get(whole, "error");
            ck_assert_ptr_nonnull(strstr(text_at(error, "message"), "no number"));
            ck_assert(streamed == stream);
            if (anthropic) ck_assert_str_eq(text_at(whole, "type"), "error");
            if (anthropic)
                ck_assert_str_eq(text_at(error, "type"), "api_error");
            else if (streamed)
                ck_assert_str_eq(text_at(last, "type"), "response.failed");
            if (!streamed) ck_assert_uint_eq(a.exchange.status, 500);
        } else if (!anthropic) {
            ck_assert_str_eq(text_at(whole, "status"), "incomplete");
            ck_assert_str_eq(text_at(get(whole, "incomplete_details"), "reason"), "max_output_tokens");
            ck_assert_uint_eq(count_at(get(whole, "usage"), "output_tokens"), 3);
            if (streamed) ck_assert_str_eq(text_at(last, "type"), "response.incomplete");
        } else {
            const json_t *delta = streamed ? json_array_get(events, json_array_size(events) - 2) : whole;
            ck_assert_uint_eq(count_at(get(delta, "usage"), "output_tokens"), 3);
            ck_assert_str_eq(text_at(streamed ? get(delta, "delta") : whole, "stop_reason"), "max_tokens");
        }
        json_decref(events);
        free_request(&a);
    }
    close_model();
}
END_TEST

/* A chunk must never contain only a part of a character. */
START_TEST(chunks_are_valid_text) {
    open_model(GEMMA, NULL, 512);
    answered a;
    read_request(&a, FR_JOB_CHAT, HI "}", 1, true);
    feed(&a, "\xe2\x82\xac\xf0\x9f\x98\x80\xe2\x82", 1);
    json_t *events = events_of(&a.exchange), *event; /* events_of has parsed each event as JSON */
    size_t i, bad = 0;
    json_array_foreach (events, i, event) {
        const json_t *delta = json_object_get(json_array_get(json_object_get(event, "choices"), 0), "delta");
        const char *text = json_string_value(json_object_get(delta, "content"));
        bad += text && strstr(text, "\xef\xbf\xbd");
        if (event != json_array_get(events, json_array_size(events) - 1)) ck_assert(json_is_object(event));
        if (bad) ck_assert_uint_ge(i + 4, json_array_size(events));
    }
    ck_assert_uint_eq(bad, 1);
    json_decref(events);
    free_request(&a);
    close_model();
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- events */

START_TEST(chunks_tell_how_it_goes) {
    open_model(DEMO, drafters[_i], 256);
    answered a;
    read_request(&a, FR_JOB_CHAT, CHAT_BODY "}", 1, true);
    a.request.return_progress = a.request.timings_per_token = true;
    fr_answer_ping(&a.request);
    run(&a);
    json_t *events = events_of(&a.exchange), *event;
    size_t i, progress = 0, nothing = 0, count = json_array_size(events);
    ck_assert_str_eq(json_string_value(json_array_get(events, 0)), ": ping");
    ck_assert_str_eq(text_at(get(json_array_get(get(json_array_get(events, 1), "choices"), 0), "delta"), "role"),
                     "assistant");
    json_array_foreach (events, i, event) {
        const json_t *told = json_object_get(event, "prompt_progress");
        ck_assert_ptr_null(json_object_get(event, "usage"));
        if (told) ck_assert_uint_le(count_at(told, "processed"), count_at(told, "total"));
        if (told) ck_assert_uint_le(count_at(get(event, "timings"), "prompt_n"), count_at(told, "processed"));
        if (told && count_at(told, "processed") < count_at(told, "total"))
            ck_assert(json_number_value(get(get(event, "timings"), "predicted_ms")) == 0);
        nothing += told && count_at(told, "processed") == 0 && count_at(get(event, "timings"), "prompt_n") == 0;
        progress += told && count_at(told, "processed") == count_at(told, "total");
        if (told) ck_assert(json_is_integer(get(told, "cache")) && json_is_integer(get(told, "time_ms")));
        if (i > 2 && !told && i + 1 < count) get(event, "timings");
        /* NULL if the event has no timings; after a single token no rate is known yet, so the rate must be 0 */
        const json_t *so_far = json_object_get(event, "timings");
        if (so_far && count_at(so_far, "predicted_n") == 1)
            ck_assert(json_real_value(get(so_far, "predicted_per_second")) == 0);
    }
    ck_assert_uint_eq(progress, 1);
    ck_assert_uint_eq(nothing, 1); /* the first timings come before any token was run */
    const json_t *timings = get(last_of(events), "timings");
    ck_assert_uint_eq(count_at(timings, "predicted_n"), 40);
    ck_assert_uint_eq(count_at(timings, "cache_n") + count_at(timings, "prompt_n"), a.choices[0].job.prompt.count);
    static const char *const numbers[] = {"prompt_ms",    "prompt_per_token_ms",    "prompt_per_second",
                                          "predicted_ms", "predicted_per_token_ms", "predicted_per_second"};
    for (size_t n = 0; n < COUNT_OF(numbers); n++) ck_assert_double_gt(json_real_value(get(timings, numbers[n])), 0);
    ck_assert_double_eq_tol(39 * json_real_value(get(timings, "predicted_per_token_ms")),
                            json_real_value(get(timings, "predicted_ms")), 1e-6);
    ck_assert_int_eq(json_object_get(timings, "draft_n") != NULL, _i);
    if (_i) {
        const json_t *depth = json_array_get(get(timings, "draft_by_depth"), 0);
        ck_assert_uint_ge(count_at(timings, "draft_n"), count_at(timings, "draft_n_accepted"));
        ck_assert_int_gt(json_integer_value(json_array_get(depth, 0)), 0);
        ck_assert_uint_eq(json_array_size(depth), 2);
    }
    json_decref(events);
    free_request(&a);
    close_model();
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- errors */

static void check_error(const json_t *event, const char *type, int code) {
    const json_t *error = get(event, "error");
    ck_assert_str_eq(text_at(error, "type"), type);
    ck_assert_int_eq((int)json_integer_value(get(error, "code")), code);
    ck_assert_uint_gt(strlen(text_at(error, "message")), 0);
}

/* A prompt that is too long is refused before any text is sent. So the refusal is the whole answer, even if the request
 * asked for a stream. */
START_TEST(too_long_a_prompt_is_told) {
    open_model(DEMO, NULL, 16);
    for (int stream = 0; stream < 2; stream++) {
        answered a;
        read_request(&a, FR_JOB_CHAT, CHAT_BODY "}", 1, stream);
        begin(&a);
        ck_assert(a.choices[0].job.ended);
        fr_answer_step(&a.request, &a.choices[0]);
        fr_answer_end(&a.request);
        ck_assert_uint_eq(a.exchange.ends, 1);
        ck_assert_uint_eq(a.exchange.status, 400);
        const json_t *error = json_object_get(a.exchange.whole, "error");
        ck_assert_str_eq(text_at(error, "type"), "exceed_context_size_error");
        ck_assert_str_eq(text_at(error, "code"), "context_length_exceeded");
        ck_assert_ptr_nonnull(strstr(text_at(error, "message"), "maximum context length is 16 tokens"));
        ck_assert_uint_eq(count_at(error, "n_ctx"), 16);
        ck_assert_uint_eq(count_at(error, "n_prompt_tokens"), a.choices[0].job.prompt.count);
        free_request(&a);
    }
    close_model();
}
END_TEST

/* If a failure comes after the first text of a stream, it ends the stream. If it comes before, or if the request has no
 * stream, it is the whole answer. The other choices of the request are dropped. */
START_TEST(failures_on_the_way_are_told) {
    open_model(GEMMA, NULL, 256);
    for (int stream = 0; stream < 2; stream++) {
        answered a;
        read_request(&a, FR_JOB_CHAT, HI "}", 2, stream);
        begin(&a);
        run_rounds(&a, 9);
        fr_job *job = &a.choices[1].job;
        fr_job_take(job, &(fr_round){.session = job->session, .status = FR_NUMERIC, .error = "not finite"});
        fr_answer_step(&a.request, &a.choices[1]);
        ck_assert(a.request.answered);
        ck_assert_uint_eq(a.exchange.ends, 1);
        take(&a, &a.choices[0], "a" CALL THOUGHT "b", 4);
        fr_answer_ping(&a.request);
        fr_answer_end(&a.request);
        ck_assert_uint_eq(a.exchange.ends, 1);
        json_t *events = stream ? events_of(&a.exchange) : NULL;
        check_error(stream ? json_array_get(events, json_array_size(events) - 1) : a.exchange.whole, "server_error",
                    500);
        if (!stream) ck_assert_uint_eq(a.exchange.status, 500);
        json_decref(events);
        free_request(&a);
    }
    close_model();
}
END_TEST

START_TEST(refusals_are_told) {
    open_model(DEMO, NULL, 64);
    answered a;
    read_request(&a, FR_JOB_CHAT, CHAT_BODY "}", 1, true);
    snprintf(a.request.error, sizeof a.request.error, "\"grammar\" is not built yet");
    a.request.why = FR_UNBUILT;
    fr_answer_refuse(&a.request);
    ck_assert_uint_eq(a.exchange.status, 400);
    check_error(a.exchange.whole, "invalid_request_error", 400);
    free_request(&a);
    close_model();
}
END_TEST

/* If a text is cut off because the server ends, it has the same finish reason as a text that reached its limit. */
START_TEST(interrupts_are_limits) {
    open_model(DEMO, NULL, 256);
    for (int stream = 0; stream < 2; stream++) {
        answered a;
        read_request(&a, FR_JOB_CHAT, CHAT_BODY "}", 2, stream);
        begin(&a);
        run_rounds(&a, 5);
        fr_job_interrupt(&a.choices[0].job);
        fr_answer_step(&a.request, &a.choices[0]);
        if (stream) fr_job_interrupt(&a.choices[1].job);
        if (stream) fr_answer_step(&a.request, &a.choices[1]);
        fr_answer_end(&a.request);
        json_t *events = stream ? events_of(&a.exchange) : NULL,
               *choice = stream ? joined(events, FR_JOB_CHAT, 0) : NULL;
        if (stream) ck_assert_str_eq(text_at(choice, "finish_reason"), "length");
        if (!stream) check_error(a.exchange.whole, "unavailable_error", 503);
        json_decref(choice);
        json_decref(events);
        free_request(&a);
    }
    close_model();
}
END_TEST

/* ----------------------------------------------------------------------------------------------- llama.cpp's format */

static const struct {
    const char *more, *stop_type, *word;
} natives[] = {
    {", \"logprobs\": 1}", "limit", ""},
    {", \"stop\": [\"zz\", \"n a (\"], \"temp\": 0.5, \"seed\": 3, \"top_k\": 1}", "word", "n a ("},
};

START_TEST(native_answers) {
    char body[512];
    answered whole, stream;
    open_model(DEMO, drafters[_i], 256);
    snprintf(body, sizeof body, LINE_BODY "%s", natives[_i].more);
    read_request(&whole, FR_JOB_NATIVE, body, 1, false);
    whole.request.return_tokens = true;
    run(&whole);
    read_request(&stream, FR_JOB_NATIVE, body, 1, true);
    run(&stream);
    json_t *events = events_of(&stream.exchange), *event, *joint = json_pack("{s:s, s:[]}", "content", "", "tokens");
    size_t i, count = json_array_size(events);
    json_array_foreach (events, i, event) {
        ck_assert_int_eq(json_is_true(get(event, "stop")), i + 1 == count);
        append_text(joint, "content", get(event, "content"));
        append_list(joint, "tokens", get(event, "tokens"));
        const json_t *logprobs = json_object_get(event, "completion_probabilities");
        if (logprobs) append_list(joint, "completion_probabilities", logprobs);
        ck_assert_uint_eq(count_at(event, "index"), 0);
    }
    const json_t *answer = whole.exchange.whole, *last = json_array_get(events, count - 1), *member;
    const char *key;
    json_object_foreach (joint, key, event) check_equal(event, get(answer, key), key);
    static const char *const same[] = {"stop_type",        "stopping_word",    "model",
                                       "prompt",           "truncated",        "has_new_line",
                                       "tokens_predicted", "tokens_evaluated", "tokens_cached"};
    for (i = 0; i < COUNT_OF(same); i++) check_equal(get(last, same[i]), get(answer, same[i]), same[i]);
    ck_assert_str_eq(text_at(answer, "stop_type"), natives[_i].stop_type);
    ck_assert_str_eq(text_at(answer, "stopping_word"), natives[_i].word);
    ck_assert_ptr_nonnull(strstr(text_at(answer, "prompt"), "def f(x):"));
    ck_assert(json_is_false(get(answer, "truncated")));
    ck_assert_uint_eq(json_array_size(get(answer, "tokens")), count_at(answer, "tokens_predicted"));
    member = json_object_get(answer, "completion_probabilities");
    ck_assert_int_eq(member != NULL, _i == 0);
    if (member) ck_assert_uint_eq(json_array_size(get(json_array_get(member, 0), "top_logprobs")), 1);
    get(get(answer, "timings"), "predicted_ms");
    json_decref(joint);
    json_decref(events);
    free_request(&whole);
    free_request(&stream);
    close_model();
}
END_TEST

/* A request may choose fields of the answer. The last answer of a choice must have only these fields, under the names
 * that the request used. The other chunks of a stream have all fields. */
START_TEST(chosen_fields) {
    json_t *fields = json_pack("[s, s, s, s]", "content", "generation_settings/top_k", "timings/no/such", "nothing");
    open_model(DEMO, NULL, 256);
    for (int stream = 0; stream < 2; stream++) {
        answered a;
        read_request(&a, FR_JOB_NATIVE, LINE_BODY "}", 1, stream);
        a.request.fields = fields;
        run(&a);
        json_t *events = stream ? events_of(&a.exchange) : NULL;
        const json_t *last = stream ? json_array_get(events, json_array_size(events) - 1) : a.exchange.whole;
        ck_assert_uint_eq(json_object_size(last), 2);
        text_at(last, "content");
        count_at(last, "generation_settings/top_k");
        if (stream) ck_assert_uint_gt(json_object_size(json_array_get(events, 0)), 2);
        json_decref(events);
        free_request(&a);
    }
    json_decref(fields);
    close_model();
}
END_TEST

/* The answer must report the settings with which the request was run. */
START_TEST(settings_are_read_back) {
    open_model(DEMO, NULL, 128);
    answered a;
    read_request(&a, FR_JOB_NATIVE,
                 LINE_BODY ", \"temp\": 0.25, \"top_k\": 7, \"seed\": 9, \"stop\": \"x\\u00e9\", \"typical_p\": 0.5, "
                           "\"dry_sequence_breakers\": [\"a\", \"b\"], \"repeat_penalty\": 1.5, \"ignore_eos\": true}",
                 1, false);
    require(fr_options_set_text(a.choices[0].job.options, FR_OPT_LOGIT_BIAS, "5+1.5,7-inf,9-2"));
    run(&a);
    json_t *expected =
               json_pack("{s:f, s:i, s:i, s:[s], s:f, s:[s, s], s:f, s:b, s:i, s:i, s:b}", "temperature", 0.25, "top_k",
                         7, "seed", 9, "stop", "x\xc3\xa9", "typical_p", 0.5, "dry_sequence_breakers", "a", "b",
                         "repeat_penalty", 1.5, "ignore_eos", 1, "n_predict", 40, "n_probs", 0, "stream", 0),
           *value;
    json_t *biases = json_pack("[{s:i, s:f}, {s:i, s:b}, {s:i, s:i}]", "token", 5, "bias", 1.5, "token", 7, "bias", 0,
                               "token", 9, "bias", -2);
    json_t *order = json_pack("[s, s, s, s, s, s, s, s, s]", "penalties", "dry", "top_n_sigma", "top_k", "typ_p",
                              "top_p", "min_p", "xtc", "temperature");
    const json_t *settings = get(a.exchange.whole, "generation_settings");
    const char *key;
    json_object_foreach (expected, key, value) check_equal(get(settings, key), value, key);
    check_equal(get(settings, "logit_bias"), biases, "logit_bias");
    check_equal(get(settings, "samplers"), order, "samplers");
    json_decref(expected);
    json_decref(biases);
    json_decref(order);
    free_request(&a);
    close_model();
}
END_TEST

FR_SUITE("serve_answer") {
    TCase *streams = tcase_create("streams"), *parts = tcase_create("parts"), *events = tcase_create("events");
    TCase *errors = tcase_create("errors"), *native = tcase_create("native");
    fr_test_add_loop(streams, streams_say_what_whole_answers_say, (int)COUNT_OF(bodies), 2);
    tcase_add_test(streams, choices_take_turns);
    tcase_add_loop_test(streams, chunks_tell_what_was_drafted, 0, 4);
    tcase_add_loop_test(streams, log_probabilities_come_with_their_text, 0, 2);
    tcase_add_loop_test(parts, parts_are_told_apart, 0, (int)COUNT_OF(replies));
    tcase_add_test(parts, one_call_ends_a_reply);
    tcase_add_loop_test(parts, dialects_tell_the_same_items, 0, (int)COUNT_OF(replies));
    tcase_add_loop_test(parts, ollama_tells_lines, 0, (int)COUNT_OF(replies));
    tcase_add_test(parts, custom_tools_are_called_with_a_text);
    tcase_add_test(parts, custom_tools_of_chats_are_called_with_a_text);
    tcase_add_test(parts, clients_run_searches_and_keep_thoughts);
    tcase_add_test(parts, dialects_tell_how_it_ends);
    tcase_add_test(parts, chunks_are_valid_text);
    tcase_add_loop_test(events, chunks_tell_how_it_goes, 0, 2);
    tcase_add_test(errors, too_long_a_prompt_is_told);
    tcase_add_test(errors, failures_on_the_way_are_told);
    tcase_add_test(errors, refusals_are_told);
    tcase_add_test(errors, interrupts_are_limits);
    tcase_add_loop_test(native, native_answers, 0, 2);
    tcase_add_test(native, settings_are_read_back);
    tcase_add_test(native, chosen_fields);
    TCase *const cases[] = {streams, parts, events, errors, native};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        tcase_set_timeout(cases[i], 120);
        suite_add_tcase(suite, cases[i]);
    }
}
