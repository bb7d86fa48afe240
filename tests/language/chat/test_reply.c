/* Tests how replies are divided into parts. Calls have the form of the published templates. A reply may come in pieces
 * of any size. A text that only looks like a mark or a call is content.
 *
 * tests/data/replies/calls.json has messages with calls, and the texts that the published templates make of them
 * (tests/references/replies.py makes this file). The reader of JSON is compared with jansson. */
/* suite: hostile */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_buffer.h"
#include "src/language/chat/json_scan.h"
#include "src/language/chat/reply.h"
#include "src/language/chat/reply_value.h"
#include "tests/support/parts.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static uint64_t state = 88172645463325252u;

/* Returns a random number below `limit` (xorshift64*). */
static size_t draw(size_t limit) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (size_t)((state * 0x2545f4914f6cdd1du) >> 33) % limit;
}

/* ---------------------------------------------------------------------------------------------------------- replies */

/* Collects the parts of a reply in one text. For each part it has a letter for the part's kind and the part's text. A
 * NUL separates two parts. Pieces of the same part are joined. */
typedef struct part_log {
    fr_text_buffer text;
    int last;
    size_t most; /* size of the longest piece */
} part_log;

static void take_part(void *context, fr_reply_part part, const char *text, size_t length) {
    static const char letters[] = {
        [FR_REPLY_CONTENT] = 'c',   [FR_REPLY_REASONING] = 'r', [FR_REPLY_CALL] = 'i',     [FR_REPLY_NAME] = 'n',
        [FR_REPLY_ARGUMENTS] = 'a', [FR_REPLY_CALL_END] = 'e',  [FR_REPLY_CALL_VOID] = 'v'};
    part_log *l = context;
    bool joined =
        l->last == (int)part && (part == FR_REPLY_CONTENT || part == FR_REPLY_REASONING || part == FR_REPLY_ARGUMENTS);
    if (l->last >= 0 && !joined) fr_text_append(&l->text, "", 1);
    if (!joined) fr_text_append(&l->text, &letters[part], 1);
    fr_text_append(&l->text, text, length);
    l->last = (int)part;
    if (length > l->most) l->most = length;
}

/* Returns the call format of a template. `name` is the template's path in tests/data. */
static fr_reply_format format_in(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "tests/data/%s", name);
    size_t length;
    char *source = fr_load_text(path, &length);
    fr_reply_format format = fr_reply_format_of(source, length, NULL);
    free(source);
    return format;
}

/* Returns the call format of the template with this name. If `style` begins with "=", the rest of `style` is the
 * template's text instead. */
static fr_reply_format format_of(const char *style) {
    char name[128];
    if (*style == '=') return fr_reply_format_of(style + 1, strlen(style + 1), NULL);
    snprintf(name, sizeof name, "templates/%s.jinja", style);
    return format_in(name);
}

typedef struct run {
    const fr_reply_format *format;
    const char *prompt;
    json_t *tools;
    bool whole, cut;
    size_t piece; /* greatest number of bytes in a piece; 0: the reply is one piece */
} run;

/* Reads a reply and returns its parts. Sets *message to the whole message as JSON. */
static part_log read_reply(const run *how, const char *reply, size_t length, json_t **message) {
    part_log l = {.last = -1};
    fr_reply_reader *reader;
    require(fr_reply_reader_new(take_part, &l, &reader));
    const char *prompt = how->prompt ? how->prompt : "";
    require(fr_reply_reader_begin(reader, how->format, prompt, strlen(prompt), how->tools, 7, how->whole));
    for (size_t at = 0, n; at < length; at += n) {
        n = how->piece ? 1 + draw(how->piece) : length;
        if (n > length - at) n = length - at;
        require(fr_reply_reader_feed(reader, reply + at, n, false));
    }
    if (how->cut) fr_reply_reader_cut(reader);
    require(fr_reply_reader_finish(reader));
    char *json;
    size_t size;
    require(fr_reply_reader_message(reader, &json, &size));
    *message = json_loadb(json, size, JSON_ALLOW_NUL, NULL);
    if (!*message) ck_abort_msg("%s", json);
    free(json);
    fr_reply_reader_free(reader);
    return l;
}

static const char *text_at(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* ------------------------------------------------------------------------------------ calls that templates rendered */

static void check_call(const json_t *call, const json_t *expected, const char *title) {
    const json_t *function = json_object_get(call, "function");
    ck_assert_str_eq(text_at(call, "type"), "function");
    ck_assert_uint_eq(strlen(text_at(call, "id")), 9);
    ck_assert_str_eq(text_at(function, "name"), text_at(expected, "name"));
    const char *arguments = text_at(function, "arguments");
    json_t *given = json_loads(arguments, JSON_REJECT_DUPLICATES, NULL);
    const json_t *wanted = json_object_get(expected, "arguments");
    ck_assert_msg(given && json_equal(given, wanted), "%s: %s", title, arguments);
    json_decref(given);
}

static void check_message(const json_t *message, const json_t *expected, const char *title) {
    ck_assert_str_eq(text_at(message, "role"), "assistant");
    ck_assert_msg(strcmp(text_at(message, "content"), text_at(expected, "content")) == 0, "%s: content \"%s\"", title,
                  text_at(message, "content"));
    ck_assert_str_eq(text_at(message, "reasoning_content"), text_at(expected, "reasoning_content"));
    const json_t *calls = json_object_get(message, "tool_calls"), *wanted = json_object_get(expected, "tool_calls");
    ck_assert_msg(json_array_size(calls) == json_array_size(wanted), "%s: %zu calls", title, json_array_size(calls));
    for (size_t i = 0; i < json_array_size(calls); i++)
        check_call(json_array_get(calls, i), json_array_get(wanted, i), title);
}

static void same_log(const part_log *a, const part_log *b, const char *title) {
    size_t length = a->text.length;
    bool same = length == b->text.length && (length == 0 || memcmp(a->text.bytes, b->text.bytes, length) == 0);
    if (!same) ck_abort_msg("%s: cut otherwise, other parts", title);
}

START_TEST(rendered_calls) {
    json_t *root = fr_load_json("tests/data/replies/calls.json"), *cases = json_object_get(root, "cases");
    ck_assert_uint_ge(json_array_size(cases), 100);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *item = json_array_get(cases, i);
        char title[128];
        snprintf(title, sizeof title, "%s, %s", text_at(item, "template"), text_at(item, "title"));
        fr_reply_format format = format_in(text_at(item, "template"));
        run how = {.format = &format, .prompt = text_at(item, "prompt"), .tools = json_object_get(root, "tools")};
        const char *reply = text_at(item, "reply");
        json_t *message;
        part_log first = read_reply(&how, reply, strlen(reply), &message);
        check_message(message, json_object_get(item, "message"), title);
        json_decref(message);
        for (size_t piece = 1; piece <= 16; piece++) {
            how.piece = piece;
            how.whole = piece % 2 == 0;
            part_log other = read_reply(&how, reply, strlen(reply), &message);
            same_log(&first, &other, title);
            json_decref(message);
            fr_text_free(&other.text);
        }
        fr_text_free(&first.text);
    }
    json_decref(root);
}
END_TEST

/* --------------------------------------------------------------------------------------------------- random replies */

#define MISTRAL "=[TOOL_CALLS] [ARGS]"
#define SEED    "=<seed:tool_call>"
#define LFM     "=<|tool_list_start|>"
#define OLMO    "=<function_calls>"
#define GLM_4   "=[gMASK]<sop> <|observation|>"

static const char *const styles[] = {
    "gemma4", "glm",           "qwen3.5", "qwen3", "deepseek-v3", "llama3-tools", "kimi",      "minimax", SEED,
    MISTRAL,  "mistral-tools", LFM,       OLMO,    "granite",     "command-r",    "phi4-mini", GLM_4};

/* Random replies consist of these texts: whole marks, parts of marks, and texts that occur in calls. */
static const char *const scraps[] = {"<think>",
                                     "</think>",
                                     "<|channel>",
                                     "thought",
                                     "<channel|>",
                                     "<tool_call>",
                                     "</tool_call>",
                                     "<|tool_call>",
                                     "<tool_call|>",
                                     "<|\"|>",
                                     "<arg_key>",
                                     "</arg_key>",
                                     "<arg_value>",
                                     "</arg_value>",
                                     "<function=",
                                     "</function>",
                                     "<parameter=",
                                     "</parameter>",
                                     "<｜tool▁calls▁begin｜>",
                                     "<｜tool▁calls▁end｜>",
                                     "<｜tool▁call▁begin｜>",
                                     "<｜tool▁sep｜>",
                                     "<｜tool▁call▁end｜>",
                                     "<|python_tag|>",
                                     "<|tool_response>",
                                     "call:now{",
                                     "call:",
                                     "now",
                                     ">",
                                     "\n",
                                     "\n\n",
                                     "{",
                                     "}",
                                     "\"",
                                     "\"name\"",
                                     ": ",
                                     ", ",
                                     "\"arguments\"",
                                     "\"now\"",
                                     "{\"name\": \"now\", \"arguments\": {",
                                     "{\"name\": \"now\", \"parameters\": {}}",
                                     "city",
                                     "[1, 2]",
                                     "-0.5e3",
                                     "true",
                                     "None",
                                     "text and more",
                                     " ",
                                     "<",
                                     "ä",
                                     "\xf0\x9f",
                                     "now{city:",
                                     "function",
                                     "\n```json\n",
                                     "\n```",
                                     ".call(",
                                     "=\"",
                                     "\")",
                                     "\\",
                                     "\\u12",
                                     "now\n",
                                     "'now'",
                                     "now(n=1)",
                                     "now(s='",
                                     "')",
                                     "=",
                                     "[",
                                     "]",
                                     ";",
                                     "<|tool_calls_section_begin|>",
                                     "<|tool_calls_section_end|>",
                                     "<|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>",
                                     "<|tool_call_argument_begin|>",
                                     "<|tool_call_end|>",
                                     "<minimax:tool_call>",
                                     "</minimax:tool_call>",
                                     "<invoke name=\"now\">",
                                     "<parameter name=\"s\">",
                                     "</invoke>",
                                     "<seed:tool_call>",
                                     "</seed:tool_call>",
                                     "<function=now>",
                                     "<parameter=s>",
                                     "[TOOL_CALLS]",
                                     "[CALL_ID]",
                                     "[ARGS]",
                                     "<|tool_call_start|>",
                                     "<function_calls>",
                                     "</function_calls>",
                                     "<|tool_call|>",
                                     "<|/tool_call|>",
                                     "functools",
                                     "Action:",
                                     "```",
                                     "json"};

static size_t draw_reply(const char *begin, char *reply, size_t room) {
    size_t length = strlen(begin), parts = draw(24);
    memcpy(reply, begin, length);
    for (size_t i = 0; i < parts; i++) {
        const char *scrap = scraps[draw(COUNT_OF(scraps))];
        size_t n = strlen(scrap), cut = draw(6) == 0 ? draw(n) + 1 : n;
        if (length + cut > room) break;
        memcpy(reply + length, scrap, cut);
        length += cut;
    }
    return length;
}

/* Returns the reply's content. Returns NULL if the reply also has other parts. */
static const char *only_content(const part_log *l, size_t *length) {
    *length = l->text.length > 0 ? l->text.length - 1 : 0;
    if (l->last < 0) return "";
    bool only = l->text.bytes[0] == 'c' && !memchr(l->text.bytes, 0, l->text.length);
    return only ? l->text.bytes + 1 : NULL;
}

/* Each reply is cut off after every byte. In each case the reader must give either the complete call, or all bytes as
 * content. */
START_TEST(any_end) {
    json_t *root = fr_load_json("tests/data/replies/calls.json"), *cases = json_object_get(root, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *item = json_array_get(cases, i);
        if (strcmp(text_at(item, "title"), "one") != 0 ||
            *text_at(json_object_get(item, "message"), "reasoning_content"))
            continue;
        fr_reply_format format = format_in(text_at(item, "template"));
        run how = {.format = &format, .tools = json_object_get(root, "tools")};
        const char *reply = text_at(item, "reply");
        const char *after = strstr(reply, "</think>"); /* skips the reasoning, since it is not part of the content */
        if (after) reply = after + strlen("</think>");
        while (*reply == '\n') reply++;
        for (size_t length = 0; length <= strlen(reply); length++) {
            json_t *message;
            how.whole = true;
            part_log l = read_reply(&how, reply, length, &message);
            size_t n;
            const char *content = only_content(&l, &n);
            const json_t *calls = json_object_get(message, "tool_calls");
            if (calls) {
                const json_t *wanted = json_object_get(json_object_get(item, "message"), "tool_calls");
                check_call(json_array_get(calls, 0), json_array_get(wanted, 0), reply);
            } else {
                ck_assert_msg(content && n == length && memcmp(content, reply, n) == 0, "%s, %zu bytes",
                              text_at(item, "template"), length);
            }
            json_decref(message);
            fr_text_free(&l.text);
        }
    }
    json_decref(root);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- examples */

/* Checks the parts of a reply. `expected` has the form of a part_log, but with '|' instead of NULs, and without the ids
 * of calls. */
static void check_run(const char *style, const char *prompt, bool whole, bool cut, const char *reply,
                      const char *expected) {
    static const char tools[] =
        "[{\"name\": \"now\", \"parameters\": {\"properties\": {\"n\": {\"type\": \"integer\"}, "
        "\"s\": {\"type\": \"string\"}, \"list\": {\"type\": \"array\"}, \"map\": {\"type\": \"object\"}}}}]";
    fr_reply_format format = format_of(style);
    json_t *list = json_loads(tools, 0, NULL), *message;
    run how = {.format = &format, .prompt = prompt, .tools = list, .whole = whole, .cut = cut, .piece = 3};
    part_log l = read_reply(&how, reply, strlen(reply), &message);
    fr_text_buffer shown = {0};
    for (size_t at = 0; at < l.text.length; at += strlen(l.text.bytes + at) + 1) {
        if (l.text.bytes[at] == 'i') continue;
        if (shown.length > 0) fr_text_append_string(&shown, "|");
        fr_text_append_string(&shown, l.text.bytes + at);
    }
    ck_assert_msg(strcmp(shown.bytes ? shown.bytes : "", expected) == 0, "%s: %s\ngives %s\nnot   %s", style, reply,
                  shown.bytes, expected);
    fr_text_free(&shown);
    fr_text_free(&l.text);
    json_decref(message);
    json_decref(list);
}

static void check_parts(const char *style, const char *prompt, bool whole, const char *reply, const char *expected) {
    check_run(style, prompt, whole, false, reply, expected);
}

START_TEST(reasoning) {
    check_parts("qwen3", "", false, "<think>\na\n\nb\n</think>\n\nhi\n", "ra\n\nb|chi\n");
    check_parts("qwen3", "<think>\n", false, "a\n</think>\n\nhi", "ra|chi");
    check_parts("qwen3", "<think>\n\n</think>\n\n", false, "hi", "chi");
    check_parts("qwen3", "", false, "\n<think></think>\nhi", "chi");
    check_parts("qwen3", "", false, "<think>\nnever ends\n", "rnever ends");
    check_parts("qwen3", "", false, "a <think>b</think>", "ca <think>b</think>");
    check_parts("qwen3", "", false, "a</think>b", "ca</think>b");
    check_parts("qwen3", "", false, "<think>a <tool_call> b</think>c", "ra <tool_call> b|cc");
    check_parts("qwen3", "", false, "\n\n hi \n\n", "c\n\n hi \n\n");
    check_parts("qwen3", "", false, "<thinking>hm</thinking>", "c<thinking>hm</thinking>");
    check_parts("gemma4", "", false, "<|channel>thought\na\n<channel|>hi", "ra|chi");
    check_parts("gemma4", "", false, "<|channel>thought<channel|>hi", "chi");
    check_parts("gemma4", "<|turn>model\n<|channel>thought\n", false, "a<channel|>hi", "ra|chi");
    check_parts("gemma4", "", false, "b<|channel>thought\na\n<channel|>hi", "cb|ra|chi");
    check_parts("gemma4", "", false, "<|channel>though<channel|>hi", "c<|channel>though<channel|>hi");
    check_parts("gemma4", "", false, "<|channel>final\nhi", "c<|channel>final\nhi");
    check_parts("gemma4", "", false, "<|channel>thou", "c<|channel>thou");
    check_parts("chatml", "", false, "<think>\na</think>", "c<think>\na</think>");
}
END_TEST

START_TEST(calls) {
    check_parts("qwen3", "", false, "a\n<tool_call>\n{\"arguments\": {\"n\":1}, \"name\": \"now\"}\n</tool_call>\n",
                "ca|nnow|a{\"n\":1}|e");
    check_parts("qwen3", "", false,
                "<tool_call>{\"name\": \"no\\u0077\", \"arguments\": \"{\\\"n\\\": 1}\"}</tool_call>",
                "nnow|a{\"n\": 1}|e");
    check_parts("qwen3", "", false, "<tool_call>{\"name\": \"now\"}", "nnow|a{}|e");
    check_parts("qwen3", "", false, "<tool_call>{\"name\": \"now\", \"arguments\": null, \"x\": [1]}</tool_call> b",
                "nnow|a{}|e|c b");
    check_parts("qwen3", "", false,
                "<tool_call>{\"name\": \"now\", \"arguments\": {\"s\": \"</tool_call>\"}}</tool_call>",
                "nnow|a{\"s\": \"</tool_call>\"}|e");
    check_parts("qwen3", "", false, "{\"name\": \"now\", \"arguments\": {\"n\": 1}}\n", "nnow|a{\"n\": 1}|e");
    check_parts("qwen3", "", false, "<think>a</think>\n\n{\"arguments\": {\"s\": \"<tool_call>\"}, \"name\": \"now\"}",
                "ra|nnow|a{\"s\": \"<tool_call>\"}|e");
    check_parts("qwen3", "", false,
                "{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n<tool_call>{\"name\": \"now\", \"arguments\": "
                "null}</tool_call>",
                "nnow|a{}|e|nnow|a{}|e");
    check_parts("qwen3", "", false, "{{\"name\": \"now\", \"arguments\": {\"n\": {}}}}", "nnow|a{\"n\": {}}|e");
    check_parts("qwen3", "", false, "<tool_call>\n{{\"name\": \"now\", \"arguments\": {}}}\n</tool_call>",
                "nnow|a{}|e");
    check_parts("glm", "", false, "<tool_call>now</tool_call>", "nnow|a{}|e");
    check_parts("glm", "", false,
                "<tool_call>now\n<arg_key>s</arg_key>\n<arg_value>1</arg_value><arg_key>n</arg_key><arg_value>\n2 "
                "</arg_value></tool_call>",
                "nnow|a{\"s\":\"1\",\"n\":2}|e");
    check_parts("glm", "", false, "<tool_call>now<arg_key>s</arg_key><arg_value>a</arg_value>b</arg_value></tool_call>",
                "nnow|a{\"s\":\"a</arg_value>b\"}|e");
    check_parts("qwen3.5", "", false,
                "<tool_call>\n<function=now>\n<parameter=s>\n\na\n</parameter>\nb\n\n</parameter>\n</function>\n",
                "nnow|a{\"s\":\"\\na\\n</parameter>\\nb\\n\"}|e");
    check_parts("qwen3.5", "", false, "<tool_call><function=now></function></tool_call>", "nnow|a{}|e");
    check_parts("gemma4", "", false,
                "<|tool_call>call:now{n:1, s:<|\"|>a\n<turn|>\"<|\"|>}<tool_call|><|tool_response>",
                "nnow|a{\"n\":1,\"s\":\"a\\n<turn|>\\\"\"}|e");
    check_parts("gemma4", "", false, "<|tool_call>call:now{<|\"|>n<|\"|>:[None,True,{}]}",
                "nnow|a{\"n\":[null,true,{}]}|e");
    check_parts("llama3-tools", "", false, "{\"name\": \"now\", \"parameters\": {\"n\": 1}}", "nnow|a{\"n\": 1}|e");
    check_parts("llama3-tools", "", false,
                "<|python_tag|>{\"type\": \"function\", \"name\": \"any\", \"parameters\": {}}", "nany|a{}|e");
    check_parts("llama3-tools", "", false, "<|python_tag|>search.call(q=\"a \"b\" c\", n=\"1\")",
                "nsearch|a{\"q\":\"a \\\"b\\\" c\",\"n\":\"1\"}|e");
    check_parts("deepseek-v3", "", false,
                "a<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>\n<"
                "｜tool▁call▁begin｜>function"
                "<｜tool▁sep｜>now\n```json\n{\"n\":1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
                "ca|nnow|a{}|e|nnow|a{\"n\":1}|e");
    check_parts("deepseek-v3", "", false,
                "<｜tool▁calls▁begin｜>\n<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>", "nnow|a{}|e");
    check_parts("deepseek-v3", "", false,
                "<｜tool▁calls▁begin｜>x<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
                "c<｜tool▁calls▁begin｜>x|nnow|a{}|e");
    check_parts("deepseek-v3", "", false,
                "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n {}\n```<｜tool▁call▁end｜>", "nnow|a{}|e");
    check_parts("gemma4", "", false, "<|tool_call>call:now{} \n<tool_call|>", "nnow|a{}|e");
    check_parts("gemma4", "", false, "<|tool_call>call:now{<|\"|>a<tool_call|><|\"|> : 1}<tool_call|>",
                "nnow|a{\"a<tool_call|>\":1}|e");
    check_parts("gemma4", "", false, "<|tool_call>call:now \n{n:1}<tool_call|>", "nnow|a{\"n\":1}|e");
    check_parts("gemma4", "", false, "<|tool_call>call:now{s:<|\"|>x<|\"|>,}<tool_call|>", "nnow|a{\"s\":\"x\"}|e");
    check_parts("gemma4", "", false,
                "<|tool_call>call:now{l:[1,<|\"|>a<|\"|>,\"b\",[2,],{s:1, },{}, ],<|\"|>n<|\"|>:2,\"o\":{},}"
                "<tool_call|>",
                "nnow|a{\"l\":[1,\"a\",\"b\",[2],{\"s\":1},{}],\"n\":2,\"o\":{}}|e");
    check_parts("gemma4", "", false, "<|tool_call>call:<|tool_call>call:now{}<tool_call|>",
                "c<|tool_call>call:|nnow|a{}|e");
}
END_TEST

#define FUNCTION         "<function=now>\n<parameter=s>\nx\n</parameter>\n</function>"
#define QWEN(...)        "<tool_call>\n<function=now>\n" __VA_ARGS__ "</function>\n</tool_call>"
#define DEEPSEEK         "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>"
#define KIMI(id, object) "<|tool_call_begin|>" id "<|tool_call_argument_begin|>" object "<|tool_call_end|>"
#define LLAMA            "{\"name\": \"now\", \"parameters\": {\"n\": 1}}"
#define OF_NOW           "{\"name\": \"now\", \"arguments\": {\"n\": 1}}"
#define OF_THEN          "{\"name\": \"then\", \"arguments\": {\"n\": 1}}"
#define WITHIN(name)     "{\"type\": \"function\", \"function\": {\"name\": \"" name "\", \"parameters\": {\"n\": 1}}}"
#define ONE              "nnow|a{\"n\": 1}|e"

/* These calls have mistakes that real models make. Public parsers of these models' replies read them as calls, so
 * forerun must read them as calls too. */
static const struct {
    const char *style, *reply, *parts;
} near_misses[] = {
    /* The opening mark is missing, but a tool's name shows that the text is a call. */
    {"qwen3.5", FUNCTION, "nnow|a{\"s\":\"x\"}|e"},
    {"qwen3.5", FUNCTION "\n</tool_call>", "nnow|a{\"s\":\"x\"}|e"},
    {"qwen3.5", "Let me look.\n\n" FUNCTION "\n</tool_call>\n" FUNCTION,
     "cLet me look.|nnow|a{\"s\":\"x\"}|e|nnow|a{\"s\":\"x\"}|e"},
    {"qwen3.5", FUNCTION "\nSo.", "nnow|a{\"s\":\"x\"}|e|cSo."},
    {"qwen3.5", "<tool_call>\n" FUNCTION "\n" FUNCTION "\n</tool_call>", "nnow|a{\"s\":\"x\"}|e|nnow|a{\"s\":\"x\"}|e"},
    {"qwen3.5", "Write <function=then>\n</function>", "cWrite <function=then>\n</function>"},
    {"qwen3", "Look:\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", "cLook:|nnow|a{}|e"},
    {"qwen3", "Look:\n{\"name\": \"now\", \"arguments\": {}}\nso.",
     "cLook:\n{\"name\": \"now\", \"arguments\": {}}\nso."},
    {"qwen3", "{\"name\": \"now\", \"arguments\": {}}\n{\"name\": \"now\", \"arguments\": {\"n\": 2}}",
     "nnow|a{}|e|nnow|a{\"n\": 2}|e"},
    {"glm", "now\n<arg_key>n</arg_key>\n<arg_value>1</arg_value>\n</tool_call>", "nnow|a{\"n\":1}|e"},
    {"glm", "now\nand then", "cnow\nand then"},
    {"glm", "now</tool_call> and", "nnow|a{}|e|c and"},
    {"gemma4", "call:now{n:1}<tool_call|>", "nnow|a{\"n\":1}|e"},
    {"gemma4", "I do.\ncall:now{n:1}<tool_call|>", "cI do.|nnow|a{\"n\":1}|e"},
    {"gemma4", "call:then{n:1}", "ccall:then{n:1}"},
    {"gemma4", "I do.\ncall:now{n:1}", "cI do.\ncall:now{n:1}"},
    {"deepseek-v3", "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>", "nnow|a{}|e"},

    {"qwen3.5", "So:\n```xml\n" FUNCTION "\n```\nand\n" FUNCTION,
     "cSo:\n```xml\n" FUNCTION "\n```\nand|nnow|a{\"s\":\"x\"}|e"},
    {GLM_4, "So:\n ```\nnow\n{\"n\": 1}\n ```\n", NULL},
    {"qwen3.5", "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", "nnow|a{}|e"},
    {"glm", "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>", "nnow|a{}|e"},

    /* The closing mark is missing. */
    {"qwen3.5", QWEN("<parameter=s>\nx\n"), "nnow|a{\"s\":\"x\"}|e"},
    {"qwen3.5", QWEN("<parameter=s>x"), "nnow|a{\"s\":\"x\"}|e"},
    {"qwen3.5", QWEN("<parameter=s>\nx\n<parameter=n>\n1\n</parameter>\n"), "nnow|a{\"s\":\"x\",\"n\":1}|e"},
    {"qwen3.5", QWEN("<parameter=s>\nx\n<parameter=n>\n1\n"), "nnow|a{\"s\":\"x\",\"n\":1}|e"},
    {"qwen3.5", QWEN("<parameter=s>\nx\n<parameter=zz>\n</parameter>\n"), "nnow|a{\"s\":\"x\\n<parameter=zz>\"}|e"},
    {"qwen3.5", QWEN("<parameter=s>\n</function> ends it, then <function= and </tool_call>.\n</parameter>\n"),
     "nnow|a{\"s\":\"</function> ends it, then <function= and </tool_call>.\"}|e"},
    {"qwen3.5", "<tool_call>\n<function=now>\n<parameter=s>\nx\n</parameter>\n</tool_call>", "nnow|a{\"s\":\"x\"}|e"},
    {"qwen3.5", "<tool_call>\n<function=now>\n<parameter=s>\nx\n</tool_call>", "nnow|a{\"s\":\"x\"}|e"},
    {"qwen3.5", "<tool_call>\n" FUNCTION "\n<tool_call>\n" FUNCTION, "nnow|a{\"s\":\"x\"}|e|nnow|a{\"s\":\"x\"}|e"},
    {"glm", "<tool_call>now<arg_key>s</arg_key><arg_value>x<arg_key>n</arg_key><arg_value>1</tool_call>",
     "nnow|a{\"s\":\"x\",\"n\":1}|e"},
    {"glm", "<tool_call>now<arg_key>s</arg_key><arg_value>x</tool_call>\n<tool_call>now</tool_call>",
     "nnow|a{\"s\":\"x\"}|e|nnow|a{}|e"},
    {"glm", "<tool_call>now<arg_key>s</arg_key><arg_value>x</tool_call> y</arg_value></tool_call>",
     "nnow|a{\"s\":\"x</tool_call> y\"}|e"},
    {"qwen3", "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n<tool_call>{\"name\": \"now\", \"arguments\": {}}",
     "nnow|a{}|e|nnow|a{}|e"},

    /* A call is inside the reasoning. If the reasoning never ends, the call is read as a call. If the reasoning ends,
     * everything in it is reasoning. */
    {"qwen3.5", "<think>\nlook\n<tool_call>\n" FUNCTION "\n</tool_call>", "rlook|nnow|a{\"s\":\"x\"}|e"},
    {"qwen3.5", "<think>\nlook\n" FUNCTION, "rlook|nnow|a{\"s\":\"x\"}|e"},
    {"qwen3.5", "<think>\nI could <tool_call>\n" FUNCTION "\n</tool_call>\nbut\n</think>\n\ndone",
     "rI could <tool_call>\n" FUNCTION "\n</tool_call>\nbut|cdone"},
    {"qwen3.5", "<think>\nno <function=then>, no <tool_call> at all", "rno <function=then>, no <tool_call> at all"},
    {"qwen3",
     "<think>look\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\n<tool_call>{\"name\": \"now\"}",
     "rlook|nnow|a{}|e|nnow|a{}|e"},
    {"qwen3", "<think>a <tool_call>{\"name\": \"then\"}</tool_call>", "ra <tool_call>{\"name\": \"then\"}</tool_call>"},
    {"glm", "<think>look <tool_call>now</tool_call>", "rlook |nnow|a{}|e"},
    {"gemma4", "<|channel>thought\nlook<|tool_call>call:now{n:1}<tool_call|>", "rlook|nnow|a{\"n\":1}|e"},
    {"gemma4", "<|channel>thought\nlook<|tool_call>call:now{}<tool_call|> no<channel|>hi",
     "rlook<|tool_call>call:now{}<tool_call|> no|chi"},
    {"deepseek-v3", "<think>look\n" DEEPSEEK "{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "rlook|nnow|a{}|e"},

    /* The values are written as in Python. */
    {"qwen3.5", QWEN("<parameter=list>\n['x', \"it's\", True, None, (1)]\n</parameter>\n"),
     "nnow|a{\"list\":\"['x', \\\"it's\\\", True, None, (1)]\"}|e"},
    {"qwen3.5", QWEN("<parameter=list>\n['x', \"it's\", True, None, 1.5,]\n</parameter>\n"),
     "nnow|a{\"list\":[\"x\", \"it's\", true, null, 1.5]}|e"},
    {"glm",
     "<tool_call>now<arg_key>map</arg_key><arg_value>{'k': False, 'q': 'it\\'s \"\\x41\"'}</arg_value></tool_call>",
     "nnow|a{\"map\":{\"k\": false, \"q\": \"it's \\\"\\u0041\\\"\"}}|e"},
    {"qwen3", "<tool_call>{'name': 'now', 'arguments': {'s': 'x', 'list': [None,],}}</tool_call>",
     "nnow|a{\"s\": \"x\", \"list\": [null]}|e"},
    {"gemma4", "<|tool_call>call:now{s:'x','map':{'k':True}}<tool_call|>",
     "nnow|a{\"s\":\"x\",\"map\":{\"k\":true}}|e"},
    {"deepseek-v3", DEEPSEEK "{'s': 'x'}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "nnow|a{\"s\": \"x\"}|e"},

    {"qwen3.5", QWEN("<parameter=list>\n(1, ('a', 2), (), (3,))\n</parameter>\n"),
     "nnow|a{\"list\":[1, [\"a\", 2], [], [3]]}|e"},

    /* Closing brackets are missing before the mark that ends the call. */
    {"qwen3", "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"n\": 1}\n</tool_call>", "nnow|a{\"n\": 1}|e"},
    {"qwen3", "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"list\": [{\"n\": 1</tool_call> so",
     "nnow|a{\"list\": [{\"n\": 1}]}|e|c so"},
    {"qwen3", "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"s\": \"x</tool_call>", NULL},
    {"qwen3", "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"s\":</tool_call>", NULL},
    {"deepseek-v3", DEEPSEEK "{\"n\": 1<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "nnow|a{\"n\": 1}|e"},
    {"gemma4", "<|tool_call>call:now{map:{list:[1,2<tool_call|>", "nnow|a{\"map\":{\"list\":[1,2]}}|e"},
    {"gemma4", "<|tool_call>call:now{s:<|\"|>x<|\"|><tool_call|>", "nnow|a{\"s\":\"x\"}|e"},
    {"gemma4", "<|tool_call>call:now{s<tool_call|>", NULL},
    {LFM, "<|tool_call_start|>[now(n=1, list=[1, {'k': 2<|tool_call_end|>",
     "nnow|a{\"n\":1,\"list\":[1, {\"k\": 2}]}|e"},
    {LFM, "<|tool_call_start|>[now(n=<|tool_call_end|>", NULL},
    {"kimi", KIMI("functions.now:0", "{\"n\": 1"), "nnow|a{\"n\": 1}|e"},

    /* The reply is cut off inside a mark. */
    {SEED, "<seed:tool_call>\n<function=now>\n</function>\n</seed:too", "nnow|a{}|e"},
    {"kimi", "<|tool_calls_section_begin|>" KIMI("functions.now:0", "{\"n\": 1}") "<|tool_calls_sec",
     "nnow|a{\"n\": 1}|e"},

    /* The marks that come before a call are missing. */
    {"deepseek-v3", "now<｜tool▁sep｜>{}<｜tool▁call▁end｜>", "nnow|a{}|e"},
    {"deepseek-v3", "Look.\nfunction<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜>", "cLook.|nnow|a{}|e"},
    {"deepseek-v3", "then<｜tool▁sep｜>{}<｜tool▁call▁end｜>", NULL},
    {"kimi", "functions.now:0<|tool_call_argument_begin|>{}<|tool_call_end|>", "nnow|a{}|e"},
    {"kimi", "functions.then:0<|tool_call_argument_begin|>{}<|tool_call_end|>", NULL},
    {"kimi", "for now:0", NULL},

    /* The function has no parameters, and the call has nothing where its arguments should be. */
    {"kimi", KIMI("functions.now:0", ""), "nnow|a{}|e"},
    {"kimi", "<|tool_calls_section_begin|>" KIMI("functions.now:0", " \n") KIMI("functions.now:1", "{}"),
     "nnow|a{}|e|nnow|a{}|e"},
    {"kimi", "<|tool_call_begin|>functions.now:0<|tool_call_end|>", "nnow|a{}|e"},
    {"kimi", "<|tool_call_begin|>functions.then:0<|tool_call_end|>", NULL},
    {"deepseek-v3", DEEPSEEK "<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "nnow|a{}|e"},
    {"deepseek-v3", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now<｜tool▁call▁end｜>", "nnow|a{}|e"},
    {"deepseek-v3", "<｜tool▁call▁begin｜>then<｜tool▁sep｜><｜tool▁call▁end｜>", NULL},
    {MISTRAL, "[TOOL_CALLS]now[ARGS]", "nnow|a{}|e"},
    {MISTRAL, "[TOOL_CALLS]now[ARGS][TOOL_CALLS]now[ARGS]{\"n\": 1}", "nnow|a{}|e|nnow|a{\"n\": 1}|e"},
    {MISTRAL, "[TOOL_CALLS]then[ARGS]", NULL},
    {"gemma4", "<|tool_call>call:now<tool_call|>", "nnow|a{}|e"},
    {"gemma4", "<|tool_call>call:then<tool_call|>", NULL},
    {"qwen3", "<tool_call>{\"name\": \"now\", \"arguments\": \"\"}</tool_call>", "nnow|a{}|e"},
    {"qwen3", "<tool_call>{\"name\": \"now\", \"arguments\": \" \\n\"}</tool_call>", "nnow|a{}|e"},
    {"llama3-tools", "{\"name\": \"now\", \"parameters\": \"\"}", "nnow|a{}|e"},

    /* Inside the marks of one call there are several objects, a list, or a code fence. */
    {"qwen3", "<tool_call>\n" OF_NOW "\n" OF_NOW "\n</tool_call>", ONE "|" ONE},
    {"qwen3", "<tool_call>\n" OF_NOW ",\n" OF_NOW "; " OF_NOW "\n</tool_call>\n<tool_call>" OF_NOW "</tool_call> so",
     ONE "|" ONE "|" ONE "|" ONE "|c so"},
    {"qwen3", "<tool_call>[" OF_NOW ", " OF_NOW "]</tool_call>", ONE "|" ONE},
    {"qwen3", "<tool_call>\n[\n" OF_NOW "\n]\n</tool_call>\n<tool_call>\n" OF_NOW "\n</tool_call>", ONE "|" ONE},
    {"qwen3", "<tool_call>\n```json\n" OF_NOW "\n```\n</tool_call>", ONE},
    {"qwen3", "<tool_call>```" OF_NOW "```</tool_call>", ONE},
    {"qwen3", "<tool_call>\n```json\n[" OF_NOW ",\n" OF_NOW "]\n```\n</tool_call>\nso", ONE "|" ONE "|cso"},
    {"qwen3", "<tool_call>\n```json\n" OF_NOW "\n" OF_NOW "\n```\n</tool_call>", ONE "|" ONE},
    {"qwen3", "<tool_call>\n```json\n" OF_NOW "\n</tool_call>", ONE},
    {"qwen3", "<tool_call>[" OF_THEN "]</tool_call>", NULL},
    {"qwen3", "<tool_call>\n```json\n" OF_THEN "\n```\n</tool_call>", NULL},
    {"qwen3", "<tool_call>\n" OF_NOW "\n" OF_THEN "\n</tool_call>", ONE "|c" OF_THEN "\n</tool_call>"},
    {"qwen3", "<tool_call>```\nls\n```</tool_call>", NULL},
    {"qwen3", "<tool_call>[1, 2]</tool_call>", NULL},
    {"qwen3.5", "<tool_call>\n[" OF_NOW ", " OF_NOW "]\n</tool_call>", ONE "|" ONE},
    {"glm", "<tool_call>\n```json\n" OF_NOW "\n```\n</tool_call>", ONE},

    /* The call is in the form in which requests describe tools: its name and arguments are in a member "function". */
    {"phi4-mini", "<|tool_call|>[" WITHIN("now") "]<|/tool_call|>", ONE},
    {"phi4-mini", "<|tool_call|>[" WITHIN("now") ", " WITHIN("now") "]<|/tool_call|>", ONE "|" ONE},
    {"phi4-mini", "functools[" WITHIN("now") "]", ONE},
    {"phi4-mini", "<|tool_call|>[" WITHIN("then") "]<|/tool_call|>", NULL},
    {"qwen3", "<tool_call>\n" WITHIN("now") "\n</tool_call>", ONE},
    {"qwen3", "<tool_call>{\"function\": {\"arguments\": {\"n\": 1}, \"name\": \"now\"}, \"id\": \"x\"}</tool_call>",
     ONE},
    {"qwen3", "<tool_call>{\"function\": \"now\", \"arguments\": {\"n\": 1}}</tool_call>", ONE},
    {"qwen3", "<tool_call>{\"function\": {\"name\": \"now\", \"arguments\": \"{\\\"n\\\": 1}\"}}</tool_call>", ONE},
    {"qwen3", "<tool_call>{\"function\": {\"n\": 1}}</tool_call>", NULL},
    {"llama3-tools", WITHIN("now"), ONE},
    {"llama3-tools", WITHIN("now") "; " WITHIN("now"), ONE "|" ONE},
    {"llama3-tools", WITHIN("then"), NULL},

    /* There are several calls in Llama's form, or there is white space before the first call. */
    {"llama3-tools", "[" LLAMA ", " LLAMA "]", "nnow|a{\"n\": 1}|e|nnow|a{\"n\": 1}|e"},
    {"llama3-tools", LLAMA "; " LLAMA, "nnow|a{\"n\": 1}|e|nnow|a{\"n\": 1}|e"},
    {"llama3-tools", LLAMA "\n" LLAMA ";" LLAMA "\n", "nnow|a{\"n\": 1}|e|nnow|a{\"n\": 1}|e|nnow|a{\"n\": 1}|e"},
    {"llama3-tools", LLAMA ", " LLAMA, "nnow|a{\"n\": 1}|e|nnow|a{\"n\": 1}|e"},
    {"llama3-tools", " \n\t" LLAMA, "nnow|a{\"n\": 1}|e"},
    {"llama3-tools", "<|python_tag|> " LLAMA "; " LLAMA, "nnow|a{\"n\": 1}|e|nnow|a{\"n\": 1}|e"},
    {"llama3-tools", LLAMA "; and {", "nnow|a{\"n\": 1}|e|c; and {"},
    {"llama3-tools", LLAMA "; {\"name\": \"then\"}", "nnow|a{\"n\": 1}|e|c; {\"name\": \"then\"}"},
    {"llama3-tools", " hi", "c hi"},

    /* Strings contain control characters, or backslashes that are not part of an escape sequence. */
    {"llama3-tools", "{\"name\": \"now\", \"parameters\": {\"s\": \"a\n\tb\x01 C:\\dir\\users \\u12 \\\"\\\\\"}}",
     "nnow|a{\"s\": \"a\\n\\tb\\u0001 C:\\\\dir\\\\users \\\\u12 \\\"\\\\\"}|e"},
    {"deepseek-v3", DEEPSEEK "{\"s\": \"a\nb \\d \\u00e4\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "nnow|a{\"s\": \"a\\nb \\\\d \\u00e4\"}|e"},
    {"qwen3", "<tool_call>{\"name\": \"now\", \"arguments\": \"{\\\"s\\\": \\\"a\nb\\\"}\"}</tool_call>",
     "nnow|a{\"s\": \"a\\nb\"}|e"},
    {"qwen3.5", QWEN("<parameter=map>\n{\"k\": \"a\nb\\d\"}\n</parameter>\n"),
     "nnow|a{\"map\":{\"k\": \"a\\nb\\\\d\"}}|e"},
};

START_TEST(calls_that_nearly_are) {
    char content[512];
    snprintf(content, sizeof content, "c%s", near_misses[_i].reply);
    const char *parts = near_misses[_i].parts;
    check_parts(near_misses[_i].style, "", true, near_misses[_i].reply, parts ? parts : content);
}
END_TEST

#define INVOKE                                                                      \
    "<invoke name=\"now\">\n<parameter name=\"s\">a <b> c</parameter>\n<parameter " \
    "name=\"n\">5</parameter>\n</invoke>\n"
#define OBJECT(name, key) "{\"name\": \"" name "\", \"" key "\": {\"n\": 1}}"
#define ACTION(id)        "{\"tool_call_id\": \"" id "\", \"tool_name\": \"now\", \"parameters\": {\"n\": 1}}"
#define PYTHON            "nnow|a{\"n\":1}|e"

/* First come replies in the formats of model cards and of the models' own templates. Then come replies in similar
 * formats, and texts that are not calls. */
static const struct {
    const char *style, *reply, *parts;
} families[] = {
    {"kimi",
     "Let me look.<|tool_calls_section_begin|>" KIMI("functions.now:0", "{\"n\": 1}")
         KIMI("functions.now:1", "{}") "<|tool_calls_section_end|>",
     "cLet me look.|" ONE "|nnow|a{}|e"},
    {"kimi",
     "<|tool_calls_section_begin|>" KIMI("now:3 ",
                                         "{\"n\": 1}\n") "<|tool_calls_section_end|><|tool_calls_section_end|>",
     ONE},
    {"kimi", KIMI("now", "{\"n\": 1}"), ONE},
    {"=<|tool_calls_section_begin|> <think>", "<think>look" KIMI("functions.now:0", "{\"s\": \"<|tool_call_end|>\"}"),
     "rlook|nnow|a{\"s\": \"<|tool_call_end|>\"}|e"},
    {"kimi", KIMI("functions.:0", "{}"), NULL},
    {"kimi", "<|tool_calls_section_begin|>none<|tool_calls_section_end|>", NULL},

    {"minimax", "<minimax:tool_call>\n" INVOKE "</minimax:tool_call>", "nnow|a{\"s\":\"a <b> c\",\"n\":5}|e"},
    {"minimax", "Look.\n<minimax:tool_call>\n" INVOKE "<invoke name='now'>\n</invoke>\n</minimax:tool_call>\n",
     "cLook.|nnow|a{\"s\":\"a <b> c\",\"n\":5}|e|nnow|a{}|e"},
    {"minimax", "<invoke name=\"now\">\n<parameter name=\"s\">x\n<parameter name=\"n\">1</parameter></invoke>",
     "nnow|a{\"s\":\"x\",\"n\":1}|e"},
    {"minimax", "<invoke name=\"now\">\n<parameter name=\"s\">x\n</parameter></invoke>", "nnow|a{\"s\":\"x\\n\"}|e"},
    {"minimax",
     "<minimax:tool_call><invoke name=\"now\"><parameter name=\"s\">\nx\n</parameter></invoke></minimax:tool_call> ok",
     "nnow|a{\"s\":\"x\"}|e|c ok"},
    {"minimax", "<invoke name=\"then\">\n</invoke>", NULL},

    {SEED " <seed:think>",
     "<seed:think>look</seed:think>\n<seed:tool_call>\n<function=now>\n<parameter=s>x</"
     "parameter>\n<parameter=list>['a']</parameter>\n</function>\n</seed:tool_call>",
     "rlook|nnow|a{\"s\":\"x\",\"list\":[\"a\"]}|e"},
    {SEED, "<function=now>\n<parameter=s>x</function>\n</seed:tool_call>", "nnow|a{\"s\":\"x\"}|e"},

    {"mistral-tools", "[TOOL_CALLS] [" OBJECT("now", "arguments") ", " OBJECT("now", "arguments") "]", ONE "|" ONE},
    {"mistral-tools", "So.[TOOL_CALLS][" OBJECT("now", "arguments") "]", "cSo.|" ONE},
    {"mistral-tools", "[TOOL_CALLS] " OBJECT("now", "arguments"), ONE},
    {"mistral-tools", "[" OBJECT("now", "arguments") "]", ONE},
    {"mistral-tools", "[" OBJECT("then", "arguments") "]", NULL},
    {"mistral-tools", "[1, 2]", NULL},
    {"mistral-tools", "[TOOL_CALLS]now[ARGS]{\"n\": 1}", ONE},
    {"mistral-small", "[TOOL_CALLS]now[CALL_ID]abcdefghi[ARGS]{\"n\": 1}[TOOL_CALLS]now[ARGS]{\"n\": 1}", ONE "|" ONE},
    {MISTRAL, "Look.[TOOL_CALLS]now[ARGS]{\"n\": 1}[TOOL_CALLS]now[ARGS] {\"s\": \"[ARGS]\"}",
     "cLook.|" ONE "|nnow|a{\"s\": \"[ARGS]\"}|e"},
    {MISTRAL, "[TOOL_CALLS]now{\"n\": 1}", ONE},
    {MISTRAL, "Look.\nnow[ARGS]{\"n\": 1}", "cLook.|" ONE},
    {MISTRAL, "now{\"n\": 1}", ONE},
    {MISTRAL, "[TOOL_CALLS] [" OBJECT("now", "arguments") "]", ONE},
    {MISTRAL, "[TOOL_CALLS]now", NULL},
    {MISTRAL, "now is the time", NULL},
    {MISTRAL " [THINK]", "[THINK]look[TOOL_CALLS]now[ARGS]{\"n\": 1}", "rlook|" ONE},

    {LFM, "<|tool_call_start|>[now(n=1, s='it\\'s', list=[1, 'b', None], map={'k': True}), now()]<|tool_call_end|>ok",
     "nnow|a{\"n\":1,\"s\":\"it's\",\"list\":[1, \"b\", null],\"map\":{\"k\": true}}|e|nnow|a{}|e|cok"},
    {LFM, "Look.<|tool_call_start|>[now(s=\"a, (b)\\n\\x41 <|tool_call_end|>\", n = -1.5 )]<|tool_call_end|>",
     "cLook.|nnow|a{\"s\":\"a, (b)\\n\\u0041 <|tool_call_end|>\",\"n\":-1.5}|e"},
    {LFM, "<|tool_call_start|>now(n=1)<|tool_call_end|>", PYTHON},
    {LFM, "<|tool_call_start|>[" OBJECT("now", "arguments") "]<|tool_call_end|>", ONE},
    {LFM, "[now(n=1)]", PYTHON},
    {LFM, "[then(n=1)]", NULL},
    {LFM, "<|tool_call_start|>[now(1)]<|tool_call_end|>", NULL},
    {LFM, "<|tool_call_start|>[now(n=1-)]<|tool_call_end|>", NULL},
    {LFM, "<|tool_call_start|>[now({\"n\": 1})]<|tool_call_end|>", ONE},

    {OLMO, "<function_calls>\nnow(n=1)\nnow(s=\"x\", map={\"k\": true})\n</function_calls>",
     PYTHON "|nnow|a{\"s\":\"x\",\"map\":{\"k\": true}}|e"},
    {OLMO, "Look.\n<function_calls>now(n=1)</function_calls>", "cLook.|" PYTHON},
    {OLMO, "Look.\nnow(n=1)\n</function_calls>", "cLook.|" PYTHON},
    {OLMO, "now(n=1)\nnow(n=1)", PYTHON "|" PYTHON},
    {OLMO, "Write\nnow(n=1)", NULL},
    {OLMO, "now(n=1) gives it", NULL},

    {"granite", "<|tool_call|>[" OBJECT("now", "arguments") ", " OBJECT("now", "arguments") "]", ONE "|" ONE},
    {"granite", "Look.<|tool_call|> " OBJECT("now", "arguments"), "cLook.|" ONE},
    {"granite", "<tool_call>[" OBJECT("now", "arguments") "]", ONE},
    {"granite", "<|tool_call|>[]", NULL},

    {"command-a",
     "<|START_THINKING|>look<|END_THINKING|><|START_ACTION|>[\n    " ACTION("0") ",\n    " ACTION(
         "1") "\n]<|END_ACTION|>",
     "rlook|" ONE "|" ONE},
    {"command-a", "<|START_THINKING|>look<|END_THINKING|><|START_RESPONSE|>hi<|END_RESPONSE|>", "rlook|chi"},
    {"command-a", "<|START_TEXT|>hi<|END_TEXT|>", "chi"},
    {"command-a", "<|START_ACTION|>" ACTION("0") "<|END_ACTION|>", ONE},
    {"command-a", "<|START_THINKING|>look\n<|START_ACTION|>[" ACTION("0") "]<|END_ACTION|>", "rlook|" ONE},
    {"command-r",
     "Action: ```json\n[\n    {\n        \"tool_name\": \"now\",\n        \"parameters\": {\"n\": 1}\n    }\n]```",
     ONE},
    {"command-r", "Plan.\nAction:```json\n[" ACTION("0") "]\n```", "cPlan.|" ONE},
    {"command-r", "Action: go.\n```json\n[1]\n```", NULL},

    {"phi4-mini", "<|tool_call|>[" OBJECT("now", "arguments") "]<|/tool_call|>", ONE},
    {"phi4-mini", "functools[" OBJECT("now", "arguments") ", " OBJECT("now", "parameters") "]", ONE "|" ONE},
    {"phi4-mini", "Look.<|tool_call|>" OBJECT("now", "arguments") "<|/tool_call|>", "cLook.|" ONE},
    {"phi4-mini", "functools are fun", NULL},

    {GLM_4, "now\n{\"n\": 1}", ONE},
    {GLM_4, "\nnow\n{\"n\": 1}\nnow\n{\"n\": 1}<|observation|>", ONE "|" ONE},
    {GLM_4, "Look.\nnow\n{\"n\": 1}", "cLook.|" ONE},
    {GLM_4, "Look.now\n{\"n\": 1}", "cLook.|" ONE},
    {GLM_4, "I know\n{\"n\": 1}", NULL},
    {GLM_4, "then\n{\"n\": 1}", NULL},
    {GLM_4, "now is the time", NULL},
    {GLM_4, "Look.\nnow {\"n\": 1}", NULL},

    {"llama4", "<|python_start|>" OBJECT("now", "parameters") "<|python_end|>", ONE},
    {"llama4", OBJECT("now", "parameters") "; " OBJECT("now", "parameters"), ONE "|" ONE},
    {"llama4", "<|python_start|>[now(n=1)]<|python_end|>", PYTHON},
    {"llama4", "[now(n=1)]", PYTHON},
    {"llama4", "Look: " OBJECT("now", "parameters"), NULL},
    {"nemotron", "<TOOLCALL>[" OBJECT("now", "arguments") ", " OBJECT("now", "arguments") "]</TOOLCALL>", ONE "|" ONE},
    {"llama3-tools", "[now(n=1), now(n=1)]", PYTHON "|" PYTHON},
    {"llama3-tools", "[then(n=1)]", NULL},
};

START_TEST(calls_of_families) {
    char content[512];
    snprintf(content, sizeof content, "c%s", families[_i].reply);
    check_parts(families[_i].style, "", true, families[_i].reply, families[_i].parts ? families[_i].parts : content);
}
END_TEST

START_TEST(any_cut) {
    json_t *root = fr_load_json("tests/data/replies/calls.json"), *cases = json_object_get(root, "cases");
    fr_reply_format formats[COUNT_OF(styles)], of_families[COUNT_OF(families)];
    for (size_t i = 0; i < COUNT_OF(styles); i++) formats[i] = format_of(styles[i]);
    for (size_t i = 0; i < COUNT_OF(families); i++) of_families[i] = format_of(families[i].style);
    size_t called = 0, contents = 0, voids = 0;
    size_t rounds = fr_test_times(15000, 60000);
    for (size_t round = 0; round < rounds; round++) {
        char reply[4096];
        const json_t *item = json_array_get(cases, draw(json_array_size(cases)));
        bool own = draw(2) == 0;
        size_t style = draw(COUNT_OF(styles)), family = draw(COUNT_OF(families));
        const char *begin = own ? families[family].reply : draw(3) == 0 ? text_at(item, "reply") : "";
        size_t cut = strlen(begin), length;
        if (cut > 2000 || draw(4) == 0) begin += draw(cut + 1);
        length = draw_reply(strlen(begin) > 2000 ? "" : begin, reply, sizeof reply);
        run how = {.format = own ? &of_families[family] : &formats[style],
                   .prompt = draw(8) == 0 ? "<think>\n" : "",
                   .tools = draw(2) ? json_object_get(root, "tools") : NULL,
                   .whole = draw(2) == 0};
        json_t *message, *again;
        part_log one = read_reply(&how, reply, length, &message);
        how.piece = 1 + draw(7);
        part_log other = read_reply(&how, reply, length, &again);
        same_log(&one, &other, styles[style]);
        ck_assert(json_equal(message, again));
        json_decref(again);
        how.whole = !how.whole;
        part_log third = read_reply(&how, reply, length, &again);
        ck_assert_msg(json_equal(message, again), "a call told of as it comes becomes another message: %.*s",
                      (int)length, reply);
        size_t n;
        bool thinks = *how.prompt || memmem(reply, length, "<think>", 7) || memmem(reply, length, "<|channel>", 10) ||
                      memmem(reply, length, "THINK", 5) || memmem(reply, length, "<seed:think>", 12) ||
                      memmem(reply, length, "_RESPONSE|>", 11) || memmem(reply, length, "_TEXT|>", 7);
        const char *content = thinks ? NULL : only_content(&one, &n);
        if (content)
            ck_assert_msg(n == length && memcmp(content, reply, n) == 0, "%s: lost text: %.*s", styles[style],
                          (int)length, reply);
        contents += content != NULL;
        called += json_object_get(message, "tool_calls") != NULL;
        voids += memchr(one.text.bytes ? one.text.bytes : "", 'v', one.text.length) != NULL;
        json_decref(message);
        json_decref(again);
        fr_text_free(&one.text);
        fr_text_free(&other.text);
        fr_text_free(&third.text);
    }
    ck_assert_uint_gt(called, rounds / 30);
    ck_assert_uint_gt(contents, rounds / 8);
    ck_assert_uint_gt(voids, rounds / 600);
    json_decref(root);
}
END_TEST

/* A mark that is a single token must work like a mark that is found in the text. */
START_TEST(families_by_tokens) {
    static const char tools[] =
        "[{\"name\": \"now\", \"parameters\": {\"properties\": {\"n\": {\"type\": \"integer\"}, "
        "\"s\": {\"type\": \"string\"}}}}]";
    fr_reply_format format = format_of(families[_i].style);
    json_t *list = json_loads(tools, 0, NULL), *message;
    const char *reply = families[_i].reply;
    run how = {.format = &format, .tools = list, .whole = true};
    part_log expected = read_reply(&how, reply, strlen(reply), &message), tokens = {.last = -1};
    json_decref(message);
    fr_reply_reader *reader;
    for (size_t m = 0; m < FR_MARK_COUNT; m++) format.ids[m] = format.marks[m] ? (int32_t)m : -1;
    require(fr_reply_reader_new(take_part, &tokens, &reader));
    require(fr_reply_reader_begin(reader, &format, "", 0, list, 7, true));
    for (size_t length; *reply; reply += length) {
        size_t m = 0;
        while (m < FR_MARK_COUNT && (!format.marks[m] || strncmp(reply, format.marks[m], strlen(format.marks[m])) != 0))
            m++;
        length = m < FR_MARK_COUNT ? strlen(format.marks[m]) : 1;
        require(fr_reply_reader_feed(reader, reply, length, m < FR_MARK_COUNT));
    }
    require(fr_reply_reader_finish(reader));
    same_log(&expected, &tokens, families[_i].reply);
    fr_reply_reader_free(reader);
    json_decref(list);
    fr_text_free(&expected.text);
    fr_text_free(&tokens.text);
}
END_TEST

/* These replies reached their limit of tokens inside a call. As in llama-server, the reader gives the arguments that
 * have come so far, whether it gives calls as a whole or in pieces. A text that might still turn out to be something
 * else than a call is content. */
static const struct {
    const char *style, *reply, *parts; /* if parts is NULL, the whole reply is content */
} cut_replies[] = {
    {"qwen3", "So.\n<tool_call>\n{\"name\": \"now\", \"arguments\": {\"s\": \"a b", "cSo.|nnow|a{\"s\": \"a b|e"},
    {"qwen3", "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"s\": \"a <", "nnow|a{\"s\": \"a <|e"},
    {"qwen3", "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"n\": 12", "nnow|a{\"n\": 12|e"},
    {"qwen3", "<tool_call>\n{\"name\": \"now\", \"argum", "nnow|e"},
    {"qwen3", "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"n\": 12}}\n</tool_ca", "nnow|a{\"n\": 12}|e"},
    {"qwen3", "<tool_call>" OF_NOW "</tool_call>\n<tool_call>{\"name\": \"now\", \"arguments\": {", ONE "|nnow|a{|e"},
    {"qwen3", "{\"name\": \"now\", \"arguments\": {\"n\": 1", "nnow|a{\"n\": 1|e"},
    {"qwen3", "<tool_call>\n{\"name\": \"no", NULL},
    {"qwen3", "<tool_call>\n{\"name\": \"then\", \"arguments\": {\"n\": 1", NULL},
    {"qwen3", "Look:\n{\"name\": \"now\", \"arguments\": {\"n\": 1", NULL},
    {"qwen3", "<think>I call <tool_call>{\"name\": \"now\", \"arguments\": {",
     "rI call <tool_call>{\"name\": \"now\", "
     "\"arguments\": {"},
    {"qwen3.5", "<tool_call>\n<function=now>\n<parameter=s>\na\nb <", "nnow|a{\"s\":\"a\\nb |e"},
    {"qwen3.5", "<tool_call>\n<function=now>\n<parameter=n>\n12", "nnow|a{\"n\":12|e"},
    {"qwen3.5", "<tool_call>\n<function=now>\n<param", "nnow|a{|e"},
    {"qwen3.5", "<tool_call>\n<function=no", NULL},
    {"glm", "<tool_call>now<arg_key>s</arg_key><arg_value>x", "nnow|a{\"s\":\"x|e"},
    {"minimax", "<minimax:tool_call>\n<invoke name=\"now\">\n<parameter name=\"s\">x", "nnow|a{\"s\":\"x|e"},
    {"gemma4", "<|tool_call>call:now{s:<|\"|>x y", "nnow|a{\"s\":\"x y|e"},
    {"gemma4", "<|tool_call>call:now{n:1,l:[2,34", "nnow|a{\"n\":1,\"l\":[2,34|e"},
    {"kimi", "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{\"n\": 1",
     "nnow|a{\"n\": 1|e"},
    {"kimi", "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0<|tool_call_arg", NULL},
    {"deepseek-v3", DEEPSEEK "{\"s\": \"x", "nnow|a{\"s\": \"x|e"},
    {MISTRAL, "[TOOL_CALLS]now[ARGS]{\"s\": \"x", "nnow|a{\"s\": \"x|e"},
    {LFM, "<|tool_call_start|>[now(s='x y", "nnow|a{\"s\":\"x y|e"},
    {"llama3-tools", "{\"name\": \"now\", \"parameters\": {\"s\": \"x", "nnow|a{\"s\": \"x|e"},
    {"phi4-mini", "<|tool_call|>[" OF_NOW ", {\"name\": \"now\", \"arguments\": {\"n\": 1", ONE "|nnow|a{\"n\": 1|e"},
    {"qwen3", "No call at all", NULL},
};

START_TEST(calls_that_are_cut_off) {
    char content[512];
    snprintf(content, sizeof content, "c%s", cut_replies[_i].reply);
    const char *parts = cut_replies[_i].parts, *reply = cut_replies[_i].reply;
    check_run(cut_replies[_i].style, "", true, true, reply, parts ? parts : content);
    fr_reply_format format = format_of(cut_replies[_i].style);
    json_t *list = json_loads("[{\"name\": \"now\"}]", 0, NULL), *whole, *streamed;
    run how = {.format = &format, .tools = list, .whole = true, .cut = true};
    part_log one = read_reply(&how, reply, strlen(reply), &whole);
    how.whole = false;
    part_log other = read_reply(&how, reply, strlen(reply), &streamed);
    ck_assert_msg(json_equal(whole, streamed), "%s", reply);
    fr_text_free(&one.text);
    fr_text_free(&other.text);
    json_decref(whole);
    json_decref(streamed);
    json_decref(list);
}
END_TEST

/* If a model writes the same argument twice, the last value is used. The complete arguments must contain only this
 * value. */
START_TEST(arguments_once) {
    static const char *const cases[][3] = {
        {"qwen3.5",
         QWEN("<parameter=s>\nx\n</parameter>\n<parameter=n>\n5\n</parameter>\n<parameter=s>\ny\n</parameter>\n"),
         "nnow|a{\"n\":5,\"s\":\"y\"}|e"},
        {"llama3-tools", "{\"name\": \"now\", \"parameters\": {\"s\": \"x\", \"n\": 5, \"\\u0073\": \"y\", \"n\":6}}",
         "nnow|a{ \"\\u0073\": \"y\", \"n\":6}|e"},
        {"qwen3",
         "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": [{\"b\": 1, \"b\": {\"c\": 2, \"c\": \"}\\\",\"}}], "
         "\"d\": {}}}</tool_call>",
         "nnow|a{\"a\": [{ \"b\": { \"c\": \"}\\\",\"}}], \"d\": {}}|e"},
        {"gemma4", "<|tool_call>call:now{n:1,s:<|\"|>a<|\"|>,n:2}<tool_call|>", "nnow|a{\"s\":\"a\",\"n\":2}|e"},
        {"glm",
         "<tool_call>now<arg_key>n</arg_key><arg_value>1</arg_value><arg_key>n</arg_key><arg_value>2</arg_value></"
         "tool_call>",
         "nnow|a{\"n\":2}|e"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) check_parts(cases[i][0], "", true, cases[i][1], cases[i][2]);
}
END_TEST

/* gpt-oss writes its messages to channels, and each message begins with a header. The first message's header begins in
 * the prompt. */
#define ANALYSIS  "<|channel|>analysis<|message|>"
#define FINAL     "<|start|>assistant<|channel|>final<|message|>"
#define TO_NOW    "<|channel|>commentary to=functions.now <|constrain|>json<|message|>"
#define ASSISTANT "<|start|>user<|message|>hi<|end|><|start|>assistant"

static const struct {
    const char *prompt, *reply, *parts;
} harmony[] = {
    {ASSISTANT, ANALYSIS "\na\n\nb\n<|end|>" FINAL "hi\n<|return|>", "ra\n\nb|chi\n"},
    {ASSISTANT, ANALYSIS "a<|end|>" FINAL "hi", "ra|chi"},
    {ASSISTANT, "<|channel|>final<|message|>\nhi<|return|>", "c\nhi"},
    {ASSISTANT, ANALYSIS "a<|end|><|start|>assistant" TO_NOW "{\"n\": 1}<|call|>", "ra|nnow|a{\"n\": 1}|e"},
    {ASSISTANT, TO_NOW "{\"n\": 1} \n", "nnow|a{\"n\": 1}|e"},
    {ASSISTANT, " to=functions.now<|channel|>commentary json<|message|>{}<|call|>", "nnow|a{}|e"},
    {ASSISTANT, "<|channel|>commentary<|message|>wait<|end|><|start|>assistant" TO_NOW "{}<|call|>",
     "cwait|nnow|a{}|e"},
    {ASSISTANT, TO_NOW "{}<|end|><|start|>assistant" TO_NOW "{\"s\": \"<|\"}<|call|>",
     "nnow|a{}|e|nnow|a{\"s\": \"<|\"}|e"},
    {ASSISTANT, "<|channel|>analysis to=python<|message|>1 + 1<|end|>" FINAL "2", "r1 + 1|c2"},
    {ASSISTANT, "just text", "cjust text"},
    {ASSISTANT, ANALYSIS "a <|channel|> b<|end|>" FINAL "c<|constrain|>d", "ra <|channel|> b|cc<|constrain|>d"},
    {ASSISTANT ANALYSIS, "a<|end|>" FINAL "hi", "ra|chi"},
    {ASSISTANT "<|channel|>final<|message|>", "hi<|return|>", "chi"},
    /* A type follows the tool's name, directly or after Unicode white space. */
    {ASSISTANT, "<|channel|>commentary to=functions.nowjson<|message|>{}<|call|>", "nnow|a{}|e"},
    {ASSISTANT, "<|channel|>commentary to=functions.now\u202fjson<|message|>{}<|call|>", "nnow|a{}|e"},
    {ASSISTANT, "<|channel|>commentary\u00a0to=functions.now\u00a0<|constrain|>json<|message|>{}<|call|>",
     "nnow|a{}|e"},
    {ASSISTANT, "<|channel|>commentary to=functions.now\u200bjson<|message|>{}<|call|>", "nnow|a{}|e"},
    {ASSISTANT, "<|channel|>commentary to=functions.thenjson<|message|>{}<|call|>", "nthenjson|a{}|e"},
    {ASSISTANT, "<|channel|>commentary to=now code<|message|>{\"s\": \"a\n\\d\"}<|call|>",
     "nnow|a{\"s\": \"a\\n\\\\d\"}|e"},
    {ASSISTANT, "<|channel|>analysis\u202f<|message|>a<|end|>", "ra"},
    /* The call is inside reasoning that never ends. */
    {ASSISTANT, ANALYSIS "look\n" TO_NOW "{\"n\": 1<|call|>", "rlook|nnow|a{\"n\": 1}|e"},
    {ASSISTANT, ANALYSIS "a<|channel|>commentary to=functions.then<|message|>{}<|end|>",
     "ra<|channel|>commentary to=functions.then<|message|>{}"},
    {ASSISTANT, ANALYSIS "a<|channel|>commentary to=functions.now", "ra<|channel|>commentary to=functions.now"},
    /* The arguments are not an object or are incomplete, so the text of the call is content. */
    {ASSISTANT, TO_NOW "now<|call|>", "nnow|v|c" TO_NOW "now"},
    {ASSISTANT, TO_NOW "{\"n\": 1", "nnow|a{\"n\": 1|v|c" TO_NOW "{\"n\": 1"},
    {ASSISTANT, "<|channel|>commentary to=functions.<|message|>{}<|call|>", "c{}"},
};

START_TEST(messages_in_channels) {
    check_parts("harmony", harmony[_i].prompt, false, harmony[_i].reply, harmony[_i].parts);
}
END_TEST

/* A reply consists of marks, parts of marks and texts in random order. The parts of a reply must not depend on the
 * pieces in which it comes. A call must be given completely or not at all. */
START_TEST(any_messages) {
    static const char *const pieces[] = {"<|start|>",
                                         "assistant",
                                         "<|channel|>",
                                         "analysis",
                                         "final",
                                         "commentary",
                                         "<|message|>",
                                         "<|end|>",
                                         "<|call|>",
                                         "<|return|>",
                                         " to=functions.now",
                                         "<|constrain|>",
                                         "json",
                                         "{\"n\": 1}",
                                         "{",
                                         "\n",
                                         "text",
                                         "<|",
                                         ANALYSIS,
                                         FINAL,
                                         TO_NOW,
                                         " to=python",
                                         TO_NOW "{\"n\": 1}<|call|>"};
    fr_reply_format format = format_of("harmony");
    size_t called = 0;
    for (size_t round = 0; round < 20000; round++) {
        char reply[2048];
        size_t length = 0, parts = draw(16);
        for (size_t i = 0; i < parts; i++) {
            const char *piece = pieces[draw(COUNT_OF(pieces))];
            memcpy(reply + length, piece, strlen(piece));
            length += strlen(piece);
        }
        run how = {.format = &format, .prompt = draw(2) ? ASSISTANT : "", .whole = draw(2) == 0};
        json_t *message, *again;
        part_log one = read_reply(&how, reply, length, &message);
        how.piece = 1 + draw(7);
        part_log other = read_reply(&how, reply, length, &again);
        same_log(&one, &other, "harmony");
        ck_assert(json_equal(message, again));
        json_decref(again);
        how.whole = !how.whole;
        part_log third = read_reply(&how, reply, length, &again);
        ck_assert(json_equal(message, again));
        called += json_object_get(message, "tool_calls") != NULL;
        json_decref(message);
        json_decref(again);
        fr_text_free(&one.text);
        fr_text_free(&other.text);
        fr_text_free(&third.text);
    }
    ck_assert_uint_gt(called, 1000);
}
END_TEST

/* Half of a surrogate pair is not a character. It must be replaced, because otherwise neither the caller nor the
 * template of the next turn could read the arguments. */
START_TEST(half_pairs) {
    check_parts("qwen3", "", false, "<tool_call>{\"arguments\": {\"s\": \"\\ud83d\"}, \"name\": \"now\"}</tool_call>",
                "nnow|a{\"s\": \"\\ufffd\"}|e");
    check_parts("qwen3", "", false,
                "<tool_call>{\"name\": \"now\", \"arguments\": {\"\\uD83D\\uDE00\\udc00\\n\": "
                "\"\\ud83dx\\ud83d\\\\\\u00e4\"}}"
                "</tool_call>",
                "nnow|a{\"\\ud83d\\ude00\\ufffd\\n\": \"\\ufffdx\\ufffd\\\\\\u00e4\"}|e");
    check_parts("qwen3", "", false,
                "<tool_call>{\"name\": \"now\", \"arguments\": \"{\\\"s\\\": \\\"\\\\ud83d\\\"}\"}</tool_call>",
                "nnow|a{\"s\": \"\\ufffd\"}|e");
    check_parts("deepseek-v3", "", false,
                "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{\"s\": \"\\udc00\"}<｜tool▁call▁end｜>",
                "nnow|a{\"s\": \"\\ufffd\"}|e");
}
END_TEST

/* If the model writes an id for its call, the id is kept. */
START_TEST(own_id) {
    static const char reply[] = "<tool_call>{\"id\": \"x\\u0037\", \"name\": \"now\"}</tool_call>";
    fr_reply_format format = format_of("qwen3");
    run how = {.format = &format};
    json_t *message;
    part_log l = read_reply(&how, reply, strlen(reply), &message);
    ck_assert_str_eq(text_at(json_array_get(json_object_get(message, "tool_calls"), 0), "id"), "x7");
    json_decref(message);
    fr_text_free(&l.text);
}
END_TEST

/* Line breaks before the reasoning belong to its mark, with or without tools. */
START_TEST(lines_without_tools) {
    fr_reply_format format = format_of("qwen3");
    run how = {.format = &format, .piece = 1};
    json_t *message;
    static const char reply[] = "\n<think>a</think>\nhi\n\n";
    part_log l = read_reply(&how, reply, strlen(reply), &message);
    ck_assert_str_eq(text_at(message, "reasoning_content"), "a");
    ck_assert_str_eq(text_at(message, "content"), "hi\n\n");
    ck_assert_int_eq(l.text.bytes[0], 'r');
    json_decref(message);
    fr_text_free(&l.text);
}
END_TEST

/* These texts begin like calls but are not, so all of their bytes are content. */
START_TEST(no_calls) {
    static const struct {
        const char *style, *reply;
    } cases[] = {
        {"qwen3", "<tool_call>"},
        {"qwen3", "<tool_call>\n\n{}</tool_call>"},
        {"qwen3", "<tool_call>x</tool_call>"},
        {"qwen3", "a\n\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}}\n</tool_call>\n"},
        {"qwen3", "<tool_call>{\"name\": \"now\", \"arguments\": []}</tool_call>"},
        {"qwen3", "<tool_call>{\"name\": \"now\", \"arguments\": \"x\"}</tool_call>"},
        {"qwen3", "<tool_call>{\"name\": \"now\", \"arguments\": \"{} {\"}</tool_call>"},
        {"qwen3", "<tool_call>{\"name\": \"now\", \"arguments\": \"{\\\"a\\\":\"}</tool_call>"},
        {"qwen3", "<tool_call>{\"id\": 7, \"name\": \"now\", \"arguments\": {}}</tool_call>"},
        {"qwen3", "<tool_call>{\"name\": 3, \"arguments\": {}}</tool_call>"},
        {"qwen3", "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>"},
        {"qwen3", "<tool_call>{\"name\": \"a b\", \"arguments\": {}}</tool_call>"},
        {"qwen3", "<tool_call>{\"name\": \"a\", \"name\": \"b\", \"arguments\": {}}</tool_call>"},
        {"qwen3", "<tool_call>{\"name\": \"a\", \"arguments\": {}, \"arguments\": {}}</tool_call>"},
        {"qwen3", "<tool_call>{\"name\": \"a\nb\", \"arguments\": {}}</tool_call>"},
        {"qwen3", "<tool_call>[{\"name\": \"a\", \"arguments\": {}}]</tool_call>"},
        {"qwen3", "<tool_call>{\"name\": \"a\", \"arguments\": {\"n\": 01}}</tool_call>"},
        {"qwen3", "<tool_call><tool_call></tool_call>"},
        {"qwen3", "</tool_call>"},
        {"qwen3", "`<tool_call>` is a mark"},
        {"glm", "<tool_call></tool_call>"},
        {"glm", "<tool_call>a b</tool_call>"},
        {"glm", "<tool_call>now"},
        {"glm", "<tool_call>now<arg_key>n</arg_key><arg_value>1</arg_value>"},
        {"glm", "<tool_call>now<arg_key></arg_key><arg_value>1</arg_value></tool_call>"},
        {"glm", "<tool_call>now<arg_value>1</arg_value></tool_call>"},
        {"qwen3.5", "<tool_call><function=></function></tool_call>"},
        {"qwen3.5", "<tool_call><function=now></tool_call>"},
        {"qwen3.5", "<tool_call></parameter><function=then></function></tool_call>"},
        {"qwen3.5", "<tool_call><function=now><parameter=>1</parameter></function></tool_call>"},
        {"qwen3.5", "<function=then></function>"},
        {"gemma4", "<|tool_call>call:{}<tool_call|>"},
        {"gemma4", "<|tool_call>now{}<tool_call|>"},
        {"gemma4", "<|tool_call>call:now{n}<tool_call|>"},
        {"gemma4", "<|tool_call>call:now{n:}<tool_call|>"},
        {"gemma4", "<|tool_call>call:now{n:word}<tool_call|>"},
        {"gemma4", "<|tool_call>call:now{n:1,,}<tool_call|>"},
        {"gemma4", "<|tool_call>call:now{,}<tool_call|>"},
        {"gemma4", "<|tool_call>call:now{l:[1,}]}<tool_call|>"},
        {"gemma4", "<|tool_call>call:now x{}<tool_call|>"},
        {"gemma4", "<|tool_call>call: {}<tool_call|>"},
        {"gemma4", "<|tool_call>call:now{n:[1}]<tool_call|>"},
        {"gemma4", "<|tool_call>call:now{:1}<tool_call|>"},
        {"gemma4", "<|tool_call>call:now{} x<tool_call|>"},
        {"gemma4", "<|tool_call>call:now{s:<|\"|>"},
        {"gemma4", "<|tool_call>call:now{}<|tool_call>call:"},
        {"gemma4", "<|tool_response>"},
        {"qwen3", "{\"name\": \"none\", \"arguments\": {}}"},
        {"qwen3", "{{\"name\": \"now\", \"arguments\": {}}"},
        {"qwen3", "{{\"name\": \"now\", \"arguments\": {}}}}"},
        {"qwen3", "{{{\"name\": \"now\", \"arguments\": {}}}}"},
        {"qwen3", "{\"name\": \"now\", \"arguments\": {{}}}"},
        {"qwen3", "<tool_call>{{\"name\": \"now\", \"arguments\": {}}</tool_call>"},
        {"qwen3", "{\"name\": \"now\"}"},
        {"qwen3", "{\"name\": \"now\", \"arguments\": {}} and so on"},
        {"qwen3", "{\"name\": \"now\", \"arguments\": {}, \"age\": 3}"},
        {"qwen3", "{\"name\": \"now\", \"arguments\": {\"n\": 1}"},
        {"qwen3", "{\"arguments\": {\"n\": 1}}"},
        {"qwen3", "[{\"name\": \"now\", \"arguments\": {}}]"},
        {"qwen3", "so: {\"name\": \"now\", \"arguments\": {}}"},
        {"llama3-tools", "{\"name\": \"none\", \"parameters\": {}}"},
        {"llama3-tools", "{\"name\": \"now\"}"},
        {"llama3-tools", "{\"name\": \"now\", \"parameters\": {}, \"age\": 3}"},
        {"llama3-tools", "{\"answer\": 3}"},
        {"llama3-tools", "a {\"name\": \"now\", \"parameters\": {}}"},
        {"llama3-tools", "{\"name\": <|python_tag|>\"now\", \"parameters\": {}}"},
        {"llama3-tools", "<|python_tag|>print(1)"},
        {"llama3-tools", "<|python_tag|>a.call(b)"},
        {"llama3-tools", "<|python_tag|>.call()"},
        {"deepseek-v3", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>"},
        {"deepseek-v3", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```js\n{}\n```<｜tool▁call▁end｜>"},
        {"deepseek-v3", "<｜tool▁call▁begin｜>now<｜tool▁call▁end｜>"},
        {"deepseek-v3", "<｜tool▁call▁begin｜>notafunc<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜>"},
        {"deepseek-v3", "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁sep｜>"},
        {"chatml", "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char expected[512];
        snprintf(expected, sizeof expected, "c%s", cases[i].reply);
        check_parts(cases[i].style, "", true, cases[i].reply, expected);
    }
}
END_TEST

/* The reader may announce a call while the model is still writing it. If the text turns out not to be a call, the
 * reader withdraws the call. */
START_TEST(void_calls) {
    check_parts("qwen3", "", false, "a\n<tool_call>{\"name\": \"now\", \"arguments\": {\"n\": 1]}",
                "ca|nnow|a{\"n\": 1|v|c\n"
                "<tool_call>{\"name\": \"now\", \"arguments\": {\"n\": 1]}");
    check_parts("glm", "", false, "<tool_call>now\n<tool_call>now</tool_call>", "nnow|a{|v|c<tool_call>now|nnow|a{}|e");
    check_parts("glm", "", true, "<tool_call>now<tool_call>now</tool_call>", "c<tool_call>now|nnow|a{}|e");
}
END_TEST

/* A mark must be a control token of the tokenizer. Ordinary tokens with the same text are not a mark. */
START_TEST(control_tokens) {
    fr_reply_format format = format_of("qwen3");
    static const char call[] = "{\"name\": \"now\", \"arguments\": {\"s\": \"</tool_call>\"}}";
    for (int spelled = 0; spelled < 2; spelled++) {
        for (size_t i = 0; i < FR_MARK_COUNT; i++) format.ids[i] = format.marks[i] ? (int32_t)i : -1;
        part_log l = {.last = -1};
        fr_reply_reader *reader;
        require(fr_reply_reader_new(take_part, &l, &reader));
        require(fr_reply_reader_begin(reader, &format, "", 0, NULL, 0, true));
        require(fr_reply_reader_feed(reader, "<tool_call>", 11, !spelled));
        require(fr_reply_reader_feed(reader, call, strlen(call), false));
        require(fr_reply_reader_feed(reader, "</tool_call>", 12, true));
        require(fr_reply_reader_finish(reader));
        ck_assert_int_eq(l.text.bytes[0], spelled ? 'c' : 'i');
        if (spelled) ck_assert_uint_eq(l.text.length, 1 + 11 + strlen(call) + 12);
        fr_reply_reader_free(reader);
        fr_text_free(&l.text);
    }
}
END_TEST

/* ------------------------------------------------------------------------------------------ values, JSON and limits */

START_TEST(values) {
    enum {
        S = FR_VALUE_STRING,
        N = FR_VALUE_NUMBER,
        B = FR_VALUE_BOOLEAN,
        Z = FR_VALUE_NULL,
        O = FR_VALUE_OBJECT,
        A = FR_VALUE_ARRAY
    };
    static const struct {
        const char *text;
        fr_value_types types;
        const char *json;
    } cases[] = {
        {"12", 0, "12"},
        {"12", S, "\"12\""},
        {"12", N, "12"},
        {"12", S | N, "12"},
        {"12", B, "\"12\""},
        {"1.5e3", N, "1.5e3"},
        {"01", N, "\"01\""},
        {"12 apples", N, "\"12 apples\""},
        {" 7\n", N, "7"},
        {"True", B, "true"},
        {"true", B, "true"},
        {"False", B | Z, "false"},
        {"None", B, "null"},
        {"null", N, "null"},
        {"None", S, "\"None\""},
        {"None", S | Z, "null"},
        {"True", 0, "\"True\""},
        {"true", 0, "true"},
        {"\"a\"", 0, "\"\\\"a\\\"\""},
        {"\"a\"", S, "\"\\\"a\\\"\""},
        {"\"a\"", N, "\"a\""},
        {"[1, {}]", A, "[1, {}]"},
        {"[1, {}]", O, "\"[1, {}]\""},
        {"{\"a\": [", O, "\"{\\\"a\\\": [\""},
        {"{}", 0, "{}"},
        {"", N, "\"\""},
        {"", 0, "\"\""},
        {"a\n\t\x01\\", 0, "\"a\\n\\t\\u0001\\\\\""},
        {"nothing", Z, "\"nothing\""},
        {"123456789012345678901234567890", N, "123456789012345678901234567890"},
        {"1e400", N, "\"1e400\""},
        {"1e-400", N, "1e-400"},
        {"[1, -1.5E999]", A, "\"[1, -1.5E999]\""},
        {"{\"a\":1e308}", O, "{\"a\":1e308}"},
        {"[\"\\ud83d\"]", A, "[\"\\ufffd\"]"},
        {"[\"\\ud83d\\uDE00 \\ud83d\\ud83d\\n\\udc00\\\\udc00\"]", A,
         "[\"\\ud83d\\ude00 \\ufffd\\ufffd\\n\\ufffd\\\\udc00\"]"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fr_text_buffer out = {0};
        fr_value_put(&out, cases[i].text, strlen(cases[i].text), cases[i].types);
        ck_assert_str_eq(out.bytes, cases[i].json);
        fr_text_free(&out);
    }
}
END_TEST

START_TEST(schemas) {
    static const char tools[] =
        "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"properties\": {"
        "\"a\": {\"type\": \"STRING\"}, \"b\": {\"type\": [\"integer\", \"null\"]}, \"c\": {\"enum\": [1, \"x\"]}, "
        "\"d\": {\"anyOf\": [{\"type\": \"object\"}, {\"oneOf\": [{\"type\": \"array\"}]}]}, "
        "\"e\": {\"type\": \"boolean\", \"nullable\": true}, \"f\": {\"anyOf\": [{\"type\": \"string\"}, {}]}, "
        "\"g\": {\"$ref\": \"#/x\"}, \"h\": 3}}}}, 7, {\"name\": \"g\"}]";
    static const fr_value_types expected[] = {FR_VALUE_STRING,
                                              FR_VALUE_NUMBER | FR_VALUE_NULL,
                                              FR_VALUE_NUMBER | FR_VALUE_STRING,
                                              FR_VALUE_OBJECT | FR_VALUE_ARRAY,
                                              FR_VALUE_BOOLEAN | FR_VALUE_NULL,
                                              0,
                                              0,
                                              0,
                                              0};
    json_t *list = json_loads(tools, 0, NULL);
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        char name[] = {(char)('a' + (int)i), '\0'};
        ck_assert_uint_eq(fr_tool_parameter_types(fr_tool_find(list, "f"), name), expected[i]);
    }
    ck_assert_ptr_nonnull(fr_tool_find(list, "g"));
    ck_assert_ptr_null(fr_tool_find(list, "h"));
    ck_assert_ptr_null(fr_tool_find(NULL, "f"));
    json_decref(list);
}
END_TEST

/* Small and quantized models write Gemma 4's calls with plain quotes around strings and keys. They may also mix plain
 * quotes with Gemma's own. */
START_TEST(plain_quotes) {
    static const char *const cases[][2] = {
        {"s:\"Bern\"", "{\"s\":\"Bern\"}"},
        {"\"s\":\"Bern\"", "{\"s\":\"Bern\"}"},
        {"\"s\" : \"Bern\" , \"n\" : 3 ", "{\"s\":\"Bern\",\"n\":3}"},
        {"s:<|\"|>a<|\"|>,t:\"b\",\"u\":<|\"|>c<|\"|>,<|\"|>v<|\"|>:\"d\"",
         "{\"s\":\"a\",\"t\":\"b\",\"u\":\"c\",\"v\":\"d\"}"},
        {"s:\"\"", "{\"s\":\"\"}"},
        {"o:{\"a\":\"b\",c:{\"d\":[\"e\",<|\"|>f<|\"|>,{g:\"h\"}]}},l:[\"x\",\"y\",[]]",
         "{\"o\":{\"a\":\"b\",\"c\":{\"d\":[\"e\",\"f\",{\"g\":\"h\"}]}},\"l\":[\"x\",\"y\",[]]}"},
        {"s:\"a, b: {c} [d]\"", "{\"s\":\"a, b: {c} [d]\"}"},
        {"s:\"say \\\"hi\\\" \\\\ \\n \\u00e4 \\/\"", "{\"s\":\"say \\\"hi\\\" \\\\ \\n \\u00e4 \\/\"}"},
        {"s:\"C:\\dir \\' \\\n\"", "{\"s\":\"C:\\\\dir \\\\' \\\\\\n\"}"},
        {"s:\"two\nlines\tof ä\"", "{\"s\":\"two\\nlines\\tof ä\"}"},
        {"s:\"the token <|\"|> itself, <turn|>\"", "{\"s\":\"the token <|\\\"|> itself, <turn|>\"}"},
        {"s:<|\"|>a \"b\" \\c<|\"|>", "{\"s\":\"a \\\"b\\\" \\\\c\"}"},
        {"\"a \\\"b\\\" \\\\\":1", "{\"a \\\"b\\\" \\\\\":1}"},
        {"\"\":1", "{\"\":1}"},
        {"s:\"\\ud83d\"", "{\"s\":\"\\ufffd\"}"},
        {"s:\"\\ud83d\\ud83d\\ude00\\ude00 \\ud83dx\\ud83d\\n\\ud83d\\q\\ud83d<|\"|>\"",
         "{\"s\":\"\\ufffd\\ud83d\\ude00\\ufffd \\ufffdx\\ufffd\\n\\ufffd\\\\q\\ufffd<|\\\"|>\"}"},
        {"s:\"\\u12g4 C:\\users\\x41\"", "{\"s\":\"\\\\u12g4 C:\\\\users\\\\x41\"}"},
        {"s:'it\\'s \"so\"\\x41',l:['a'],'k':None", "{\"s\":\"it's \\\"so\\\"\\u0041\",\"l\":[\"a\"],\"k\":null}"},
        {"n:1e400,m:-1e4", "{\"n\":\"1e400\",\"m\":-1e4}"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char reply[512], parts[512];
        snprintf(reply, sizeof reply, "<|tool_call>call:now{%s}<tool_call|>", cases[i][0]);
        snprintf(parts, sizeof parts, "nnow|a%s|e", cases[i][1]);
        check_parts("gemma4", "", false, reply, parts);
    }
}
END_TEST

/* If a text has plain quotes but is not a valid call, all of its bytes are content. */
START_TEST(plain_quotes_gone_wrong) {
    static const char *const cases[] = {"s:\"Bern",  "s:\"a\"b\"", "\"s\"",         "\"s\"1:2", "\"s:1",
                                        "\"\\n\":1", "s:1\"",      "\"s\":\"a\" 1", "s\"t\":1"};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char reply[128], parts[192];
        snprintf(reply, sizeof reply, "<|tool_call>call:now{%s}<tool_call|>", cases[i]);
        snprintf(parts, sizeof parts, "c%s", reply);
        check_parts("gemma4", "", true, reply, parts);
    }
}
END_TEST

/* `schema` is the schema of a parameter "n". The schema that contains "n" has the member "properties" and the members
 * `beside`. `types` is the set of types that "n" may have then. */
static const struct {
    const char *schema, *beside;
    fr_value_types types;
} referring[] = {
    {"{\"$ref\": \"#/$defs/N\"}", "\"$defs\": {\"N\": {\"type\": \"string\"}}", FR_VALUE_STRING},
    {"{\"$ref\": \"#/definitions/N\"}", "\"definitions\": {\"N\": {\"type\": \"integer\"}}", FR_VALUE_NUMBER},
    {"{\"$ref\": \"#/$defs/N\"}", "\"$defs\": {\"N\": {\"enum\": [\"5\", \"6\"]}}", FR_VALUE_STRING},
    {"{\"$ref\": \"#/$defs/N\"}", "\"$defs\": {\"N\": {\"$ref\": \"#/$defs/M\"}, \"M\": {\"const\": \"x\"}}",
     FR_VALUE_STRING},
    {"{\"$ref\": \"#/$defs/a~1b~0c%20d\"}", "\"$defs\": {\"a/b~c d\": {\"type\": \"string\"}}", FR_VALUE_STRING},
    {"{\"$ref\": \"#/properties/m/anyOf/1\"}", "\"x\": 1", FR_VALUE_BOOLEAN},
    {"{\"$ref\": \"#\"}", "\"type\": \"object\"", FR_VALUE_OBJECT},
    {"{\"$ref\": \"#/$defs/N\", \"type\": \"string\"}", "\"x\": 1", FR_VALUE_STRING},
    {"{\"$ref\": \"#/$defs/N\"}", "\"x\": 1", 0},
    {"{\"$ref\": \"other.json#/$defs/N\"}", "\"$defs\": {\"N\": {\"type\": \"string\"}}", 0},
    {"{\"$ref\": \"#/properties/m/anyOf/x\"}", "\"x\": 1", 0},
    {"{\"$ref\": 7}", "\"x\": 1", 0},
    {"{\"const\": \"5\"}", "\"x\": 1", FR_VALUE_STRING},
    {"{\"const\": 5}", "\"x\": 1", FR_VALUE_NUMBER},
    {"{\"const\": null}", "\"x\": 1", FR_VALUE_NULL},
    {"{\"enum\": [\"5\", null]}", "\"x\": 1", FR_VALUE_STRING | FR_VALUE_NULL},
    {"{\"enum\": []}", "\"x\": 1", 0},
    {"{\"type\": [\"string\", \"integer\"], \"enum\": [\"5\", \"6\"]}", "\"x\": 1", FR_VALUE_STRING},
    {"{\"type\": \"string\", \"enum\": [5]}", "\"x\": 1", FR_VALUE_STRING}, /* the type decides, not the listed value */
    {"{\"allOf\": [{\"type\": \"string\"}]}", "\"x\": 1", FR_VALUE_STRING},
    {"{\"allOf\": [{\"$ref\": \"#/$defs/N\"}], \"default\": 1}", "\"$defs\": {\"N\": {\"type\": \"string\"}}",
     FR_VALUE_STRING},
    {"{\"allOf\": [{\"minLength\": 1}, {\"type\": [\"string\", \"null\"]}, {\"type\": [\"string\", \"number\"]}]}",
     "\"x\": 1", FR_VALUE_STRING},
    {"{\"anyOf\": [{\"$ref\": \"#/$defs/N\"}, {\"type\": \"null\"}]}", "\"$defs\": {\"N\": {\"enum\": [\"5\"]}}",
     FR_VALUE_STRING | FR_VALUE_NULL},
    {"{\"oneOf\": [{\"const\": \"a\"}, {\"const\": \"b\"}]}", "\"x\": 1", FR_VALUE_STRING},
    {"{\"oneOf\": [{\"const\": \"a\"}, {\"const\": 1}]}", "\"x\": 1", FR_VALUE_STRING | FR_VALUE_NUMBER},
    {"{\"anyOf\": [{\"type\": \"string\"}, true]}", "\"x\": 1", 0},
    {"{\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"integer\"}], \"const\": \"5\"}", "\"x\": 1", FR_VALUE_STRING},
    {"{\"$ref\": \"#/$defs/N\", \"nullable\": true}", "\"$defs\": {\"N\": {\"type\": \"string\"}}",
     FR_VALUE_STRING | FR_VALUE_NULL},
    /* A schema that refers only to itself states no type. */
    {"{\"$ref\": \"#/properties/n\"}", "\"x\": 1", 0},
    {"{\"$ref\": \"#/$defs/A\"}", "\"$defs\": {\"A\": {\"$ref\": \"#/$defs/B\"}, \"B\": {\"$ref\": \"#/$defs/A\"}}", 0},
    {"{\"$ref\": \"#/$defs/A\"}",
     "\"$defs\": {\"A\": {\"anyOf\": [{\"$ref\": \"#/$defs/A\"}, {\"type\": \"string\"}]}}", FR_VALUE_STRING},
    {"{\"$ref\": \"#/$defs/A\"}",
     "\"$defs\": {\"A\": {\"anyOf\": [{\"allOf\": [{\"$ref\": \"#/$defs/B\"}]}, {\"allOf\": [{\"$ref\": "
     "\"#/$defs/B\"}]}]}, "
     "\"B\": {\"oneOf\": [{\"$ref\": \"#/$defs/A\"}, {\"$ref\": \"#/$defs/A\"}, {\"type\": \"string\"}]}}",
     FR_VALUE_STRING},
};

START_TEST(schemas_behind_references) {
    for (size_t i = 0; i < COUNT_OF(referring); i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "[{\"name\": \"f\", \"parameters\": {\"properties\": {\"n\": %s, \"m\": {\"anyOf\": [1, {\"type\": "
                 "\"boolean\"}]}}, %s}}]",
                 referring[i].schema, referring[i].beside);
        json_t *tools = json_loads(text, 0, NULL);
        ck_assert_msg(tools != NULL, "%s", text);
        fr_value_types found = fr_tool_parameter_types(fr_tool_find(tools, "f"), "n");
        ck_assert_msg(found == referring[i].types, "%s: %u, not %u", text, found, referring[i].types);
        json_decref(tools);
    }
}
END_TEST

/* The schema with the parameters may itself be behind a reference. */
START_TEST(parameters_behind_references) {
    static const char *const parameters[] = {
        "{\"$ref\": \"#/$defs/P\", \"$defs\": {\"P\": {\"properties\": {\"n\": {\"type\": \"string\"}}}}}",
        "{\"allOf\": [{\"properties\": {\"m\": {}}}, {\"properties\": {\"n\": {\"type\": \"string\"}}}]}",
        "{\"anyOf\": [{\"properties\": {\"m\": {}}}, {\"properties\": {\"n\": {\"type\": \"string\"}}}]}",
        "{\"properties\": {\"m\": {}}, \"additionalProperties\": {\"type\": \"string\"}}",
    };
    for (size_t i = 0; i < COUNT_OF(parameters); i++) {
        json_t *tool = json_pack("{s:o}", "parameters", json_loads(parameters[i], 0, NULL));
        ck_assert_msg(fr_tool_parameter_types(tool, "n") == FR_VALUE_STRING, "%s", parameters[i]);
        ck_assert_uint_eq(fr_tool_parameter_types(tool, "m"), 0);
        json_decref(tool);
    }
}
END_TEST

/* There are 40 schemas, and each of them refers to all 40. The result, that nothing is known about the type, must come
 * at once. */
START_TEST(schemas_without_end) {
    json_t *all = json_array(), *definitions = json_object();
    for (int i = 0; i < 40; i++) {
        char name[16], reference[32];
        snprintf(name, sizeof name, "d%d", i);
        snprintf(reference, sizeof reference, "#/$defs/d%d", i);
        json_array_append_new(all, json_pack("{s:s}", "$ref", reference));
        json_object_set_new(definitions, name, json_pack("{s:O}", "anyOf", all));
    }
    json_t *tool = json_pack("{s:{s:{s:{s:s}}, s:o}}", "parameters", "properties", "n", "$ref", "#/$defs/d0", "$defs",
                             definitions);
    ck_assert_uint_eq(fr_tool_parameter_types(tool, "n"), 0);
    json_decref(all);
    json_decref(tool);
}
END_TEST

static bool scans(const char *text, size_t length) {
    fr_json_scan scan = {0};
    for (size_t i = 0; i < length; i++)
        if (fr_json_scan_byte(&scan, text[i]) == FR_SCAN_BAD) return false;
    return fr_json_scan_complete(&scan);
}

/* The scanner of JSON must agree with jansson. The texts are valid ones, and valid ones in which one or two bytes are
 * changed. */
START_TEST(scanned_json) {
    static const char *const texts[] = {
        "{\"a\": [1, -2.5e+3, true, null, {\"b\": {}}], \"\\u00e4\\n\\\"\": \"x\", \"c\": []}",
        "[[[]], {}, 0, 0.0, -1E9]",
        "\"text\"",
        "-0",
        " 12 ",
        "true",
        "{\"a\":{\"a\":{\"a\":[false]}}}"};
    static const char bytes[] = "{}[]\",:.0123456789eE+-\\ntrufalsex \n";
    size_t good = 0;
    for (size_t round = 0; round < 400000; round++) {
        char text[128];
        const char *from = texts[draw(COUNT_OF(texts))];
        size_t length = strlen(from), changes = draw(3);
        memcpy(text, from, length);
        for (size_t i = 0; i < changes && length > 1; i++) {
            size_t at = draw(length);
            if (draw(3) == 0)
                memmove(text + at, text + at + 1, --length - at);
            else
                text[at] = bytes[draw(sizeof bytes - 1)];
        }
        json_error_t error;
        json_t *value = json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        if (!value && json_error_code(&error) == json_error_numeric_overflow) continue;
        if (scans(text, length) != (value != NULL)) ck_abort_msg("%.*s", (int)length, text);
        good += value != NULL;
        json_decref(value);
    }
    ck_assert_uint_gt(good, 150000);
}
END_TEST

/* A call that is too long, or nested too deeply, is content. */
START_TEST(limits) {
    fr_text_buffer deep = {0};
    fr_text_append_string(&deep, "c<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": ");
    for (size_t i = 0; i < 1000; i++) fr_text_append_string(&deep, "[");
    check_parts("qwen3", "", true, deep.bytes + 1, deep.bytes);
    fr_text_free(&deep);

    fr_text_append_string(&deep, "c<|tool_call>call:now{a:");
    for (size_t i = 0; i < 1000; i++) fr_text_append_string(&deep, "[");
    check_parts("gemma4", "", true, deep.bytes + 1, deep.bytes);
    fr_text_free(&deep);

    fr_text_append_string(&deep, "c<tool_call>{\"name\": \"");
    for (size_t i = 0; i < 1000; i++) fr_text_append_string(&deep, "long");
    fr_text_append_string(&deep, "\", \"arguments\": {}}</tool_call>");
    check_parts("qwen3", "", true, deep.bytes + 1, deep.bytes);
    fr_text_free(&deep);
}
END_TEST

/* The reader may hold back only text that may still become a mark, and the line breaks before this text. */
START_TEST(held_back) {
    fr_reply_format format = format_of("qwen3.5");
    static const char reply[] = "x\n<<<<tool_<tool_cal <function x </think <thin\n\n\n<to\n";
    json_t *tools = json_pack("[{s:s}]", "name", "now");
    for (size_t length = 0; length < 2 * strlen(reply); length++) {
        part_log l = {.last = -1};
        fr_reply_reader *reader;
        size_t fed = length / 2;
        bool lines = length % 2; /* without tools, line breaks do not belong to a mark */
        require(fr_reply_reader_new(take_part, &l, &reader));
        require(fr_reply_reader_begin(reader, &format, "", 0, lines ? tools : NULL, 0, false));
        for (size_t at = 0; at < fed; at++) require(fr_reply_reader_feed(reader, reply + at, 1, false));
        size_t told = l.text.length > 0 ? l.text.length - 1 : 0, held = fed - told, partly = 0;
        for (size_t n = 1; n <= fed; n++)
            for (size_t i = 0; i < FR_MARK_COUNT; i++)
                if (format.marks[i] && strlen(format.marks[i]) > n && strncmp(format.marks[i], reply + fed - n, n) == 0)
                    partly = n;
        while (lines && partly < fed && reply[fed - partly - 1] == '\n') partly++;
        ck_assert_msg(held == partly, "%zu bytes of %.*s held", held, (int)fed, reply);
        fr_reply_reader_free(reader);
        fr_text_free(&l.text);
    }
    json_decref(tools);
}
END_TEST

/* The buffer for held-back text must have room for the longest mark. */
START_TEST(marks) {
    /* from this text alone, the library concludes that the model reasons */
    static const char ends[] = "content.split('</think>')[-1]";
    ck_assert_str_eq(fr_reply_format_of(ends, strlen(ends), NULL).marks[FR_MARK_THINK], "<think>");
    for (size_t i = 0; i < COUNT_OF(styles); i++) {
        fr_reply_format format = format_of(styles[i]);
        ck_assert(format.marks[FR_MARK_CALL] || strcmp(styles[i], GLM_4) == 0);
        for (size_t m = 0; m < FR_MARK_COUNT; m++)
            ck_assert(!format.marks[m] || strlen(format.marks[m]) <= FR_MARK_MAX);
    }
}
END_TEST

/* All calls of a reply must have different ids. Two replies with different seeds must have no id in common. */
START_TEST(ids) {
    fr_reply_format format = format_of("glm");
    char seen[40][16];
    size_t count = 0;
    for (uint64_t seed = 0; seed < 4; seed++) {
        fr_reply_reader *reader;
        require(fr_reply_reader_new(NULL, NULL, &reader));
        require(fr_reply_reader_begin(reader, &format, "", 0, NULL, seed, false));
        for (size_t i = 0; i < 10; i++) require(fr_reply_reader_feed(reader, "<tool_call>f</tool_call>", 24, false));
        require(fr_reply_reader_finish(reader));
        char *json;
        size_t length;
        require(fr_reply_reader_message(reader, &json, &length));
        json_t *message = json_loadb(json, length, 0, NULL);
        ck_assert(json_is_null(json_object_get(message, "content")));
        for (size_t i = 0; i < 10; i++) {
            const char *id = text_at(json_array_get(json_object_get(message, "tool_calls"), i), "id");
            for (size_t n = 0; n < count; n++) ck_assert_str_ne(id, seen[n]);
            snprintf(seen[count++], sizeof *seen, "%s", id);
        }
        json_decref(message);
        free(json);
        fr_reply_reader_free(reader);
    }
}
END_TEST

/* Whatever bytes a model writes, the content in the message must be valid UTF-8. */
START_TEST(broken_text) {
    static const struct {
        const char *text, *valid;
        size_t length;
    } cases[] = {
        {"a\xf0\x9f\x98"
         "b\xff\xc3\xa4\0c\xe2\x82",
         "a\xef\xbf\xbd"
         "b\xef\xbf\xbd\xc3\xa4\0c\xef\xbf\xbd",
         12},
        {"\xc3", "\xef\xbf\xbd", 1},
        {"\xf0\x9f", "\xef\xbf\xbd", 2},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", 3},
        {"\xf0\x9f\x98\x80\x80", "\xf0\x9f\x98\x80\xef\xbf\xbd", 5},
        {"\xe2\x28", "\xef\xbf\xbd(", 2},
    };
    fr_reply_format format = format_of("chatml");
    run how = {.format = &format};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        json_t *message;
        part_log l = read_reply(&how, cases[i].text, cases[i].length, &message);
        const json_t *content = json_object_get(message, "content");
        size_t length = i == 0 ? 15 : strlen(cases[i].valid);
        ck_assert_uint_eq(json_string_length(content), length);
        ck_assert_mem_eq(json_string_value(content), cases[i].valid, length);
        ck_assert_uint_eq(l.text.length, 1 + cases[i].length);
        ck_assert_ptr_null(json_object_get(message, "reasoning_content"));
        json_decref(message);
        fr_text_free(&l.text);
    }
}
END_TEST

/* A model without its own call format gets a prompt that describes a generic format. A reply in this format has one or
 * several calls, as in llama.cpp's generic handler, or is one of the variants that such models write. A call of a
 * function that was not offered is content, and any other object is content too. */
START_TEST(generic_calls) {
    static const struct {
        const char *reply, *calls, *content; /* calls: the names and arguments of all calls, one after the other */
    } cases[] = {
        {"{\"tool_calls\": [{\"name\": \"f\", \"arguments\": {\"a\": 1}}]}", "f{\"a\": 1}", ""},
        {"{\"tool_calls\": [{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\", \"arguments\": {}}]}",
         "f{\"a\": 1}g{}", ""},
        {"{\"tool_call\": {\"name\": \"f\", \"arguments\": {\"a\": [\"}\", {}]}}}\n", "f{\"a\": [\"}\", {}]}", ""},
        {"\n{\n  \"tool_calls\": [\n    {\n      \"name\": \"f\",\n      \"arguments\": {},\n      \"id\": \"1\"\n"
         "    }\n  ]\n}",
         "f{}", ""},
        {"{\"name\": \"f\", \"arguments\": {}}", "f{}", ""},
        {"<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", "f{}", ""},
        {"{\"tool_calls\": [{\"name\": \"f\", \"arguments\": {}}", "f{}", ""},
        {"{\"tool_calls\": [{\"name\": \"h\", \"arguments\": {}}]}", "",
         "{\"tool_calls\": [{\"name\": \"h\", \"arguments\": {}}]}"},
        {"{\"tool_calls\": []}", "", "{\"tool_calls\": []}"},
        {"{\"tool_calls\": [{\"tool_calls\": [", "", "{\"tool_calls\": [{\"tool_calls\": ["},
        {"{\"response\": \"f\"}", "", "{\"response\": \"f\"}"},
        {"Yes: {\"tool_calls\": 1}", "", "Yes: {\"tool_calls\": 1}"},
    };
    fr_reply_format format = format_of("=nothing");
    fr_reply_format_generic(&format, NULL);
    json_t *tools = json_loads("[{\"name\": \"f\"}, {\"name\": \"g\"}]", 0, NULL);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t piece = 0; piece < 4; piece++) {
            const run how = {.format = &format, .tools = tools, .piece = piece, .whole = piece % 2};
            char said[256] = "";
            size_t length = 0;
            json_t *message, *call;
            size_t k;
            part_log l = read_reply(&how, cases[i].reply, strlen(cases[i].reply), &message);
            json_array_foreach (json_object_get(message, "tool_calls"), k, call) {
                const json_t *function = json_object_get(call, "function");
                length += (size_t)snprintf(said + length, sizeof said - length, "%s%s", text_at(function, "name"),
                                           text_at(function, "arguments"));
            }
            ck_assert_msg(strcmp(said, cases[i].calls) == 0, "%s: %s", cases[i].reply, said);
            ck_assert_msg(strcmp(text_at(message, "content"), cases[i].content) == 0, "%s: %s", cases[i].reply,
                          text_at(message, "content"));
            json_decref(message);
            fr_text_free(&l.text);
        }
    json_decref(tools);
}
END_TEST

FR_SUITE("reply") {
    TCase *tcase = tcase_create("reply");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, rendered_calls);
    tcase_add_test(tcase, any_cut);
    tcase_add_test(tcase, any_end);
    tcase_add_test(tcase, reasoning);
    tcase_add_test(tcase, calls);
    tcase_add_loop_test(tcase, calls_that_nearly_are, 0, COUNT_OF(near_misses));
    tcase_add_loop_test(tcase, calls_of_families, 0, COUNT_OF(families));
    tcase_add_loop_test(tcase, calls_that_are_cut_off, 0, COUNT_OF(cut_replies));
    tcase_add_loop_test(tcase, families_by_tokens, 0, COUNT_OF(families));
    tcase_add_test(tcase, generic_calls);
    tcase_add_test(tcase, arguments_once);
    tcase_add_loop_test(tcase, messages_in_channels, 0, COUNT_OF(harmony));
    tcase_add_test(tcase, any_messages);
    tcase_add_test(tcase, half_pairs);
    tcase_add_test(tcase, own_id);
    tcase_add_test(tcase, lines_without_tools);
    tcase_add_test(tcase, no_calls);
    tcase_add_test(tcase, void_calls);
    tcase_add_test(tcase, control_tokens);
    tcase_add_test(tcase, values);
    tcase_add_test(tcase, plain_quotes);
    tcase_add_test(tcase, plain_quotes_gone_wrong);
    tcase_add_test(tcase, schemas);
    tcase_add_test(tcase, schemas_behind_references);
    tcase_add_test(tcase, parameters_behind_references);
    tcase_add_test(tcase, schemas_without_end);
    tcase_add_test(tcase, scanned_json);
    tcase_add_test(tcase, limits);
    tcase_add_test(tcase, held_back);
    tcase_add_test(tcase, marks);
    tcase_add_test(tcase, ids);
    tcase_add_test(tcase, broken_text);
    suite_add_tcase(suite, tcase);
}
