/* Implements asking.h: sends requests for text and reads the answers. */
#include "tests/support/asking.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *key, const char *const *words) {
    while (*words && strcmp(key, *words) != 0) words++;
    return *words != NULL;
}

/* ---------------------------------------------------------------------------------------------- contents of answers */

/* Appends values to an array without their member "index". The tool calls of a stream have this member, but those of a
 * whole answer do not. */
static void extend(json_t *array, const json_t *values) {
    const json_t *value;
    size_t i;
    json_array_foreach (values, i, value) {
        json_t *copy = json_copy((json_t *)(uintptr_t)value);
        if (json_is_object(copy)) json_object_del(copy, "index");
        json_array_append_new(array, copy);
    }
}

/* Adds the next part of a streamed choice, or of one of its members, to the earlier parts. */
static void join(json_t *into, const json_t *part) {
    static const char *const left_out[] = {"index",
                                           "id",
                                           "type",
                                           "object",
                                           "created",
                                           "model",
                                           "timings",
                                           "id_slot",
                                           "generation_settings",
                                           "prompt",
                                           "tokens_cached",
                                           NULL};
    static const char *const texts[] = {"content", "reasoning_content", "text", "arguments", "name", NULL};
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)part, key, value) {
        json_t *there = json_object_get(into, key);
        if (json_is_null(value) || is_one_of(key, left_out)) continue;
        if (strcmp(key, "message") == 0 || strcmp(key, "delta") == 0) {
            join(into, value);
        } else if (json_is_object(value)) {
            if (!there) json_object_set_new(into, key, there = json_object());
            join(there, value);
        } else if (json_is_array(value)) {
            if (!there) json_object_set_new(into, key, there = json_array());
            extend(there, value);
        } else if (there && json_is_string(value) && is_one_of(key, texts)) {
            json_object_set_new(into, key, json_sprintf("%s%s", json_string_value(there), json_string_value(value)));
        } else {
            json_object_set(into, key, value);
        }
    }
}

static json_t *choice_at(json_t *said, const json_t *index) {
    char key[32];
    snprintf(key, sizeof key, "%lld", (long long)json_integer_value(index));
    if (!json_object_get(said, key)) json_object_set_new(said, key, json_object());
    return json_object_get(said, key);
}

static void add(json_t *said, const json_t *event) {
    const json_t *choices = json_object_get(event, "choices"), *usage = json_object_get(event, "usage"), *choice;
    size_t i;
    if (json_object_get(event, "error"))
        json_object_update((json_t *)said, (json_t *)(uintptr_t)event);
    else if (!choices)
        join(choice_at(said, json_object_get(event, "index")), event);
    json_array_foreach (choices, i, choice) join(choice_at(said, json_object_get(choice, "index")), choice);
    if (!json_is_object(usage)) return;
    json_object_set(said, "prompt_tokens", json_object_get(usage, "prompt_tokens"));
    json_object_set(said, "completion_tokens", json_object_get(usage, "completion_tokens"));
}

/* Removes empty values. A stream leaves out values for which a whole answer has "". */
static void tidy(json_t *said) {
    const char *key;
    void *next;
    json_t *value;
    json_object_foreach_safe(said, next, key, value) {
        if (json_is_object(value)) tidy(value);
        bool empty = json_is_string(value)  ? json_string_length(value) == 0
                     : json_is_array(value) ? json_array_size(value) == 0
                                            : json_is_object(value) && json_object_size(value) == 0;
        if (empty) json_object_del(said, key);
    }
}

json_t *fr_whole_said(const json_t *answer) {
    json_t *said = json_object();
    const json_t *one;
    size_t i;
    if (!json_is_array(answer)) add(said, answer);
    json_array_foreach (answer, i, one) add(said, one);
    tidy(said);
    return said;
}

void fr_same_said(const json_t *expected, const json_t *got, const char *what) {
    if (json_equal(expected, got)) return;
    char *a = json_dumps(expected, JSON_SORT_KEYS), *b = json_dumps(got, JSON_SORT_KEYS);
    ck_abort_msg("%s: not\n%s\nbut\n%s", what, a, b);
}

/* ---------------------------------------------------------------------------------------------------------- streams */

/* Returns the text after "data: " of the next event, or NULL if there is no more event. The caller frees it. */
static char *next_line(fr_events *e) {
    for (;;) {
        char *end = e->size ? strstr(e->bytes, "\n\n") : NULL;
        if (end) {
            bool data = strncmp(e->bytes, "data: ", 6) == 0;
            char *line = data ? strndup(e->bytes + 6, (size_t)(end - e->bytes) - 6) : NULL;
            e->size -= (size_t)(end + 2 - e->bytes);
            memmove(e->bytes, end + 2, e->size + 1);
            if (line) return line;
            continue;
        }
        e->bytes = realloc(e->bytes, e->size + 65536 + 1);
        ck_assert_ptr_nonnull(e->bytes);
        ssize_t got = fr_client_read(e->client, e->bytes + e->size, 65536);
        e->whole = got == 0 && e->size == 0;
        if (got <= 0) return NULL;
        e->size += (size_t)got;
        e->bytes[e->size] = '\0';
    }
}

json_t *fr_events_next(fr_events *e) {
    char *line = next_line(e);
    bool done = line && strcmp(line, "[DONE]") == 0;
    json_t *event = line && !done ? json_loads(line, 0, NULL) : NULL;
    ck_assert_msg(!line || done || event, "no JSON: %s", line);
    free(line);
    if (done) ck_assert_ptr_null(next_line(e));
    e->count += event != NULL;
    return event;
}

json_t *fr_events_said(fr_events *e) {
    json_t *said = json_object();
    for (json_t *event; (event = fr_events_next(e)); json_decref(event)) add(said, event);
    tidy(said);
    return said;
}

void fr_events_close(fr_events *e) {
    fr_client_close(e->client);
    free(e->bytes);
    *e = (fr_events){0};
}

/* ------------------------------------------------------------------------------------------------- sending requests */

static bool send_request(fr_client *client, const char *path, const json_t *body) {
    char *text = body ? json_dumps(body, 0) : NULL;
    bool sent = fr_client_ask(client, body ? "POST" : "GET", path, NULL, text);
    free(text);
    return sent;
}

fr_client *fr_ask_begin(uint16_t port, const char *path, const json_t *body, int *status) {
    fr_client *client = fr_client_open(port);
    *status = 0;
    if (client && send_request(client, path, body)) *status = fr_client_head(client);
    return client;
}

fr_events fr_ask_stream(uint16_t port, const char *path, const json_t *body) {
    int status;
    fr_events events = {.client = fr_ask_begin(port, path, body, &status)};
    ck_assert_int_eq(status, 200);
    return events;
}

static json_t *read_json(fr_client *client) {
    char *text = fr_client_body(client, NULL);
    json_t *answer = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    free(text);
    return answer;
}

json_t *fr_ask_on(fr_client *client, const char *path, const json_t *body) {
    int status = send_request(client, path, body) ? fr_client_head(client) : 0;
    if (status == 200 && json_is_true(json_object_get(body, "stream"))) {
        fr_events events = {.client = client};
        json_t *said = fr_events_said(&events);
        if (!events.whole) json_object_set_new(said, "error", json_string("the stream was cut"));
        free(events.bytes);
        return said;
    }
    json_t *answer = status ? read_json(client) : NULL, *said = answer ? fr_whole_said(answer) : NULL;
    if (said && status != 200) json_object_set_new(said, "status", json_integer(status));
    json_decref(answer);
    return said;
}

json_t *fr_ask_ok(uint16_t port, const char *path, const json_t *body) {
    fr_client *client = fr_client_open(port);
    ck_assert_ptr_nonnull(client);
    json_t *said = fr_ask_on(client, path, body);
    ck_assert_ptr_nonnull(said);
    if (json_object_get(said, "error")) ck_abort_msg("%s: %s", path, json_dumps(said, 0));
    fr_client_close(client);
    return said;
}

int fr_ask_json(uint16_t port, const char *path, const json_t *body, json_t **answer) {
    int status;
    fr_client *client = fr_ask_begin(port, path, body, &status);
    *answer = status ? read_json(client) : NULL;
    fr_client_close(client);
    return status;
}

json_t *fr_body(const char *format, ...) {
    json_error_t error;
    va_list values;
    va_start(values, format);
    json_t *body = json_vpack_ex(&error, 0, format, values);
    va_end(values);
    ck_assert_msg(body != NULL, "%s", error.text);
    return body;
}

/* --------------------------------------------------------------------------------------------------- random choices */

/* Draws from xorshift64. */
size_t fr_chance(uint64_t *state, size_t below) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (size_t)((*state >> 11) % below);
}

static json_t *words(uint64_t *state, size_t most) {
    static const char *const list[] = {"the",   "river",  "engine", "water", "return", "if",     "small",
                                       "old",   "is",     "page",   "in",    "a",      "number", "of",
                                       "north", "street", "value",  "write", "é",      "seven"};
    char text[2048];
    size_t count = 1 + fr_chance(state, most), length = (size_t)snprintf(text, sizeof text, "The");
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, " %s",
                                   list[fr_chance(state, sizeof list / sizeof *list)]);
    return json_string(text);
}

static json_t *messages(uint64_t *state) {
    json_t *turns = json_array();
    const char *system = "You are a careful assistant. Say what you know, and say what you do not know.";
    if (fr_chance(state, 2)) json_array_append_new(turns, fr_body("{s:s, s:s}", "role", "system", "content", system));
    if (fr_chance(state, 3) == 0) {
        json_array_append_new(turns, fr_body("{s:s, s:o}", "role", "user", "content", words(state, 12)));
        json_array_append_new(turns, fr_body("{s:s, s:o}", "role", "assistant", "content", words(state, 12)));
    }
    json_array_append_new(turns, fr_body("{s:s, s:o}", "role", "user", "content", words(state, 40)));
    return turns;
}

static void draw_sampling(uint64_t *state, json_t *body) {
    static const struct {
        const char *name;
        double value;
    } ways[] = {{"top_k", 5},
                {"top_k", 0},
                {"top_p", 0.9},
                {"min_p", 0.3},
                {"repeat_penalty", 1.3},
                {"presence_penalty", 0.5},
                {"frequency_penalty", 1},
                {"typical_p", 0.8},
                {"dry_multiplier", 0.8},
                {"xtc_probability", 0.5},
                {"dynatemp_range", 0.3}};
    if (fr_chance(state, 3) == 0) {
        json_object_set_new(body, "temperature", json_integer(0));
        return;
    }
    json_object_set_new(body, "temperature", json_real(0.4 + 0.1 * (double)fr_chance(state, 10)));
    json_object_set_new(body, "seed", json_integer((json_int_t)fr_chance(state, 1000000)));
    for (size_t i = 0; i < 2; i++) {
        size_t way = fr_chance(state, sizeof ways / sizeof *ways);
        bool whole = strcmp(ways[way].name, "top_k") == 0;
        json_object_set_new(body, ways[way].name,
                            whole ? json_integer((json_int_t)ways[way].value) : json_real(ways[way].value));
    }
}

json_t *fr_ask_otherwise(uint64_t *state, const json_t *body) {
    json_t *other = json_copy((json_t *)(uintptr_t)body);
    size_t depth = fr_chance(state, 4);
    bool stream = fr_chance(state, 2);
    json_object_set_new(other, "stream", json_boolean(stream));
    if (stream)
        json_object_set_new(other, "stream_options", fr_body("{s:b}", "include_usage", 1));
    else
        json_object_del(other, "stream_options");
    if (depth)
        json_object_set_new(other, "speculative.n_max", json_integer((json_int_t)(2 * depth - 2)));
    else
        json_object_del(other, "speculative.n_max");
    return other;
}

/* Chooses an endpoint at random. Also chooses the settings that have another form at each endpoint: the prompt and
 * log-probabilities. */
static json_t *draw_form(uint64_t *state, const char **path) {
    static const char *const paths[] = {CHAT, CHAT, COMPLETION, NATIVE};
    bool logprobs = fr_chance(state, 3) == 0;
    json_t *body = json_object();
    *path = paths[fr_chance(state, 4)];
    if (strcmp(*path, CHAT) == 0) {
        json_object_set_new(body, "messages", messages(state));
        if (logprobs) json_object_update_new(body, fr_body("{s:b, s:i}", "logprobs", 1, "top_logprobs", 2));
        return body;
    }
    json_object_set_new(body, "prompt", words(state, 60));
    if (logprobs) json_object_set_new(body, strcmp(*path, NATIVE) ? "logprobs" : "n_probs", json_integer(2));
    if (strcmp(*path, NATIVE) == 0) json_object_set_new(body, "return_tokens", json_true());
    return body;
}

/* Adds a grammar for the text to some of the bodies. If the text must not end (ignore_eos), the grammar allows it to
 * continue forever. */
static void draw_grammar(uint64_t *state, json_t *body) {
    bool endless = json_object_get(body, "ignore_eos") != NULL;
    switch (fr_chance(state, endless ? 6 : 9)) {
    case 0: json_object_set_new(body, "regex", json_string("([a-z]{2,5} )*")); break;
    case 1: json_object_set_new(body, "grammar", json_string("root ::= (\"yes \" | \"no, \" [0-9]+ \" \")*")); break;
    case 6: json_object_set_new(body, "response_format", fr_body("{s:s}", "type", "json_object")); break;
    case 7:
        json_object_set_new(
            body, "json_schema",
            fr_body("{s:s, s:{s:[s, s, s]}}", "type", "array", "items", "enum", "red", "green", "blue"));
        break;
    default: break;
    }
}

json_t *fr_draw_request(uint64_t *state) {
    static const char *const stops[] = {"e", " the", "\n", "."};
    const char *path;
    json_t *body = draw_form(state, &path);
    draw_sampling(state, body);
    json_object_set_new(body, "max_tokens", json_integer((json_int_t)(1 + fr_chance(state, 32))));
    if (fr_chance(state, 4) == 0) json_object_set_new(body, "stop", fr_body("[s]", stops[fr_chance(state, 4)]));
    if (strcmp(path, NATIVE) != 0 && fr_chance(state, 8) == 0) json_object_set_new(body, "n", json_integer(2));
    if (fr_chance(state, 8) == 0) json_object_set_new(body, "ignore_eos", json_true());
    if (strcmp(path, CHAT) == 0 && fr_chance(state, 6) == 0 && !json_object_get(body, "ignore_eos"))
        json_object_update_new(body,
                               fr_body("{s:s, s:[{s:s, s:{s:s, s:s, s:{s:{s:{s:s}}, s:[s]}}}]}", "tool_choice",
                                       "required", "tools", "type", "function", "function", "name", "f", "description",
                                       "d", "parameters", "properties", "a", "type", "integer", "required", "a"));
    else
        draw_grammar(state, body);
    json_t *other = fr_ask_otherwise(state, body);
    json_decref(body);
    return fr_body("{s:s, s:o}", "path", path, "body", other);
}
