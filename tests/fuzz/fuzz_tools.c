/* libFuzzer's target for the parameters of tools. The first byte chooses the call format (the form in which a model
 * writes tool calls), and the rest is JSON of any kind.
 *
 * In: any bytes. The target makes a reply that the grammar of calls allows. Out: a crash if a sanitizer finds an error,
 * or if this reply can't be read as calls of the tool, each with an object of arguments. */
#include <unistd.h>

#include "base/hash.h"
#include "tests/fuzz/harness.h"

enum { FORMS = 9, MOST = 96, WALKS = 3 };

/* For each call format, the file of a template, or the part of a template that shows the format. */
static const char *const templates[FORMS] = {
    "chat/templates/llama3.1", "chat/templates/glm4.6",     "chat/templates/qwen3.5",
    "chat/templates/gemma4",   "templates/minimax",         "templates/kimi",
    "templates/command-a",     "{# <|tool_list_start|> #}", "{# <function_calls> #}"};
static fr_tokenizer *tokenizers[FORMS];
static fr_token_tree *trees[FORMS];

static void open_form(int form) {
    const char *source = templates[form];
    char template[100];
    fr_options *options = fr_options_new();
    snprintf(template, sizeof template, "tests/data/%s.jinja", source);
    if (*source == '{') {
        snprintf(template, sizeof template, "/tmp/fuzz-tools-XXXXXX");
        int file = mkstemp(template);
        if (file < 0 || write(file, source, strlen(source)) != (ssize_t)strlen(source)) die("can't write", template);
        close(file);
    }
    if (!options || fr_options_set_text(options, FR_OPT_CHAT_TEMPLATE, template) != FR_OK ||
        fr_tokenizer_open("tests/data/glm-ocr", options, &tokenizers[form]) != FR_OK ||
        fr_token_tree_open(tokenizers[form], &trees[form]) != FR_OK)
        die(fr_last_error(), template);
    if (*source == '{') unlink(template);
    fr_options_free(options);
}

/* Returns one of the ids whose bits are set; `number` chooses which. Returns -1 if no bit is set. */
static int32_t pick(const uint64_t *bits, size_t vocab, uint32_t number) {
    size_t count = 0;
    for (size_t id = 0; id < vocab; id++) count += bits[id / 64] >> (id % 64) & 1;
    if (count == 0) return -1;
    size_t chosen = number % count, id = 0;
    for (;; id++)
        if (bits[id / 64] >> (id % 64) & 1 && chosen-- == 0) return (int32_t)id;
}

/* Makes a reply that the grammar allows. Returns the number of its ids. Returns 0 if the reply does not end within MOST
 * ids, or if the grammar fails. */
static size_t walk(fr_grammar *grammar, int form, uint32_t *seed, int32_t *ids) {
    for (size_t count = 0; count < MOST; count++) {
        const uint64_t *bits;
        bool ends;
        if (fr_grammar_allowed(grammar, ids, count, &bits, &ends) != FR_OK) return 0;
        if (ends) return count;
        *seed = *seed * 1664525u + 1013904223u;
        ids[count] = pick(bits, fr_tokenizer_count(tokenizers[form]), *seed >> 8);
        if (ids[count] < 0) abort();
    }
    return 0;
}

static void check_reply(int form, const char *options, const int32_t *ids, size_t count) {
    fr_reply_parser *parser;
    char *json;
    size_t length;
    if (fr_reply_parser_new(tokenizers[form], NULL, NULL, &parser) != FR_OK ||
        fr_reply_parser_begin(parser, NULL, options, true, 1) != FR_OK)
        abort();
    for (size_t i = 0; i < count; i++)
        if (fr_reply_parser_feed(parser, ids[i]) != FR_OK) abort();
    if (fr_reply_parser_finish(parser) != FR_OK || fr_reply_parser_message(parser, &json, &length) != FR_OK) abort();
    json_t *message = json_loadb(json, length, JSON_ALLOW_NUL, NULL), *call;
    const json_t *calls = json_object_get(message, "tool_calls");
    size_t i;
    if (json_array_size(calls) == 0) abort();
    json_array_foreach (calls, i, call) {
        const json_t *said = json_object_get(json_object_get(call, "function"), "arguments");
        json_t *arguments = json_loadb(json_string_value(said), json_string_length(said), JSON_ALLOW_NUL, NULL);
        if (!json_is_object(arguments)) abort();
        json_decref(arguments);
    }
    json_decref(message);
    fr_free(json);
    fr_reply_parser_free(parser);
}

/* Returns true if values in the schema may contain the marks that begin and end calls. For this tokenizer the marks are
 * ordinary text, so such values could be mistaken for calls. */
static bool may_have_marks(const char *text) {
    return strchr(text, '<') || strstr(text, "\\u") || strchr(text, '|');
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const char begin[] = "{\"tools\": [{\"name\": \"f\", \"parameters\": ", end[] = "}]}";
    if (size == 0 || memchr(bytes + 1, 0, size - 1)) return 0;
    int form = *bytes % FORMS;
    uint32_t seed = (uint32_t)fr_hash(0, bytes, size);
    char *options;
    if (!trees[form]) open_form(form);
    if (asprintf(&options, "%s%.*s%s", begin, (int)size - 1, (const char *)bytes + 1, end) < 0) abort();
    fr_grammar *grammar = NULL;
    const fr_reply_rule rule = {.options_json = options, .calls = FR_REPLY_CALLS_MUST, .tool = "f"};
    bool opened = fr_grammar_open_reply(trees[form], &rule, &grammar) == FR_OK;
    fuzz_inputs_read += opened;
    for (int i = 0; opened && i < WALKS; i++) {
        int32_t ids[MOST];
        size_t count = walk(grammar, form, &seed, ids);
        if (count && !may_have_marks(options)) check_reply(form, options, ids, count);
    }
    fr_grammar_close(grammar);
    free(options);
    return 0;
}
