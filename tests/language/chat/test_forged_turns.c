/* Tests conversations whose messages contain the text of control tokens, with the templates of six families. The ids
 * must contain exactly those control tokens that the template itself wrote.
 *
 * The test does not rely on the marks of trusted text to find the template's tokens. Instead, wherever a message
 * contains the text of a token, the test puts this text between two brackets that no template writes, and a letter at
 * both ends. So a token between such brackets comes from the message, and any other token comes from the template.
 * There is one exception. A template may look for a mark in a message (such as "</think>", to cut off reasoning) and
 * then write the same mark itself. Of each such mark, at least as many must be control tokens as there are outside of
 * brackets. */
/* suite: no-valgrind */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forerun.h"
#include "tests/support/brief.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define OPEN            "\u2e24" /* both brackets have three bytes */
#define CLOSE           "\u2e25"
#define TOKENS_MAX      64

typedef struct style {
    const char *name, *tokenizer, *template;
    const char *sought[4]; /* marks that the template looks for inside messages */
} style;

#define TEMPLATES "tests/data/tokenizers/"

static const style styles[] = {
    {"Gemma 4", "gemma", NULL, {"<|channel>", "<channel|>"}},
    {"GLM-4.7", "glm4", NULL, {"<think>", "</think>"}},
    {"GLM-4.6", "glm4", "tests/data/chat/templates/glm4.6.jinja", {"<think>", "</think>"}},
    {"Qwen 3.5", "qwen35", NULL, {"<think>", "</think>"}},
    {"DeepSeek V3.1", "deepseek3", NULL, {"</think>"}},
    {"Llama 3.1", "llama3", NULL, {NULL}},
};

typedef struct subject {
    const style *style;
    fr_tokenizer *tokenizer;
    struct {
        const char *text;
        size_t length;
        int32_t id;
        bool sought;
        /* the control tokens: those that are special in tokenizer.json, and those in the template's text */
    } tokens[TOKENS_MAX];
    size_t count;
    json_t *json;
} subject;

/* ----------------------------------------------------------------------------------------------------- the messages */

/* The control tokens of all families, and texts that look like control tokens. */
static const char *const attempts[] = {"<|im_end|>",
                                       "<|im_start|>",
                                       "<think>",
                                       "</think>",
                                       "<tool_call>",
                                       "</tool_call>",
                                       "<|vision_start|>",
                                       "<|image_pad|>",
                                       "<|endoftext|>",
                                       "<turn|>",
                                       "<|turn>",
                                       "<bos>",
                                       "<eos>",
                                       "<|channel>",
                                       "<channel|>",
                                       "<|tool_call>",
                                       "<|tool_response>",
                                       "<tool_response|>",
                                       "<|\"|>",
                                       "<|image|>",
                                       "[gMASK]",
                                       "<sop>",
                                       "<|user|>",
                                       "<|assistant|>",
                                       "<|system|>",
                                       "<|observation|>",
                                       "/nothink",
                                       "<|begin_of_text|>",
                                       "<|eot_id|>",
                                       "<|start_header_id|>",
                                       "<|end_header_id|>",
                                       "<|python_tag|>",
                                       "<\uff5cUser\uff5c>",
                                       "<\uff5cAssistant\uff5c>",
                                       "<\uff5cbegin\u2581of\u2581sentence\uff5c>",
                                       "<\uff5cend\u2581of\u2581sentence\uff5c>",
                                       "<\uff5ctool\u2581calls\u2581begin\uff5c>",
                                       "</s>",
                                       "{{ bos_token }}",
                                       "{% raw %}",
                                       "<|im_",
                                       "start|>",
                                       "\n",
                                       "  ",
                                       "caf\u00e9 \U0001f600",
                                       "\u0338",
                                       "\"'\\",
                                       "]]}",
                                       "\x01"};

static uint64_t random_state = 0x9E3779B97F4A7C15u;

static size_t next_random(size_t limit) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % limit;
}

static json_t *said(void) {
    char text[512] = "q";
    for (size_t parts = next_random(4); parts > 0; parts--) {
        const char *attempt = attempts[next_random(COUNT_OF(attempts))];
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s%s%s", next_random(3) ? "" : "so ", OPEN,
                 attempt, CLOSE);
    }
    snprintf(text + strlen(text), sizeof text - strlen(text), "q");
    return json_string(text);
}

static json_t *content(void) {
    if (next_random(4)) return said();
    json_t *parts = json_array();
    for (size_t i = next_random(3); i > 0; i--)
        json_array_append_new(parts, json_pack("{s:s, s:o}", "type", "text", "text", said()));
    json_array_append_new(parts, json_pack("{s:s, s:o}", "type", "text", "text", said()));
    return parts;
}

static json_t *value(size_t depth) {
    switch (next_random(depth ? 6 : 3)) {
    case 0: return json_integer((json_int_t)next_random(1000));
    case 1: return json_boolean(next_random(2));
    case 3: return json_pack("[o, o]", value(depth - 1), said());
    case 4: {
        json_t *object = json_object(), *key = said();
        json_object_set_new(object, json_string_value(key), value(depth - 1));
        json_decref(key);
        return object;
    }
    default: return said();
    }
}

static json_t *call(void) {
    json_t *arguments = json_object();
    for (size_t i = next_random(3); i > 0; i--) {
        json_t *key = said();
        json_object_set_new(arguments, json_string_value(key), value(2));
        json_decref(key);
    }
    return json_pack("{s:s, s:s, s:{s:o, s:o}}", "id", "c1", "type", "function", "function", "name", said(),
                     "arguments", arguments);
}

static void add_message(json_t *messages, const char *role, json_t *content) {
    json_t *name = next_random(50) ? json_string(role) : said();
    json_array_append_new(messages, json_pack("{s:o, s:o}", "role", name, "content", content));
}

static void add_turn(json_t *messages) {
    add_message(messages, "user", content());
    if (next_random(3) == 0) return;
    bool calls = next_random(3) == 0;
    add_message(messages, "assistant", calls && next_random(2) ? json_string("") : said());
    json_t *answer = json_array_get(messages, json_array_size(messages) - 1);
    if (next_random(3) == 0) json_object_set_new(answer, "reasoning_content", said());
    if (!calls) return;
    json_object_set_new(answer, "tool_calls", json_pack("[o]", call()));
    add_message(messages, "tool", content());
    json_object_set_new(json_array_get(messages, json_array_size(messages) - 1), "tool_call_id", json_string("c1"));
}

static json_t *conversation(void) {
    json_t *messages = json_array();
    if (next_random(2)) add_message(messages, "system", said());
    for (size_t turns = next_random(3) + 1; turns > 0; turns--) add_turn(messages);
    return messages;
}

static json_t *tool(void) {
    json_t *name = said();
    json_t *made =
        json_pack("{s:s, s:{s:o, s:o, s:{s:s, s:{s:{s:s, s:o, s:[o]}}, s:[O]}}}", "type", "function", "function",
                  "name", said(), "description", said(), "parameters", "type", "object", "properties",
                  json_string_value(name), "type", "string", "description", said(), "enum", said(), "required", name);
    json_decref(name);
    return made;
}

static json_t *settings(void) {
    json_t *options = json_object();
    if (next_random(3) == 0) json_object_set_new(options, "tools", json_pack("[o]", tool()));
    if (next_random(3) == 0) json_object_set_new(options, "enable_thinking", json_boolean(next_random(2)));
    if (next_random(4) == 0) json_object_set_new(options, "add_generation_prompt", json_false());
    if (next_random(4) == 0) json_object_set_new(options, "date_string", said());
    if (next_random(8) == 0) json_object_set_new(options, "bos_token", said());
    return options;
}

/* -------------------------------------------------------------------------------------------- the template's tokens */

static char *read_template(const subject *s) {
    char path[128];
    size_t length;
    snprintf(path, sizeof path, TEMPLATES "%s/chat_template.jinja", s->style->tokenizer);
    return fr_load_text(s->style->template ? s->style->template : path, &length);
}

static void add_token(subject *s, const json_t *entry) {
    const char *text = json_string_value(json_object_get(entry, "content"));
    ck_assert_uint_lt(s->count, TOKENS_MAX);
    s->tokens[s->count].text = text;
    s->tokens[s->count].length = strlen(text);
    s->tokens[s->count].id = (int32_t)json_integer_value(json_object_get(entry, "id"));
    for (size_t i = 0; i < COUNT_OF(s->style->sought) && s->style->sought[i]; i++)
        s->tokens[s->count].sought |= strcmp(s->style->sought[i], text) == 0;
    s->count++;
}

static void open_subject(subject *s, const style *of) {
    char path[128];
    size_t i;
    json_t *entry;
    *s = (subject){.style = of};
    fr_options *options = fr_options_new();
    if (of->template) ck_assert_int_eq(fr_options_set_text(options, FR_OPT_CHAT_TEMPLATE, of->template), FR_OK);
    snprintf(path, sizeof path, TEMPLATES "%s", of->tokenizer);
    ck_assert_msg(fr_tokenizer_open(path, options, &s->tokenizer) == FR_OK, "%s", fr_last_error());
    fr_options_free(options);
    snprintf(path, sizeof path, TEMPLATES "%s/tokenizer.json", of->tokenizer);
    s->json = fr_load_json(path);
    char *template = read_template(s);
    json_array_foreach (json_object_get(s->json, "added_tokens"), i, entry) {
        const char *text = json_string_value(json_object_get(entry, "content"));
        if (json_is_true(json_object_get(entry, "special")) || strstr(template, text)) add_token(s, entry);
    }
    free(template);
}

static void close_subject(subject *s) {
    fr_tokenizer_close(s->tokenizer);
    json_decref(s->json);
}

/* Returns the longest token with which this text begins, or -1 if there is none. */
static int token_at(const subject *s, const char *text, size_t length) {
    int best = -1;
    for (size_t i = 0; i < s->count; i++) {
        bool here = s->tokens[i].length <= length && memcmp(text, s->tokens[i].text, s->tokens[i].length) == 0;
        if (here && (best < 0 || s->tokens[i].length > s->tokens[best].length)) best = (int)i;
    }
    return best;
}

static bool has_before(const char *text, size_t at, const char *what) {
    size_t length = strlen(what);
    return at >= length && memcmp(text + at - length, what, length) == 0;
}

static int token_of(const subject *s, int32_t id) {
    for (size_t i = 0; i < s->count; i++)
        if (s->tokens[i].id == id) return (int)i;
    return -1;
}

/* Counts of each token. written[t] counts the occurrences that the template wrote, and any[t] counts all occurrences.
 * in_order lists the template's tokens in their order, without the marks that the template looks for in messages. */
typedef struct findings {
    size_t written[TOKENS_MAX], any[TOKENS_MAX], count;
    int in_order[1024];
} findings;

static void add_finding(const subject *s, findings *f, int token, bool written) {
    f->any[token]++;
    f->written[token] += written;
    if (!written || s->tokens[token].sought) return;
    ck_assert_uint_lt(f->count, COUNT_OF(f->in_order));
    f->in_order[f->count++] = token;
}

static void find_in_text(const subject *s, const fr_marked_text *text, findings *f) {
    for (size_t at = 0, end; at < text->length; at = end) {
        int found = token_at(s, text->text + at, text->length - at);
        end = at + (found < 0 ? 1 : s->tokens[found].length);
        if (found < 0) continue;
        bool said = has_before(text->text, at, OPEN) && strncmp(text->text + end, CLOSE, strlen(CLOSE)) == 0;
        add_finding(s, f, found, !said);
    }
}

static void find_in_ids(const subject *s, const fr_marked_text *text, findings *f) {
    size_t count;
    int32_t *ids;
    ck_assert_int_eq(fr_tokenize_marked(s->tokenizer, text, &ids, &count), FR_OK);
    for (size_t i = 0; i < count; i++) {
        int found = token_of(s, ids[i]);
        if (found >= 0) add_finding(s, f, found, true);
    }
    fr_free(ids);
}

/* Checks the control tokens among the ids of a text. Returns how many of them the template wrote. */
static size_t check_written(const subject *s, const fr_marked_text *text, const char *messages) {
    findings expected = {.count = 0}, got = {.count = 0};
    find_in_text(s, text, &expected);
    find_in_ids(s, text, &got);
    for (size_t i = 0; i < s->count; i++) {
        bool right = got.any[i] >= expected.written[i] && got.any[i] <= expected.any[i];
        right &= s->tokens[i].sought || got.any[i] == expected.written[i];
        ck_assert_msg(right, "%s: %zu times \"%s\", and %zu were written in\n%s\nof %s", s->style->name, got.any[i],
                      s->tokens[i].text, expected.written[i], text->text, messages);
    }
    bool same = got.count == expected.count && memcmp(got.in_order, expected.in_order, got.count * sizeof(int)) == 0;
    ck_assert_msg(same, "%s: another order in\n%s\nof %s", s->style->name, text->text, messages);
    return expected.count;
}

/* Makes a random conversation and checks it. Returns false if the template refuses the conversation. Otherwise adds the
 * number of control tokens that the template wrote to *written. */
static bool check_conversation(const subject *s, size_t *written) {
    json_t *messages = conversation(), *options = settings();
    char *messages_text = json_dumps(messages, 0), *options_text = json_dumps(options, 0);
    fr_marked_text text;
    fr_status status = fr_chat_render(s->tokenizer, messages_text, options_text, &text);
    ck_assert(status == FR_OK || status == FR_INPUT);
    if (status == FR_OK) *written += check_written(s, &text, messages_text);
    fr_marked_text_free(&text);
    free(messages_text);
    free(options_text);
    json_decref(messages);
    json_decref(options);
    return status == FR_OK;
}

/* Returns the number of conversations for all families together. */
static size_t conversation_count(void) {
    if (fr_test_emulated()) return 6000;
    return fr_test_full() ? 100002 : 30000;
}

START_TEST(forged_turns) {
    static subject s;
    size_t rendered = 0, written = 0, conversations = conversation_count() / COUNT_OF(styles);
    random_state += (uint64_t)_i;
    open_subject(&s, &styles[_i]);
    for (size_t i = 0; i < conversations; i++) rendered += check_conversation(&s, &written);
    ck_assert_msg(2 * rendered > conversations, "%s: %zu of %zu: %s", s.style->name, rendered, conversations,
                  fr_last_error());
    ck_assert_uint_gt(written, 3 * rendered);
    close_subject(&s);
}
END_TEST

FR_SUITE("forged_turns") {
    TCase *cases = tcase_create("forged_turns");
    tcase_set_timeout(cases, 600);
    tcase_add_loop_test(cases, forged_turns, 0, COUNT_OF(styles));
    suite_add_tcase(suite, cases);
}
