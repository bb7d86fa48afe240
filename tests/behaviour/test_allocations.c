/* Tests runs in which an allocation fails. The allocation may be one of the library, of jansson, of PCRE2 or of the C
 * library. The call must then report that there was no memory, or succeed without the memory. Nothing may leak, and the
 * same run must give the same result afterwards.
 *
 * By default only a sample of the allocations fails, which is spread over the whole run. With FULL every allocation
 * fails in turn, and the suite is split into parts. */
/* suite: native */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun.h"
#include "tests/support/alloc_guard.h"
#include "tests/support/parts.h"
#include "tests/support/reference.h"
#include "tests/support/suite.h"

#define COUNT 12
#define FEW   60 /* without FULL, this many of the allocations of each run fail, one at a time */

/* The results of a run, which must be equal in every run. */
typedef struct outcome {
    uint64_t hash;
} outcome;

static void note(outcome *o, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++) o->hash = (o->hash ^ at[i]) * 0x100000001b3u; /* FNV-1a */
}

static fr_options *new_options(void) {
    fr_options *options = fr_options_new();
    if (!options) return NULL;
    fr_options_set(options, FR_OPT_CONTEXT, 96);
    fr_options_set(options, FR_OPT_THREADS, 2);
    fr_options_set(options, FR_OPT_IGNORE_EOS, 1);
    return options;
}

static fr_status generate(fr_session *session, outcome *o) {
    int32_t ids[COUNT];
    fr_status status = FR_OK;
    for (size_t made = 0, got = 1; made < COUNT && got && status == FR_OK; made += got)
        status = fr_session_step(session, ids + made, COUNT - made, &got, NULL);
    if (status == FR_OK) note(o, ids, sizeof ids);
    return status;
}

static const int32_t prompt[] = {2, 100, 200, 300, 400, 50};

/* ------------------------------------------------------------------------------------------- the calls that are run */

static const struct {
    const char *target, *drafter; /* drafter: NULL means the target's own MTP layer */
} models[] = {{FR_TEST_MODELS "gemma4-e", FR_TEST_MODELS "gemma4-e/assistant"},
              {"tests/data/llama/q4_0.gguf", "tests/data/llama/eagle3.gguf"},
              {FR_TEST_MODELS "qwen35-tied", NULL},
              {"tests/data/dflash/v2-qwen3", "tests/data/dflash/v2-qwen3/drafter"},
              {"tests/data/dflash/dspark-qwen3", "tests/data/dflash/dspark-qwen3/drafter.gguf"}};
enum { MODELS = sizeof models / sizeof *models };

/* A session that drafts is saved to memory and to a file, and restored from both. */
static fr_status keep(fr_session *session, fr_session *other, outcome *o) {
    char path[64];
    void *bytes = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "/tmp/test_allocations_%d", (int)getpid());
    fr_status status = fr_session_attach(session, "notes", 5);
    if (status == FR_OK) status = fr_session_save_bytes(session, &bytes, &size);
    if (status == FR_OK) note(o, bytes, size);
    if (status == FR_OK) status = fr_session_save(session, path);
    if (status == FR_OK) status = fr_session_restore(other, path);
    if (status == FR_OK) status = fr_session_restore_bytes(other, bytes, size);
    if (status == FR_OK) status = generate(other, o);
    if (status != FR_OK && bytes == NULL) ck_assert_uint_eq(size, 0);
    unlink(path);
    fr_free(bytes);
    return status;
}

static fr_status run_model(int which, outcome *o) {
    fr_model *model = NULL;
    fr_drafter *drafter = NULL;
    fr_session *session = NULL, *other = NULL;
    fr_options *options = new_options();
    if (!options) return FR_MEMORY;
    fr_status status = fr_model_open(models[which].target, options, &model);
    if (status == FR_OK) status = fr_drafter_open(models[which].drafter, model, options, &drafter);
    if (status == FR_OK) status = fr_session_open(model, drafter, options, &session);
    if (status == FR_OK) status = fr_session_open(model, NULL, options, &other);
    if (status == FR_OK) status = fr_session_prompt(session, prompt, 6);
    if (status == FR_OK) status = generate(session, o);
    if (status == FR_OK) status = fr_draft_submit(session);
    if (status == FR_OK) status = keep(session, other, o);
    fr_session_close(other);
    fr_session_close(session);
    fr_drafter_close(drafter);
    fr_model_close(model);
    fr_options_free(options);
    return status;
}

static fr_status allow(void *context, const int32_t *ids, size_t length, float *logits, size_t vocab) {
    (void)context, (void)ids, (void)length, (void)logits, (void)vocab;
    return FR_OK;
}

/* Runs two sessions of one engine and a fork. One of the sessions gets a mask, and later new options. */
static fr_status run_sessions(fr_engine *engine, const fr_options *options, fr_session **s, outcome *o) {
    const char *stops[] = {"never said"};
    fr_status status = FR_OK;
    for (int i = 0; i < 2 && status == FR_OK; i++) {
        status = fr_engine_session(engine, options, &s[i]);
        if (status == FR_OK) status = fr_session_set_stops(s[i], stops, 1);
        if (status == FR_OK) status = fr_session_put(s[i], prompt, 5 + (size_t)i);
    }
    if (status == FR_OK) status = fr_session_set_mask(s[1], allow, NULL);
    if (status == FR_OK) status = fr_session_set_options(s[1], options);
    if (status == FR_OK) status = generate(s[0], o);
    if (status == FR_OK) status = generate(s[1], o);
    if (status == FR_OK) status = fr_session_fork(s[0], NULL, &s[2]);
    return status == FR_OK ? generate(s[2], o) : status;
}

static fr_status run_engine(int which, outcome *o) {
    fr_model *model = NULL;
    fr_engine *engine = NULL;
    fr_session *sessions[3] = {NULL};
    fr_options *options = new_options();
    uint64_t bytes[FR_ESTIMATE_COUNT];
    (void)which;
    if (!options) return FR_MEMORY;
    fr_options_set_number(options, FR_OPT_TEMPERATURE, 1);
    fr_status status = fr_model_estimate(models[0].target, NULL, options, 3, bytes);
    if (status == FR_OK) status = fr_model_open(models[0].target, options, &model);
    if (status == FR_OK) status = fr_engine_open(model, NULL, options, 3, &engine);
    if (status == FR_OK) status = run_sessions(engine, options, sessions, o);
    for (int i = 0; i < 3; i++) fr_session_close(sessions[i]);
    fr_engine_close(engine);
    fr_model_close(model);
    fr_options_free(options);
    return status;
}

/* Renders a conversation with a checkpoint's own template, tokenizes it, and parses a reply. Tokenizing runs the
 * tokenizer's regular expressions. */
static fr_status reply(const fr_tokenizer *tokenizer, const fr_marked_text *text, const char *given, outcome *o) {
    static const char said[] = "<think>Well.\n<tool_call>\n{\"name\": \"now\", \"arguments\": {\"a\": [1, 2], "
                               "\"\\u0061\": {\"b\": 1, \"b\": [1, 2]}}}\n</tool_call>";
    fr_reply_parser *parser = NULL;
    char *json = NULL;
    size_t length = 0;
    fr_status status = fr_reply_parser_new(tokenizer, NULL, NULL, &parser);
    if (status == FR_OK) status = fr_reply_parser_begin(parser, text, given, true, 7);
    if (status == FR_OK) status = fr_reply_parser_feed_text(parser, said, strlen(said));
    if (status == FR_OK) status = fr_reply_parser_finish(parser);
    if (status == FR_OK) status = fr_reply_parser_message(parser, &json, &length);
    if (status == FR_OK) note(o, json, length);
    fr_free(json);
    fr_reply_parser_free(parser);
    return status;
}

static fr_status run_chat(int which, outcome *o) {
    static const char *const folders[] = {FR_TEST_MODELS "gemma4-e", "tests/data/glm-ocr", "tests/data/deepseek-v3"};
    static const char messages[] = "[{\"role\": \"user\", \"content\": \"W\\u00f6rter, 42 of 12345678901234567890?\"}]";
    static const char given[] = "{\"tools\": [{\"type\": \"function\", "
                                "\"function\": {\"name\": \"now\", \"parameters\": {}}}]}";
    fr_tokenizer *tokenizer = NULL;
    fr_marked_text text = {0};
    int32_t *ids = NULL;
    char *back = NULL;
    size_t count = 0, length = 0;
    fr_status status = fr_tokenizer_open(folders[which], NULL, &tokenizer);
    if (status == FR_OK) status = fr_chat_render(tokenizer, messages, given, &text);
    if (status == FR_OK) note(o, text.text, text.length);
    if (status == FR_OK) status = fr_tokenize_marked(tokenizer, &text, &ids, &count);
    if (status == FR_OK) status = fr_detokenize(tokenizer, ids, count, &back, &length);
    if (status == FR_OK) note(o, back, length);
    if (status == FR_OK) status = reply(tokenizer, &text, given, o);
    fr_free(ids);
    fr_free(back);
    fr_marked_text_free(&text);
    fr_tokenizer_close(tokenizer);
    return status;
}

/* Runs a tool-call grammar over a text, token by token, and hashes its masks. If a failed allocation silently lost a
 * rule of the grammar, a mask would differ. The grammar sorts the vocabulary once per process, which happens in the
 * first warm-up run. */
static fr_status along(fr_grammar *grammar, size_t vocab, const int32_t *ids, size_t count, outcome *o) {
    const size_t words = (vocab + 63) / 64;
    for (size_t i = 0; i < count; i++) {
        const uint64_t *bits;
        bool ends;
        fr_status status = fr_grammar_allowed(grammar, ids, i, &bits, &ends);
        if (status != FR_OK) return status;
        note(o, bits, words * sizeof *bits);
        note(o, &ends, sizeof ends);
    }
    return FR_OK;
}

#define LISTED "what is written out in one piece, or not at all"

static const struct calls {
    const char *template, *text;
} calls[] = {{"llama3.1", "{\"name\": \"f\", \"parameters\": {\"a\":\"" LISTED "\",\"n\":7}}"},
             {"glm4.6", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>" LISTED "</arg_value>\n<arg_key>n</arg_key>\n"
                        "<arg_value>7</arg_value>\n</tool_call>"},
             {"qwen3.5", "<tool_call>\n<function=f>\n<parameter=a>\n" LISTED "\n</parameter>\n<parameter=n>\n7\n"
                         "</parameter>\n</function>\n</tool_call>"}};
static fr_tokenizer *call_tokenizers[sizeof calls / sizeof *calls];
static fr_token_tree *call_trees[sizeof calls / sizeof *calls];

static fr_status sort_tokens(int which) {
    char template[100];
    fr_options *options = fr_options_new();
    snprintf(template, sizeof template, "tests/data/chat/templates/%s.jinja", calls[which].template);
    fr_status status = fr_options_set_text(options, FR_OPT_CHAT_TEMPLATE, template);
    if (status == FR_OK) status = fr_tokenizer_open("tests/data/glm-ocr", options, &call_tokenizers[which]);
    if (status == FR_OK) status = fr_token_tree_open(call_tokenizers[which], &call_trees[which]);
    fr_options_free(options);
    return status;
}

static fr_status run_calls(int which, outcome *o) {
    static const char tool[] =
        "{\"tools\": [{\"name\": \"f\", \"parameters\": {\"properties\": {\"a\": {\"anyOf\": [{\"$ref\": "
        "\"#/$defs/u\"}, {\"type\": \"null\"}]}, \"n\": {\"type\": \"integer\", \"minimum\": 3, \"maximum\": 45}}, "
        "\"required\": [\"a\", \"n\"], \"$defs\": {\"u\": {\"type\": \"string\", \"enum\": [\"x\", \"" LISTED
        "\"]}}}}]}";
    const char *text = calls[which].text;
    const fr_tokenizer *tokenizer;
    fr_grammar *grammar = NULL;
    int32_t *ids = NULL;
    size_t count = 0;
    fr_status status = call_trees[which] ? FR_OK : sort_tokens(which);
    tokenizer = call_tokenizers[which];
    const fr_reply_rule rule = {.options_json = tool, .calls = FR_REPLY_CALLS_MUST};
    if (status == FR_OK) status = fr_grammar_open_reply(call_trees[which], &rule, &grammar);
    if (status == FR_OK) status = fr_tokenize(tokenizer, text, strlen(text), false, true, &ids, &count);
    if (status == FR_OK) status = along(grammar, fr_tokenizer_count(tokenizer), ids, count, o);
    fr_free(ids);
    fr_grammar_close(grammar);
    return status;
}

/* A vision model reads a PNG or a JPEG picture. */
static fr_status run_pictures(int which, outcome *o) {
    static const char *const paths[] = {"tests/data/images/png-0-1-i.png", "tests/data/images/jpeg-rgb.jpg"};
    fr_model *model = NULL;
    fr_picture *picture = NULL;
    fr_status status = fr_model_open("tests/data/glm-ocr", NULL, &model);
    if (status == FR_OK) status = fr_picture_open(paths[which], model, &picture);
    size_t tokens = fr_picture_tokens(picture);
    if (status == FR_OK) note(o, &tokens, sizeof tokens);
    fr_picture_close(picture);
    fr_model_close(model);
    return status;
}

/* ------------------------------------------------------------------------------------ runs with failing allocations */

static const struct {
    fr_status (*run)(int which, outcome *o);
    int which;
    const char *name;
} runs[] = {{run_model, 0, "Gemma 4 and its assistant"},
            {run_model, 1, "Llama and EAGLE-3, GGUF"},
            {run_model, 2, "Qwen3.5 and its MTP layer"},
            {run_engine, 0, "an engine"},
            {run_chat, 0, "Gemma's chat"},
            {run_chat, 1, "GLM's chat"},
            {run_chat, 2, "DeepSeek's chat"},
            {run_calls, 0, "calls in JSON"},
            {run_calls, 1, "calls with GLM's tags"},
            {run_calls, 2, "calls with Qwen's tags"},
            {run_pictures, 0, "a PNG"},
            {run_pictures, 1, "a JPEG"}};

static void fail_one(int run, size_t nth, const outcome *expected, size_t live) {
    outcome got = {0};
    fr_alloc_fail(nth);
    fr_status status = runs[run].run(runs[run].which, &got);
    bool failed = fr_alloc_failed();
    fr_alloc_fail(SIZE_MAX);
    ck_assert_msg(status == FR_MEMORY || status == FR_OK, "%s, allocation %zu: %s: %s", runs[run].name, nth,
                  fr_status_name(status), fr_last_error());
    ck_assert_msg(status == FR_MEMORY || got.hash == expected->hash, "%s, allocation %zu: another outcome",
                  runs[run].name, nth);
    ck_assert_msg(failed || status == FR_OK, "%s: without a failure, %s", runs[run].name, fr_last_error());
    ck_assert_msg(fr_alloc_live() == live, "%s, allocation %zu (%s): %zd are kept", runs[run].name, nth,
                  fr_status_name(status), (ssize_t)(fr_alloc_live() - live));
    got = (outcome){0};
    status = runs[run].run(runs[run].which, &got);
    ck_assert_msg(status == FR_OK && got.hash == expected->hash, "%s, after allocation %zu: %s", runs[run].name, nth,
                  status == FR_OK ? "another outcome" : fr_last_error());
}

START_TEST(each_allocation_may_fail) {
    outcome expected = {0}, again = {0};
    if (!fr_alloc_counted()) {
        fr_test_skipped("allocations are not counted in this build");
        return;
    }
    /* some allocations happen only once per process; the two warm-up runs make them */
    for (int warm = 0; warm < 2; warm++) {
        expected = (outcome){0};
        fr_status opened = runs[_i].run(runs[_i].which, &expected);
        ck_assert_msg(opened == FR_OK, "%s: %s", runs[_i].name, fr_last_error());
    }
    size_t live = fr_alloc_live(), before = fr_alloc_count();
    fr_status status = runs[_i].run(runs[_i].which, &again);
    size_t now = fr_alloc_live(), count = fr_alloc_count() - before;
    fr_test_part part = {0, runs[_i].run == run_calls ? 1 : count / FEW + 1};
    if (fr_test_in_parts()) part = fr_test_part_here();
    ck_assert_msg(status == FR_OK && again.hash == expected.hash, "%s: another outcome", runs[_i].name);
    ck_assert_msg(now == live, "%s: %zd are kept", runs[_i].name, (ssize_t)(now - live));
    for (size_t nth = part.first; nth < count; nth += part.step) fail_one(_i, nth, &expected, live);
}
END_TEST

FR_SUITE("allocations") {
    TCase *cases = tcase_create("allocations");
    tcase_set_timeout(cases, 3000);
    tcase_add_loop_test(cases, each_allocation_may_fail, 0, sizeof runs / sizeof *runs);
    suite_add_tcase(suite, cases);
}
