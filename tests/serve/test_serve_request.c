/* Tests tools/serve/generation_request, which reads requests member by member, in OpenAI's formats and in llama.cpp's
 * own.
 *
 * The names and meanings of members are those of OpenAI's reference and of llama.cpp's server (tools/server/README.md).
 * Ids and texts are compared with those that the library gives with the same options. The ids of the picture are
 * compared with transformers' (tests/data/glm-ocr/reference.json). */
/* suite: hostile threads links=command */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"
#include "tools/cli/wide_json.h"
#include "tools/serve/generation_request.h"

#define DEMO "tools/demo/target"
#define GLM  "tests/data/glm-ocr"
#define HI   "\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]"
#define TEXT "\"prompt\": \"Once upon\""

enum { CHAT = 1, COMPLETION = 2, NATIVE = 4, ALL = 7 };
static const fr_job_form forms[] = {FR_JOB_CHAT, FR_JOB_COMPLETION, FR_JOB_NATIVE};

static fr_arguments args;
static fr_loaded loaded;
static fr_job_setting setting = {.args = &args, .loaded = &loaded, .model = "target"};

static void open_model(const char *path, const char *drafter) {
    args.number[FR_ARG_PREDICT] = -1;
    args.text[FR_ARG_MODEL] = path;
    loaded.options = fr_options_new();
    require(fr_options_set(loaded.options, FR_OPT_THREADS, 1));
    require(fr_options_set(loaded.options, FR_OPT_CONTEXT, 256));
    require(fr_options_set_number(loaded.options, FR_OPT_TEMPERATURE, 0.75));
    require(fr_model_open(path, loaded.options, &loaded.model));
    if (drafter) require(fr_drafter_open(drafter, loaded.model, loaded.options, &loaded.drafter));
    setting.context = 256;
}

/* Opens the engine. Each test must call this in its own process, because an engine's threads exist only in the process
 * that opened it. */
static void open_engine(void) {
    require(fr_engine_open(loaded.model, loaded.drafter, loaded.options, 4, &setting.engine));
}

static void close_engine(void) {
    fr_engine_close(setting.engine);
    setting.engine = NULL;
}

static void open_demo(void) {
    open_model(DEMO, NULL);
}

static void open_drafting(void) {
    open_model(DEMO, "tools/demo/assistant");
}

static void open_glm(void) {
    open_model(GLM, NULL);
}

static void open_llama(void) {
    open_model("tests/data/models/llama-odd", NULL);
}

static void close_model(void) {
    fr_loaded_close(&loaded);
}

/* ------------------------------------------------------------------------------------------------- sending requests */

static fr_generation_request *read_request(fr_job_form form, const char *body) {
    json_error_t error;
    json_t *value = fr_json_load(body, strlen(body), &error);
    ck_assert_msg(value != NULL, "%s: %s", body, error.text);
    return fr_generation_request_read(NULL, &setting, form, value);
}

static fr_generation_request *read_well(fr_job_form form, const char *body) {
    fr_generation_request *a = read_request(form, body);
    ck_assert_msg(!a->error[0], "%s: %s", body, a->error);
    ck_assert_uint_gt(a->count, 0);
    return a;
}

/* Reads a request that consists of a prompt and the given members. */
static fr_generation_request *read_with(fr_job_form form, const char *member) {
    char body[2048];
    snprintf(body, sizeof body, "{%s, %s}", form == FR_JOB_CHAT ? HI : TEXT, member);
    return read_request(form, body);
}

/* Checks that the request was refused with status `why`, and that its error contains `says`. Frees the request. */
static void refuse(fr_generation_request *a, fr_status why, const char *says) {
    ck_assert_msg(a->error[0], "was not refused: \"%s\"", says);
    ck_assert_msg(strstr(a->error, says), "\"%s\" is not in \"%s\"", says, a->error);
    ck_assert_msg(a->why == why, "%d: %s", a->why, a->error);
    ck_assert_uint_eq(a->count, 0);
    ck_assert_ptr_null(a->choices);
    fr_generation_request_free(a);
}

static const fr_options *options_of(const fr_generation_request *a) {
    return a->choices[0].job.options;
}

static int64_t whole_of(const fr_options *options, fr_option option) {
    int64_t value;
    require(fr_options_get(options, option, &value));
    return value;
}

/* ---------------------------------------------------------------------------------------------------------- members */

static const struct {
    unsigned forms;
    const char *member;
    fr_option option;
    double value;
} numbers[] = {
    {ALL, "\"temperature\": 0", FR_OPT_TEMPERATURE, 0},
    {ALL, "\"temperature\": 1.5", FR_OPT_TEMPERATURE, 1.5},
    {ALL, "\"temperature\": null", FR_OPT_TEMPERATURE, 0.75},
    {ALL, "\"unheard_of\": 7", FR_OPT_TEMPERATURE, 0.75},
    {ALL, "\"top_k\": 5", FR_OPT_TOP_K, 5},
    {ALL, "\"top_k\": -1", FR_OPT_TOP_K, 0},
    {ALL, "\"top_p\": 0.5", FR_OPT_TOP_P, 0.5},
    {ALL, "\"min_p\": 0.25", FR_OPT_MIN_P, 0.25},
    {ALL, "\"top_n_sigma\": -1", FR_OPT_TOP_N_SIGMA, -1},
    {ALL, "\"typical_p\": 0.5", FR_OPT_TYPICAL_P, 0.5},
    {ALL, "\"xtc_probability\": 0.5", FR_OPT_XTC_PROBABILITY, 0.5},
    {ALL, "\"xtc_threshold\": 0.25", FR_OPT_XTC_THRESHOLD, 0.25},
    {ALL, "\"dynatemp_range\": 0.5", FR_OPT_DYNATEMP_RANGE, 0.5},
    {ALL, "\"dynatemp_exponent\": 2", FR_OPT_DYNATEMP_EXPONENT, 2},
    {ALL, "\"mirostat\": 2", FR_OPT_MIROSTAT, 2},
    {ALL, "\"mirostat_tau\": 4", FR_OPT_MIROSTAT_ENT, 4},
    {ALL, "\"mirostat_eta\": 0.5", FR_OPT_MIROSTAT_LR, 0.5},
    {ALL, "\"repeat_penalty\": 1.5", FR_OPT_REPEAT_PENALTY, 1.5},
    {ALL, "\"repeat_last_n\": 32", FR_OPT_REPEAT_LAST_N, 32},
    {ALL, "\"repetition_penalty\": 1.25", FR_OPT_REPEAT_PENALTY, 1.25},
    {ALL, "\"repetition_penalty\": 1.25", FR_OPT_REPEAT_LAST_N, -1},
    {ALL, "\"repeat_last_n\": 8, \"repetition_penalty\": 1.25", FR_OPT_REPEAT_LAST_N, 8},
    {ALL, "\"presence_penalty\": 0.5", FR_OPT_PRESENCE_PENALTY, 0.5},
    {ALL, "\"frequency_penalty\": -0.5", FR_OPT_FREQUENCY_PENALTY, -0.5},
    {ALL, "\"dry_multiplier\": 0.5", FR_OPT_DRY_MULTIPLIER, 0.5},
    {ALL, "\"dry_base\": 2", FR_OPT_DRY_BASE, 2},
    {ALL, "\"dry_allowed_length\": 3", FR_OPT_DRY_ALLOWED_LENGTH, 3},
    {ALL, "\"dry_penalty_last_n\": 128", FR_OPT_DRY_PENALTY_LAST_N, 128},
    {ALL, "\"seed\": 4294967295", FR_OPT_SEED, 4294967295},
    {ALL, "\"ignore_eos\": true", FR_OPT_IGNORE_EOS, 1},
    {ALL, "\"n_probs\": 3", FR_OPT_LOGPROBS, 3},
    {ALL, "\"n_probs\": 0", FR_OPT_LOGPROBS, -1},
    {CHAT | NATIVE, "\"n_probs\": 3, \"post_sampling_probs\": true", FR_OPT_LOGPROBS_DRAWN, 1},
    {CHAT, "\"logprobs\": true", FR_OPT_LOGPROBS, 0},
    {CHAT, "\"logprobs\": false", FR_OPT_LOGPROBS, -1},
    {CHAT, "\"logprobs\": true, \"top_logprobs\": 4", FR_OPT_LOGPROBS, 4},
    {CHAT, "\"n_probs\": 3, \"logprobs\": true, \"top_logprobs\": 4", FR_OPT_LOGPROBS, 4},
    {COMPLETION, "\"logprobs\": 0", FR_OPT_LOGPROBS, 0},
    {COMPLETION | NATIVE, "\"logprobs\": 4", FR_OPT_LOGPROBS, 4},
    {COMPLETION | NATIVE, "\"logprobs\": 4, \"n_probs\": 3", FR_OPT_LOGPROBS, 3},
    {NATIVE, "\"logprobs\": 0", FR_OPT_LOGPROBS, -1},
    {ALL, "\"speculative.n_max\": 4", FR_OPT_DRAFT_MAX, 4},
    {ALL, "\"speculative.n_max\": -1", FR_OPT_DRAFT_MAX, FR_DRAFT_AUTO},
    {ALL, "\"speculative.n_max\": \"auto\"", FR_OPT_DRAFT_MAX, FR_DRAFT_AUTO},
    {ALL, "\"speculative.n_min\": 2", FR_OPT_DRAFT_MIN, 2},
    {ALL, "\"speculative.p_min\": 0.5", FR_OPT_DRAFT_P_MIN, 0.5},
    {ALL, "\"speculative.p_min\": \"auto\"", FR_OPT_DRAFT_P_MIN, FR_DRAFT_P_AUTO},
    {ALL, "\"speculative\": {\"n_max\": 4, \"n_min\": null, \"ngram_size_n\": 3}", FR_OPT_DRAFT_MAX, 4},
    {ALL, "\"speculative\": {\"n_min\": 2}", FR_OPT_DRAFT_MIN, 2},
    {ALL, "\"speculative\": {\"p_min\": 0.5}", FR_OPT_DRAFT_P_MIN, 0.5},
};

START_TEST(numbers_are_options) {
    for (size_t f = 0; f < 3; f++) {
        if (!(numbers[_i].forms & 1u << f)) continue;
        fr_generation_request *a = read_with(forms[f], numbers[_i].member);
        fr_option_kind kind;
        double value;
        ck_assert_msg(!a->error[0], "%s", a->error);
        require(fr_option_range(numbers[_i].option, &kind, NULL, NULL));
        if (kind == FR_OPTION_NUMBER)
            require(fr_options_get_number(options_of(a), numbers[_i].option, &value));
        else
            value = (double)whole_of(options_of(a), numbers[_i].option);
        ck_assert_msg(value == numbers[_i].value, "%s: %g", numbers[_i].member, value);
        if (numbers[_i].option == FR_OPT_LOGPROBS) ck_assert_int_eq(a->choices[0].job.best, (int64_t)value);
        fr_generation_request_free(a);
    }
}
END_TEST

static const struct {
    const char *member;
    fr_option option;
    const char *text;
} texts[] = {
    {"\"samplers\": [\"top_k\", \"temperature\"]", FR_OPT_SAMPLERS, "kt"},
    {"\"samplers\": \"edkt\"", FR_OPT_SAMPLERS, "edkt"},
    {"\"dry_sequence_breakers\": [\"x\"]", FR_OPT_DRY_SEQUENCE_BREAKER, "x"},
    {"\"dry_sequence_breakers\": []", FR_OPT_DRY_SEQUENCE_BREAKER, "none"},
    {"\"logit_bias\": {\"5\": 1.5, \"7\": -100}", FR_OPT_LOGIT_BIAS, "5+1.5,7-100"},
    {"\"logit_bias\": [[5, false], [7, 2]]", FR_OPT_LOGIT_BIAS, "5-inf,7+2"},
    {"\"logit_bias\": []", FR_OPT_LOGIT_BIAS, ""},
    {"\"speculative.type\": \"ngram\"", FR_OPT_SPEC_TYPE, "ngram"},
    {"\"speculative\": {\"type\": \"none\"}", FR_OPT_SPEC_TYPE, "none"},
    {"\"accept\": \"gumbel\"", FR_OPT_ACCEPT, "gumbel"},
};

static void check_text(const fr_generation_request *a, fr_option option, const char *expected) {
    char text[512];
    size_t length;
    require(fr_options_get_text(options_of(a), option, text, sizeof text, &length));
    ck_assert_str_eq(text, expected);
}

START_TEST(texts_are_options) {
    for (size_t f = 0; f < 3; f++) {
        fr_generation_request *a = read_with(forms[f], texts[_i].member);
        ck_assert_msg(!a->error[0], "%s", a->error);
        check_text(a, texts[_i].option, texts[_i].text);
        fr_generation_request_free(a);
    }
}
END_TEST

/* A text in "logit_bias" means the tokens that this text has in the middle of a longer text. The member has two
 * formats. */
START_TEST(biases_of_texts) {
    static const char *const members[] = {"\"logit_bias\": [[\" upon\", -2], [5, 1]]",
                                          "\"logit_bias\": {\" upon\": -2, \"5\": 1}"};
    char expected[512] = "";
    int32_t *ids;
    size_t count;
    require(fr_tokenize(fr_model_tokenizer(loaded.model), " upon", 5, false, false, &ids, &count));
    for (size_t i = 0; i < count; i++)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%d-2,", ids[i]);
    snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "5+1");
    fr_free(ids);
    for (size_t f = 0; f < 3; f++)
        for (size_t m = 0; m < 2; m++) {
            fr_generation_request *a = read_with(forms[f], members[m]);
            ck_assert_msg(!a->error[0], "%s", a->error);
            check_text(a, FR_OPT_LOGIT_BIAS, expected);
            fr_generation_request_free(a);
        }
}
END_TEST

/* Three members limit the number of ids: n_predict, max_completion_tokens and max_tokens. If a request has several of
 * them, the first in this order is used. */
static const struct {
    const char *member;
    int64_t most;
} limits[] = {
    {"\"max_tokens\": 7", 7},
    {"\"max_completion_tokens\": 7", 7},
    {"\"n_predict\": 7", 7},
    {"\"max_tokens\": 5, \"max_completion_tokens\": 7", 7},
    {"\"max_completion_tokens\": 7, \"max_tokens\": 5", 7},
    {"\"n_predict\": 7, \"max_completion_tokens\": 5, \"max_tokens\": 4", 7},
    {"\"max_tokens\": 4, \"n_predict\": -1", -1},
    {"\"max_tokens\": 7, \"n_predict\": null", 7},
    {"\"max_tokens\": 0", 0},
    {"\"stop\": []", -1},
};

START_TEST(most_ids) {
    for (size_t f = 0; f < 3; f++) {
        fr_generation_request *a = read_with(forms[f], limits[_i].member);
        ck_assert_msg(!a->error[0], "%s", a->error);
        ck_assert_int_eq(a->choices[0].job.most, limits[_i].most);
        fr_generation_request_free(a);
    }
}
END_TEST

START_TEST(stops) {
    args.stop_count = 1;
    args.stops[0] = "own";
    for (size_t f = 0; f < 3; f++) {
        fr_generation_request *a = read_with(forms[f], "\"stop\": [\"a\", \"bc\"]"),
                              *b = read_with(forms[f], "\"stop\": \"x\\ny\"");
        fr_generation_request *c = read_with(forms[f], "\"stop\": null"), *d = read_with(forms[f], "\"stop\": \"\"");
        fr_generation_request *e = read_with(forms[f], "\"stop\": [\"\", \"a\", \"\"]");
        const fr_job *jobs[] = {&a->choices[0].job, &b->choices[0].job, &c->choices[0].job, &d->choices[0].job,
                                &e->choices[0].job};
        ck_assert_uint_eq(jobs[3]->stop_count, 0);
        ck_assert_uint_eq(jobs[4]->stop_count, 1);
        ck_assert_str_eq(jobs[4]->stops[0], "a");
        ck_assert_uint_eq(jobs[0]->stop_count, 2);
        ck_assert_str_eq(jobs[0]->stops[0], "a");
        ck_assert_str_eq(jobs[0]->stops[1], "bc");
        ck_assert_uint_eq(jobs[1]->stop_count, 1);
        ck_assert_str_eq(jobs[1]->stops[0], "x\ny");
        ck_assert_uint_eq(jobs[2]->stop_count, 1);
        ck_assert_str_eq(jobs[2]->stops[0], "own");
        fr_generation_request_free(a);
        fr_generation_request_free(b);
        fr_generation_request_free(c);
        fr_generation_request_free(d);
        fr_generation_request_free(e);
    }
    args.stop_count = 0;
}
END_TEST

START_TEST(whole_numbers_may_have_a_point) {
    for (size_t f = 0; f < 3; f++) {
        fr_generation_request *a =
            read_with(forms[f], "\"n\": 2.0, \"seed\": 1e3, \"top_k\": 7.0, \"max_tokens\": 5.0, "
                                "\"speculative\": {\"n_max\": 3.0}");
        ck_assert_msg(!a->error[0], "%s", a->error);
        ck_assert_uint_eq(a->each, 2);
        ck_assert_int_eq(a->choices[0].job.most, 5);
        ck_assert_int_eq(whole_of(options_of(a), FR_OPT_SEED), 1000);
        ck_assert_int_eq(whole_of(options_of(a), FR_OPT_TOP_K), 7);
        ck_assert_int_eq(whole_of(options_of(a), FR_OPT_DRAFT_MAX), 3);
        fr_generation_request_free(a);
    }
}
END_TEST

/* Tests members that determine the content of the answer and how it is sent. */
START_TEST(answers) {
    for (size_t f = 0; f < 3; f++) {
        fr_generation_request *plain = read_with(forms[f], "\"user\": \"me\"");
        ck_assert(!plain->stream && !plain->include_usage && !plain->return_tokens && !plain->return_progress &&
                  !plain->timings_per_token);
        ck_assert_int_eq(plain->slot, -1);
        ck_assert_ptr_null(plain->fields);
        ck_assert_int_eq(plain->ping, -1);
        ck_assert_uint_eq(plain->each, 1);
        ck_assert_str_eq(plain->model, "target");
        fr_generation_request *a = read_with(
            forms[f], "\"stream\": true, \"stream_options\": {\"include_usage\": true, \"x\": 1}, "
                      "\"return_tokens\": true, \"return_progress\": true, \"timings_per_token\": true, "
                      "\"id_slot\": 3, \"sse_ping_interval\": 5, \"model\": \"any\", \"cache_prompt\": false, "
                      "\"n_keep\": -1, \"n_discard\": 0, \"n_cache_reuse\": 256, \"t_max_predict_ms\": 0, "
                      "\"min_keep\": 0, \"n_indent\": 0, \"post_sampling_probs\": false, \"lora\": [], "
                      "\"grammar\": \"\", \"reasoning_budget_tokens\": -1, \"adaptive_target\": -1.0, "
                      "\"response_fields\": [], \"images\": [], \"echo\": false, \"grammar_lazy\": false");
        ck_assert_msg(!a->error[0], "%s", a->error);
        ck_assert(a->stream && a->include_usage && a->return_tokens && a->return_progress && a->timings_per_token);
        ck_assert_int_eq(a->slot, 3);
        ck_assert_ptr_null(a->fields);
        ck_assert_int_eq(a->ping, 5);
        ck_assert_str_eq(a->model, "any");
        ck_assert_int_eq(strncmp(a->id, f == 1 ? "cmpl-" : "chatcmpl-", f == 1 ? 5 : 9), 0);
        ck_assert_str_ne(a->id, plain->id);
        ck_assert_uint_eq(strlen(a->id), f == 1 ? 37 : 41);
        fr_generation_request_free(a);
        fr_generation_request_free(plain);
        fr_generation_request *chosen = read_with(forms[f], "\"response_fields\": [\"content\"]");
        ck_assert_uint_eq(json_array_size(chosen->fields), f == 2 ? 1 : 0);
        fr_generation_request_free(chosen);
        fr_generation_request *silent = read_with(forms[f], "\"sse_ping_interval\": -1");
        ck_assert_int_eq(silent->ping, 0);
        fr_generation_request_free(silent);
    }
}
END_TEST

#define TOOL "{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"d\", \"parameters\": {}}}"

/* All choices of a request use the same grammar. In this test the grammar determines their first token. */
START_TEST(grammars) {
    static const char *const members[] = {
        "\"grammar\": \"root ::= [{]\"",
        "\"regex\": \"[{]\"",
        "\"json_schema\": {\"type\": \"object\"}",
        "\"response_format\": {\"type\": \"json_object\"}",
        "\"response_format\": {\"type\": \"json_object\", \"schema\": {\"properties\": {}}}",
        "\"response_format\": {\"type\": \"json_schema\", \"schema\": {\"properties\": {}}}",
        ("\"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": \"x\", \"strict\": true, "
         "\"schema\": {\"required\": [\"a\"]}}}"),
        "\"guided_json\": {\"type\": \"object\"}",
        "\"guided_json\": \"{\\\"type\\\": \\\"object\\\"}\"",
        "\"guided_regex\": \"[{]\", \"guided_decoding_backend\": \"xgrammar\"",
        "\"guided_grammar\": \"root ::= [{]\"",
        "\"guided_choice\": [\"{\"]",
        "\"structured_outputs\": {\"json\": {\"type\": \"object\"}, \"regex\": null}",
        "\"structured_outputs\": {\"choice\": [\"{\", \"{}\"], \"disable_any_whitespace\": true}",
        "\"structured_outputs\": {\"json_object\": true}",
    };
    for (size_t f = 0; f < 3; f++) {
        for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
            char line[512];
            snprintf(line, sizeof line, "%s, \"n\": 3", members[i]);
            fr_generation_request *a = read_with(forms[f], line);
            ck_assert_msg(!a->error[0], "%s", a->error);
            ck_assert_ptr_nonnull(a->choices[0].job.grammar);
            ck_assert_ptr_eq(a->choices[2].job.grammar, a->choices[0].job.grammar);
            fr_generation_request_free(a);
        }
        fr_generation_request *text =
            read_with(forms[f], "\"response_format\": {\"type\": \"text\"}, \"grammar\": \"\"");
        ck_assert_msg(!text->error[0], "%s", text->error);
        ck_assert_ptr_null(text->choices[0].job.grammar);
        fr_generation_request_free(text);
    }
}
END_TEST

static const struct {
    unsigned forms;
    const char *member;
    fr_status why;
    const char *says;
} refused[] = {
    {ALL, "\"grammar\": \"root ::= x\"", FR_INPUT, "grammar: grammar, line 1, column 10: a rule that is not defined"},
    {ALL, "\"grammar\": 5", FR_USAGE, "grammar must be a text"},
    {ALL, "\"regex\": \"(\"", FR_INPUT, "regex: regular expression, at byte 1: a group is not closed"},
    {ALL, "\"regex\": \"a\", \"grammar\": \"root ::= [a]\"", FR_USAGE, "grammar and regex exclude each other"},
    {ALL, "\"json_schema\": {\"items\": {\"$dynamicRef\": \"#\"}}", FR_UNBUILT,
     "json_schema: schema, at #/items/$dynamicRef: not built"},
    {ALL, "\"json_schema\": {\"type\": \"integr\"}", FR_INPUT,
     "json_schema: schema, at #/type: this is not a type of JSON"},
    {ALL, "\"json_schema\": false", FR_INPUT, "json_schema: schema, at #: this schema allows no value"},
    {ALL, "\"json_schema\": []", FR_USAGE, "json_schema must be a schema"},
    {ALL, "\"response_format\": \"json\"", FR_USAGE, "response_format must be an object with a \"type\""},
    {ALL, "\"response_format\": {\"type\": \"yaml\"}", FR_UNBUILT, "response_format of type \"yaml\" is not built"},
    {ALL, "\"response_format\": {\"type\": \"json_schema\"}", FR_USAGE, "response_format has no json_schema.schema"},
    {ALL, "\"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"schema\": {\"$dynamicRef\": \"#\"}}}",
     FR_UNBUILT, "response_format.json_schema.schema: schema, at #/$dynamicRef: not built"},
    {ALL, "\"response_format\": {\"type\": \"json_object\", \"schema\": {\"$dynamicRef\": \"#\"}}", FR_UNBUILT,
     "response_format.schema: schema, at #/$dynamicRef: not built"},
    {ALL, "\"guided_json\": \"{\"", FR_USAGE, "guided_json is no schema"},
    {ALL, "\"guided_choice\": []", FR_USAGE, "guided_choice must be an array of texts"},
    {ALL, "\"guided_choice\": [\"a\", 5]", FR_USAGE, "guided_choice must be an array of texts"},
    {ALL, "\"structured_outputs\": \"json\"", FR_USAGE, "structured_outputs must be an object"},
    {ALL, "\"structured_outputs\": {\"structural_tag\": {}}", FR_UNBUILT, "\"structural_tag\" is not built"},
    {ALL, "\"structured_outputs\": {\"json_object\": 1}", FR_USAGE, "json_object must be true or false"},
    {ALL, "\"guided_regex\": \"a\", \"structured_outputs\": {\"choice\": [\"b\"]}", FR_USAGE, "exclude each other"},
    {ALL, "\"repetition_penalty\": \"high\"", FR_USAGE, "repetition_penalty must be a number"},
    {ALL, "\"stop_token_ids\": 5", FR_USAGE, "stop_token_ids must be an array"},
    {ALL, "\"stop_token_ids\": [-1]", FR_USAGE, "stop_token_ids[0] is no id"},
    {ALL, "\"include_stop_str_in_output\": 1", FR_USAGE, "include_stop_str_in_output must be true or false"},
    {ALL, "\"min_tokens\": -1", FR_USAGE, "min_tokens must be a whole number"},
    {ALL, "\"min_tokens\": 2, \"regex\": \"a\"", FR_USAGE, "min_tokens goes neither with a grammar"},
    {ALL, "\"grammar_lazy\": true", FR_UNBUILT, "\"grammar_lazy\" is not built"},
    {ALL, "\"grammar_triggers\": [{}]", FR_UNBUILT, "\"grammar_triggers\" is not built"},
    {ALL, "\"preserved_tokens\": [\"x\"]", FR_UNBUILT, "\"preserved_tokens\" is not built"},
    {ALL, "\"lora\": [{\"id\": 0, \"scale\": 1}]", FR_USAGE, "lora[0]: there is no such adapter"},
    {ALL, "\"lora\": {\"id\": 0}", FR_USAGE, "lora must be an array"},
    {ALL, "\"lora\": [0]", FR_USAGE, "lora[0] has no \"id\""},
    {ALL, "\"lora\": [{\"id\": -1, \"scale\": 1}]", FR_USAGE, "lora[0] has no \"id\""},
    {ALL, "\"lora\": [{\"scale\": 1}]", FR_USAGE, "lora[0] has no \"id\""},
    {COMPLETION, "\"post_sampling_probs\": true", FR_UNBUILT, "\"post_sampling_probs\" is not built"},
    {CHAT | NATIVE, "\"post_sampling_probs\": 1", FR_USAGE, "post_sampling_probs must be true or false"},
    {ALL, "\"t_max_predict_ms\": 1.5", FR_USAGE, "t_max_predict_ms must be a whole number of milliseconds"},
    {ALL, "\"n_indent\": 2", FR_UNBUILT, "\"n_indent\" is not built"},
    {ALL, "\"min_keep\": 2", FR_UNBUILT, "\"min_keep\" is not built"},
    {ALL, "\"adaptive_target\": 0.5", FR_UNBUILT, "\"adaptive_target\" is not built"},
    {COMPLETION | NATIVE, "\"reasoning_budget_tokens\": 0", FR_UNBUILT, "\"reasoning_budget_tokens\" is not built"},
    {ALL, "\"thinking_budget_tokens\": -2", FR_USAGE, "thinking_budget_tokens must be a whole number of tokens, or -1"},
    {ALL, "\"reasoning_budget\": \"low\"", FR_USAGE, "reasoning_budget must be a whole number"},
    {ALL, "\"reasoning_control\": true", FR_UNBUILT, "\"reasoning_control\" is not built"},
    {ALL, "\"images\": [\"/etc/passwd\"]", FR_UNBUILT, "\"images\" is not built"},
    {ALL, "\"mirostat\": 1", FR_UNBUILT, "mirostat"},
    {ALL, "\"samplers\": [\"infill\"]", FR_UNBUILT, "infill"},
    {CHAT | NATIVE, "\"echo\": true", FR_UNBUILT, "\"echo\" is not built"},
    {COMPLETION, "\"echo\": 1", FR_USAGE, "echo must be true or false"},
    {COMPLETION, "\"echo\": true, \"suffix\": \"x\"", FR_USAGE, "echo and suffix exclude each other"},
    {NATIVE, "\"response_fields\": \"content\"", FR_USAGE, "response_fields must be an array of texts"},
    {NATIVE, "\"response_fields\": [\"content\", 5]", FR_USAGE, "response_fields must be an array of texts"},
    {COMPLETION, "\"best_of\": 2, \"n\": 3", FR_USAGE, "best_of 2 is less than n 3"},
    {COMPLETION, "\"best_of\": 3, \"stream\": true", FR_USAGE, "best_of can't be streamed"},
    {COMPLETION, "\"best_of\": 129", FR_USAGE, "best_of must be a whole number from 1 to 128"},
    {COMPLETION, "\"suffix\": \"x\"", FR_UNBUILT, "suffix: the model has no tokens for a text that is filled in"},
    {COMPLETION, "\"suffix\": 5", FR_USAGE, "suffix must be a text"},
    {CHAT, "\"tool_choice\": \"required\"", FR_INPUT, "tool_choice: there is no tool to be called"},
    {CHAT, "\"tool_choice\": {\"type\": \"function\"}", FR_USAGE,
     "tool_choice must be none, auto, required, allowed_tools or"},
    {CHAT, "\"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"g\"}}, \"tools\": [" TOOL "]",
     FR_INPUT, "tool_choice: there is no tool \"g\""},
    {CHAT, "\"tool_choice\": {\"type\": \"allowed_tools\"}", FR_USAGE,
     "of type allowed_tools must have a mode and tools"},
    {CHAT, "\"tool_choice\": {\"type\": \"allowed_tools\", \"mode\": \"none\", \"tools\": [{\"name\": \"f\"}]}",
     FR_USAGE, "the mode of allowed_tools must be auto or required"},
    {CHAT,
     "\"tools\": [" TOOL "], \"tool_choice\": {\"type\": \"allowed_tools\", \"mode\": \"auto\", \"tools\": [{\"type\": "
     "\"function\", \"name\": \"g\"}]}",
     FR_INPUT, "tool_choice: there is no tool \"g\""},
    {CHAT,
     "\"tool_choice\": \"required\", \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", "
     "\"description\": \"d\", \"strict\": true, \"parameters\": {\"properties\": {\"a\": {\"$dynamicRef\": \"#\"}}}}}]",
     FR_UNBUILT, "tool_choice: tools[0].function.parameters: schema, at #/properties/a/$dynamicRef: not built"},
    {CHAT, "\"functions\": [{}], \"tools\": [{}]", FR_UNBUILT, "\"functions\" is not built"},
    {CHAT, "\"tools\": [{\"type\": \"custom\", \"custom\": {}}]", FR_USAGE, "tools[0] has no name"},
    {CHAT, "\"chat_template\": \"x\"", FR_UNBUILT, "\"chat_template\" is not built"},
    {ALL, "\"bad_words\": [\"x\"]", FR_UNBUILT, "\"bad_words\" is not built"},
    {ALL, "\"use_beam_search\": true", FR_UNBUILT, "\"use_beam_search\" is not built"},
    {CHAT, "\"enable_thinking\": 1", FR_USAGE, "enable_thinking must be true or false"},
    {CHAT, "\"thinking\": true", FR_USAGE, "thinking must be of type"},
    {CHAT, "\"reasoning\": \"low\"", FR_USAGE, "reasoning must be an object"},
    {CHAT, "\"reasoning\": {\"effort\": 5}", FR_USAGE, "reasoning_effort must be a text"},
    {CHAT, "\"parallel_tool_calls\": 0", FR_USAGE, "parallel_tool_calls must be true or false"},
    {CHAT, "\"reasoning_effort\": 2", FR_USAGE, "reasoning_effort must be a text"},
    {CHAT, "\"reasoning_format\": \"none\"", FR_UNBUILT, "\"reasoning_format\" is not built"},
    {CHAT, "\"modalities\": [\"text\", \"audio\"]", FR_UNBUILT, "\"modalities\" is not built"},
    {CHAT, "\"continue_final_message\": \"reasoning_content\"", FR_UNBUILT, "\"continue_final_message\" is not built"},
    {CHAT, "\"continue_final_message\": true", FR_USAGE, "the last message is not the assistant's"},
    {CHAT, "\"top_logprobs\": 2", FR_USAGE, "top_logprobs goes with"},
    {CHAT, "\"logprobs\": 2", FR_USAGE, "logprobs must be true or false"},
    {CHAT, "\"logprobs\": true, \"top_logprobs\": 101", FR_USAGE, "top_logprobs must be a whole number"},
    {CHAT, "\"tools\": {}", FR_USAGE, "tools must be an array"},
    {CHAT, "\"chat_template_kwargs\": []", FR_USAGE, "chat_template_kwargs must be an object"},
    {CHAT, "\"add_generation_prompt\": 1", FR_USAGE, "add_generation_prompt must be true or false"},
    {COMPLETION | NATIVE, "\"logprobs\": true", FR_USAGE, "logprobs must be a whole number"},
    {ALL, "\"accept\": \"rejection\"", FR_USAGE, "accept must be"},
    {ALL, "\"stream\": 1", FR_USAGE, "stream must be true or false"},
    {ALL, "\"stream_options\": true", FR_USAGE, "stream_options must be an object"},
    {ALL, "\"stream_options\": {\"include_usage\": 1}", FR_USAGE, "include_usage must be"},
    {ALL, "\"return_tokens\": \"yes\"", FR_USAGE, "return_tokens must be true or false"},
    {ALL, "\"cache_prompt\": 0", FR_USAGE, "cache_prompt must be true or false"},
    {ALL, "\"id_slot\": -2", FR_USAGE, "id_slot must be"},
    {ALL, "\"sse_ping_interval\": 0.5", FR_USAGE, "sse_ping_interval must be"},
    {ALL, "\"n\": 0", FR_USAGE, "n must be a whole number from 1 to 128"},
    {ALL, "\"n\": 129", FR_USAGE, "n must be a whole number from 1 to 128"},
    {ALL, "\"n\": 1.5", FR_USAGE, "n must be a whole number from 1 to 128"},
    {ALL, "\"n_cmpl\": \"2\"", FR_USAGE, "n_cmpl must be a whole number"},
    {ALL, "\"n_keep\": \"all\"", FR_USAGE, "n_keep must be a number"},
    {ALL, "\"n_discard\": -1", FR_USAGE, "n_discard must be at least 0"},
    {ALL, "\"max_tokens\": 1.5", FR_USAGE, "max_tokens must be"},
    {ALL, "\"max_tokens\": -2", FR_USAGE, "max_tokens must be"},
    {ALL, "\"max_tokens\": \"x\", \"n_predict\": 5", FR_USAGE, "max_tokens must be"},
    {ALL, "\"n_predict\": 2147483648", FR_USAGE, "n_predict must be"},
    {ALL, "\"n_probs\": 101", FR_USAGE, "n_probs must be a whole number from 0 to 100"},
    {ALL, "\"temperature\": \"hot\"", FR_USAGE, "temperature must be a number"},
    {ALL, "\"temperature\": -1", FR_USAGE, "temperature must be"},
    {ALL, "\"top_k\": 1.5", FR_USAGE, "top_k must be a whole number"},
    {ALL, "\"repeat_last_n\": -7", FR_USAGE, "repeat_last_n must be -1 to "},
    {ALL, "\"top_p\": [1]", FR_USAGE, "top_p must be a number"},
    {ALL, "\"samplers\": [\"top_k\", 5]", FR_USAGE, "samplers must be names"},
    {ALL, "\"samplers\": {}", FR_USAGE, "samplers must be an array"},
    {ALL, "\"dry_sequence_breakers\": \"x\"", FR_USAGE, "dry_sequence_breakers must be an array"},
    {ALL, "\"seed\": 1.5", FR_USAGE, "seed must be a whole number"},
    {ALL, "\"seed\": -2", FR_USAGE, "seed must be"},
    {ALL, "\"seed\": 99999999999999999999", FR_INPUT, "too big integer"},
    {ALL, "\"stop\": 5", FR_USAGE, "stop must be texts"},
    {ALL, "\"stop\": [\"a\", null]", FR_USAGE, "stop must be texts"},
    {ALL, "\"stop\": \"a\\u0000b\"", FR_USAGE, "stop has a NUL in it"},
    {ALL, "\"model\": 5", FR_USAGE, "model must be a name"},
    {ALL, "\"ignore_eos\": \"no\"", FR_USAGE, "ignore_eos must be true or false"},
    {ALL, "\"logit_bias\": 5", FR_USAGE, "logit_bias must be"},
    {ALL, "\"logit_bias\": {\"5\": true}", FR_USAGE, "logit_bias has a value that is not a number"},
    {ALL, "\"logit_bias\": [[-1, 2]]", FR_USAGE, "logit_bias[0] has no id"},
    {ALL, "\"logit_bias\": [[5]]", FR_USAGE, "logit_bias has a value that is not a number"},
    {ALL, "\"logit_bias\": {\"9999999\": 1}", FR_INPUT, "outside the vocabulary"},
    {ALL, "\"speculative\": 3", FR_USAGE, "speculative must be an object"},
    {ALL, "\"speculative\": {\"n_max\": 16}", FR_USAGE, "speculative.n_max must be -1 to 15, not 16"},
    {ALL, "\"speculative.n_max\": \"many\"", FR_USAGE, "speculative.n_max must be"},
    {ALL, "\"speculative.n_min\": 0.5", FR_USAGE, "speculative.n_min must be a whole number"},
    {ALL, "\"speculative.p_min\": 2", FR_USAGE, "speculative.p_min must be 0 to 1, not 2"},
    {ALL, "\"speculative.n_min\": 5, \"speculative.n_max\": 3", FR_USAGE, "speculative.n_min 5 is more than the 3"},
    {ALL, "\"speculative.type\": \"draft-mtp\"", FR_USAGE, "needs a drafter"},
    {ALL, "\"speculative.type\": \"medusa\"", FR_USAGE, "medusa is not known"},
    {ALL, "\"speculative.type\": 5", FR_USAGE, "speculative.type must be a text"},
};

START_TEST(members_that_are_refused) {
    for (size_t f = 0; f < 3; f++)
        if (refused[_i].forms & 1u << f)
            refuse(read_with(forms[f], refused[_i].member), refused[_i].why, refused[_i].says);
}
END_TEST

/* A request may name the method of the server's drafter. It may also use llama.cpp's name of the method. */
START_TEST(drafter_by_name) {
    fr_generation_request *a =
        read_with(FR_JOB_NATIVE, "\"speculative.type\": \"draft-mtp\", \"speculative.n_max\": 3");
    ck_assert_msg(!a->error[0], "%s", a->error);
    open_engine();
    fr_job_start(&a->choices[0].job, NULL, 0);
    ck_assert_msg(!a->choices[0].job.ended, "%s", a->choices[0].job.error);
    fr_generation_request_free(a);
    close_engine();
}
END_TEST

/* For OpenAI's completions these members are ignored. For a chat they are a part of the prompt. */
START_TEST(members_of_other_forms) {
    fr_generation_request *a =
        read_well(FR_JOB_COMPLETION, "{" TEXT ", \"tools\": 5, \"messages\": 7, \"tool_choice\": \"required\"}");
    fr_generation_request *b =
        read_well(FR_JOB_CHAT, "{" HI ", \"prompt\": [3], \"best_of\": 7, \"response_fields\": [\"x\"]}");
    fr_generation_request_free(a);
    fr_generation_request_free(b);
}
END_TEST

/* ---------------------------------------------------------------------------------------------- prompts and choices */

static void check_ids(const fr_job *job, const int32_t *ids, size_t count) {
    ck_assert_uint_eq(job->prompt.count, count);
    ck_assert_mem_eq(job->prompt.ids, ids, count * sizeof *ids);
}

static void check_prompt(const fr_job *job, const char *text) {
    int32_t *ids;
    size_t count;
    require(fr_tokenize(fr_model_tokenizer(loaded.model), text, strlen(text), true, true, &ids, &count));
    check_ids(job, ids, count);
    fr_free(ids);
}

START_TEST(one_prompt) {
    static const char *const bodies[] = {"{\"prompt\": \"Once upon\"}", "{\"prompt\": [\"Once upon\"]}",
                                         "{\"prompt\": {\"prompt_string\": \"Once upon\"}}",
                                         "{\"prompt\": [{\"prompt_string\": \"Once upon\"}]}"};
    for (size_t f = 1; f < 3; f++) {
        for (size_t i = 0; i < 4; i++) {
            fr_generation_request *a = read_well(forms[f], bodies[i]);
            ck_assert_uint_eq(a->count, 1);
            check_prompt(&a->choices[0].job, "Once upon");
            fr_generation_request_free(a);
        }
        fr_generation_request *ids = read_well(forms[f], "{\"prompt\": [2, 5, 9]}");
        fr_generation_request *inner = read_well(forms[f], "{\"prompt\": [[2, 5]]}");
        check_ids(&ids->choices[0].job, (const int32_t[]){2, 5, 9}, 3);
        check_ids(&inner->choices[0].job, (const int32_t[]){2, 5}, 2);
        fr_generation_request_free(ids);
        fr_generation_request_free(inner);
    }
}
END_TEST

/* A prompt may contain texts and ids. The token that begins a text is added only if the prompt's first item is a
 * text. */
START_TEST(texts_and_ids_in_turn) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(loaded.model);
    int32_t *once, *upon, expected[64];
    size_t once_count, upon_count;
    require(fr_tokenize(tokenizer, "Once", 4, true, true, &once, &once_count));
    require(fr_tokenize(tokenizer, " upon", 5, false, true, &upon, &upon_count));
    for (size_t f = 1; f < 3; f++) {
        fr_generation_request *a = read_well(forms[f], "{\"prompt\": [\"Once\", 7, 300, \" upon\", 5]}");
        size_t n = 0;
        for (size_t i = 0; i < once_count; i++) expected[n++] = once[i];
        expected[n++] = 7;
        expected[n++] = 300;
        for (size_t i = 0; i < upon_count; i++) expected[n++] = upon[i];
        expected[n++] = 5;
        ck_assert_uint_eq(a->count, 1);
        check_ids(&a->choices[0].job, expected, n);
        fr_generation_request_free(a);
        fr_generation_request *b = read_well(forms[f], "{\"prompt\": [7, \" upon\"]}");
        expected[0] = 7;
        memcpy(expected + 1, upon, upon_count * sizeof *upon);
        check_ids(&b->choices[0].job, expected, 1 + upon_count);
        fr_generation_request_free(b);
    }
    fr_free(once);
    fr_free(upon);
}
END_TEST

/* A model without a tokenizer must accept prompts of ids. It must refuse every member that needs a text. */
START_TEST(ids_alone) {
    static const char *const bodies[] = {"{\"prompt\": \"x\"}", "{\"prompt\": [5, \"x\"]}",
                                         "{\"prompt\": [5, 7], \"stop\": [\"x\"]}", "{" HI "}",
                                         "{\"prompt\": [5], \"logit_bias\": [[\"x\", 1]]}"};
    fr_generation_request *a = read_well(FR_JOB_NATIVE, "{\"prompt\": [5, 7]}");
    check_ids(&a->choices[0].job, (const int32_t[]){5, 7}, 2);
    fr_generation_request_free(a);
    for (size_t i = 0; i < 5; i++)
        refuse(read_request(i == 3 ? FR_JOB_CHAT : FR_JOB_NATIVE, bodies[i]), FR_INPUT, "no tokenizer");
}
END_TEST

static const struct {
    const char *body;
    fr_status why;
    const char *says;
} bad_prompts[] = {
    {"{}", FR_USAGE, "prompt is missing"},
    {"{\"prompt\": null}", FR_USAGE, "prompt is missing"},
    {"{\"prompt\": [null]}", FR_USAGE, "prompt is missing"},
    {"{\"prompt\": []}", FR_USAGE, "prompt is empty"},
    {"{\"prompt\": [[]]}", FR_USAGE, "prompt must be an array of ids"},
    {"{\"prompt\": 5}", FR_USAGE, "prompt must be a text"},
    {"{\"prompt\": {}}", FR_USAGE, "prompt must be a text"},
    {"{\"prompt\": {\"prompt_string\": 5}}", FR_USAGE, "prompt must be a text"},
    {"{\"prompt\": {\"prompt_string\": \"x\", \"multimodal_data\": [\"AAAA\"]}}", FR_USAGE, "sees no pictures"},
    {"{\"prompt\": {\"multimodal_data\": [\"AAAA\"]}}", FR_USAGE, "belongs beside a prompt_string"},
    {"{\"prompt\": [5, -1]}", FR_USAGE, "prompt[1] is no id"},
    {"{\"prompt\": [5, 1.5]}", FR_USAGE, "prompt[1] is no id"},
    {"{\"prompt\": [5, \"x\", true]}", FR_USAGE, "prompt[2] is neither a text nor an id"},
    {"{\"prompt\": [5, 4294967301]}", FR_USAGE, "prompt[1] is no id"},
    {"{\"prompt\": [5, 99999999999999999999]}", FR_INPUT, "too big integer"},
    {"{\"prompt\": [5, 2000000000]}", FR_INPUT, "outside the vocabulary"},
    {"{\"prompt\": [\"a\", \"b\", [2000000000]]}", FR_INPUT, "outside the vocabulary"},
    {"[]", FR_USAGE, "the body must be a JSON object"},
    {"\"x\"", FR_USAGE, "the body must be a JSON object"},
};

static json_t *load_any(const char *text) {
    return json_loads(text, JSON_DECODE_ANY, NULL);
}

START_TEST(prompts_that_are_refused) {
    json_error_t error;
    const char *body = bad_prompts[_i].body;
    for (size_t f = 1; f < 3; f++) {
        json_t *value = *body == '"' ? load_any(body) : fr_json_load(body, strlen(body), &error);
        refuse(fr_generation_request_read(NULL, &setting, forms[f], value), bad_prompts[_i].why, bad_prompts[_i].says);
    }
}
END_TEST

/* Runs all choices together. The ids of each choice must be those that the library generates for it alone with the same
 * options. */
static void run_choices(const fr_generation_request *a) {
    int32_t ids[4][FR_STEP_MAX];
    for (size_t i = 0; i < a->count; i++) fr_job_start(&a->choices[i].job, NULL, 0);
    for (size_t under_way = 1; under_way;) {
        fr_round rounds[4];
        fr_job *jobs[4];
        under_way = 0;
        for (size_t i = 0; i < a->count; i++) {
            if (a->choices[i].job.ended) continue;
            jobs[under_way] = &a->choices[i].job;
            rounds[under_way] = fr_job_round(jobs[under_way], ids[under_way]);
            under_way++;
        }
        require(fr_engine_step(setting.engine, rounds, under_way));
        for (size_t i = 0; i < under_way; i++) fr_job_take(jobs[i], &rounds[i]);
    }
}

static void check_alone(const fr_job *job, const char *prompt, int64_t seed, size_t count) {
    fr_options *options = fr_options_copy(loaded.options);
    fr_session *session;
    int32_t *ids, step[FR_STEP_MAX];
    size_t length, given, made = 0;
    require(fr_options_set(options, FR_OPT_SEED, seed));
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 1));
    require(fr_tokenize(fr_model_tokenizer(loaded.model), prompt, strlen(prompt), true, true, &ids, &length));
    require(fr_session_open(loaded.model, NULL, options, &session));
    require(fr_session_prompt(session, ids, length));
    ck_assert_msg(!job->error[0], "%s", job->error);
    ck_assert_uint_eq(job->reply.count, count);
    for (; made < count; made += given) {
        require(fr_session_step(session, step, count - made, &given, NULL));
        ck_assert_mem_eq(job->reply.ids + made, step, given * sizeof *step);
    }
    fr_free(ids);
    fr_session_close(session);
    fr_options_free(options);
}

/* Choice i of each prompt must have the request's seed plus i. */
START_TEST(choices_of_prompts) {
    static const char *const prompts[] = {"Once upon", "The old"};
    open_engine();
    for (size_t f = 1; f < 3; f++) {
        fr_generation_request *a =
            read_well(forms[f], "{\"prompt\": [\"Once upon\", \"The old\"], \"n\": 2, \"seed\": 7, "
                                "\"temperature\": 1, \"max_tokens\": 9, \"ignore_eos\": true}");
        ck_assert_uint_eq(a->count, 4);
        ck_assert_uint_eq(a->each, 2);
        run_choices(a);
        for (size_t i = 0; i < 4; i++) {
            ck_assert_uint_eq(a->choices[i].prompt, i / 2);
            ck_assert_int_eq(a->choices[i].job.seed, -1);
            check_alone(&a->choices[i].job, prompts[i / 2], 7 + (int64_t)(i % 2), 9);
        }
        ck_assert_ptr_eq(a->choices[0].job.prompt.ids, a->choices[1].job.prompt.ids);
        /* When one choice ends, the data that it shares with the others must not be freed. */
        fr_job_end(&a->choices[0].job);
        check_prompt(&a->choices[1].job, prompts[0]);
        fr_generation_request_free(a);
    }
    close_engine();
}
END_TEST

/* Runs a completion with these members. Writes the completion's text to `text`. Returns the request, which has one
 * choice. */
static fr_generation_request *run_with(const char *members, char *text, size_t size) {
    char body[512];
    snprintf(body, sizeof body, "{\"prompt\": \"Once upon\", \"temperature\": 0, \"max_tokens\": 12%s}", members);
    fr_generation_request *a = read_well(FR_JOB_COMPLETION, body);
    run_choices(a);
    const fr_job *job = &a->choices[0].job;
    ck_assert_msg(!job->error[0], "%s", job->error);
    snprintf(text, size, "%.*s", (int)job->text.length, job->text.bytes ? job->text.bytes : "");
    return a;
}

/* Tests members that vLLM's requests have: ids that stop a text and are not part of it, a stop string that remains in
 * the text, a least number of ids, and a list of texts from which the model must choose one. */
START_TEST(ends_as_vllm_knows_them) {
    char members[256], whole[256], text[256];
    open_engine();
    fr_generation_request *plain = run_with(", \"ignore_eos\": true", whole, sizeof whole);
    const fr_reply *reply = &plain->choices[0].job.reply;
    ck_assert_uint_eq(reply->kept, 12);
    size_t first = 0; /* the first index at which the fourth id occurs */
    while (reply->ids[first] != reply->ids[3]) first++;
    snprintf(members, sizeof members, ", \"ignore_eos\": true, \"stop_token_ids\": [%d]", reply->ids[3]);
    fr_generation_request *a = run_with(members, text, sizeof text);
    ck_assert_int_eq(a->choices[0].job.reply.end, FR_END_STOP);
    ck_assert_uint_eq(a->choices[0].job.reply.kept, first + 1);
    ck_assert_uint_eq(strlen(text), reply->begins[first]);
    ck_assert_int_eq(strncmp(text, whole, strlen(text)), 0);
    fr_generation_request_free(a);
    for (int keeps = 0; keeps < 2; keeps++) {
        snprintf(members, sizeof members, ", \"ignore_eos\": true, \"stop\": \"%.2s\"%s", whole + 5,
                 keeps ? ", \"include_stop_str_in_output\": true" : "");
        a = run_with(members, text, sizeof text);
        size_t at = (size_t)(strstr(whole, a->choices[0].job.stops[0]) - whole);
        ck_assert_uint_eq(strlen(text), at + (keeps ? 2 : 0));
        ck_assert_int_eq(strncmp(text, whole, strlen(text)), 0);
        fr_generation_request_free(a);
    }
    const int32_t *eos;
    ck_assert_uint_gt(fr_model_eos(loaded.model, &eos), 0);
    for (int least = 0; least < 5; least += 4) {
        snprintf(members, sizeof members, ", \"logit_bias\": {\"%d\": 100}, \"min_tokens\": %d", eos[0], least);
        a = run_with(members, text, sizeof text);
        ck_assert_int_eq(a->choices[0].job.reply.end, FR_END_EOS);
        ck_assert_uint_eq(a->choices[0].job.reply.kept, (size_t)least + 1);
        fr_generation_request_free(a);
    }
    a = run_with(", \"guided_choice\": [\"re\\\"d\", \"gre\\nen\"]", text, sizeof text);
    ck_assert_msg(strcmp(text, "re\"d") == 0 || strcmp(text, "gre\nen") == 0, "%s", text);
    fr_generation_request_free(a);
    fr_generation_request_free(plain);
    close_engine();
}
END_TEST

/* If the seed of a request is -1, a random seed is used. If the seed is missing, the seed of the command line is used,
 * or a random one if there is none. */
START_TEST(drawn_seeds) {
    int64_t last = -1;
    for (size_t f = 0; f < 3; f++)
        for (int given = 0; given < 3; given++) {
            static const char *const members[] = {"\"n\": 3", "\"n\": 3, \"seed\": -1", "\"n\": 3, \"seed\": null"};
            fr_generation_request *a = read_with(forms[f], members[given]);
            int64_t first = whole_of(options_of(a), FR_OPT_SEED);
            ck_assert_int_ne(first, last);
            for (size_t i = 0; i < 3; i++) {
                ck_assert_int_eq(whole_of(a->choices[i].job.options, FR_OPT_SEED), first + (int64_t)i);
                ck_assert_int_eq(a->choices[i].job.seed, first + (int64_t)i);
            }
            last = first;
            fr_generation_request_free(a);
        }
    args.given[FR_ARG_SEED] = true;
    require(fr_options_set(loaded.options, FR_OPT_SEED, 5));
    fr_generation_request *a = read_with(FR_JOB_NATIVE, "\"n_cmpl\": 2, \"n\": 9");
    ck_assert_uint_eq(a->count, 2);
    ck_assert_int_eq(whole_of(options_of(a), FR_OPT_SEED), 5);
    ck_assert_int_eq(whole_of(a->choices[1].job.options, FR_OPT_SEED), 6);
    ck_assert_int_eq(a->choices[1].job.seed, -1);
    fr_generation_request_free(a);
    a = read_with(FR_JOB_NATIVE, "\"n\": 2, \"seed\": 9223372036854775807");
    ck_assert_int_eq(whole_of(a->choices[1].job.options, FR_OPT_SEED), 0);
    fr_generation_request_free(a);
    args.given[FR_ARG_SEED] = false;
}
END_TEST

/* A request may have at most 128 choices for all its prompts together. */
START_TEST(limit_of_choices) {
    char body[4096] = "{\"n\": 1, \"prompt\": [";
    for (int i = 0; i < 129; i++) snprintf(body + strlen(body), sizeof body - strlen(body), "%s\"a\"", i ? "," : "");
    snprintf(body + strlen(body), sizeof body - strlen(body), "]}");
    refuse(read_request(FR_JOB_COMPLETION, body), FR_USAGE, "129 prompts");
    refuse(read_request(FR_JOB_NATIVE, "{\"n\": 43, \"prompt\": [\"a\", \"b\", \"c\"]}"), FR_USAGE, "more than 128");
    fr_generation_request *a = read_well(FR_JOB_NATIVE, "{\"n\": 64, \"prompt\": [\"a\", \"b\"]}");
    ck_assert_uint_eq(a->count, 128);
    fr_generation_request_free(a);
    a = read_with(FR_JOB_CHAT, "\"n\": 128");
    ck_assert_uint_eq(a->count, 128);
    fr_generation_request_free(a);
    a = read_with(FR_JOB_COMPLETION, "\"n\": 3, \"best_of\": 3");
    ck_assert_uint_eq(a->count, 3);
    ck_assert_uint_eq(a->shown, 0);
    fr_generation_request_free(a);
    a = read_with(FR_JOB_COMPLETION, "\"best_of\": 5, \"n\": 2");
    ck_assert_uint_eq(a->count, 5);
    ck_assert_uint_eq(a->shown, 2);
    ck_assert(a->choices[0].job.hides_logprobs);
    ck_assert_int_eq(whole_of(options_of(a), FR_OPT_LOGPROBS), 0);
    fr_generation_request_free(a);
}
END_TEST

/* A prompt must leave room for an answer. If it fills the context, it is refused. */
START_TEST(prompts_that_are_too_long) {
    char body[4096] = "{\"prompt\": [[5], [";
    for (int i = 0; i < 256; i++) snprintf(body + strlen(body), sizeof body - strlen(body), i ? ",7" : "7");
    snprintf(body + strlen(body), sizeof body - strlen(body), "]]}");
    fr_generation_request *a = read_request(FR_JOB_NATIVE, body);
    ck_assert_uint_eq(a->too_long, 256);
    refuse(a, FR_INPUT, "the prompt has 256 tokens and exceeds the available context size");
    char *text = malloc(20000); /* more bytes than 256 tokens can have */
    memset(text, 'a', 20000);
    memcpy(text, "{\"prompt\": \"", 12);
    memcpy(text + 20000 - 3, "\"}", 3);
    setting.longest = 16;
    a = read_request(FR_JOB_NATIVE, text);
    ck_assert_uint_eq(a->too_long, (20000 - 15) / 64);
    refuse(a, FR_INPUT, "the prompt has 19985 bytes, which are 312 tokens or more, and exceeds the available");
    setting.longest = 0;
    free(text);
    setting.context = 257;
    a = read_well(FR_JOB_NATIVE, body);
    ck_assert_uint_eq(a->too_long, 0);
    fr_generation_request_free(a);
    setting.context = 256;
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ chats */

/* Compares the prompt of a chat with the text that the library renders from these messages and options. The prompt must
 * lack the last `less` bytes of that text. */
static void check_chat(const char *body, const char *messages, const char *options, size_t less) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(loaded.model);
    fr_marked_text text;
    int32_t *ids;
    size_t count;
    fr_generation_request *a = read_well(FR_JOB_CHAT, body);
    require(fr_chat_render(tokenizer, messages, options, &text));
    ck_assert_uint_ge(text.length, less);
    text.length -= less;
    text.text[text.length] = '\0';
    while (text.trusted_count && text.trusted[text.trusted_count - 1].begin >= text.length) text.trusted_count--;
    if (text.trusted_count && text.trusted[text.trusted_count - 1].end > text.length)
        text.trusted[text.trusted_count - 1].end = text.length;
    require(fr_tokenize_marked(tokenizer, &text, &ids, &count));
    ck_assert_str_eq(a->choices[0].job.prompt.rendered.text, text.text);
    check_ids(&a->choices[0].job, ids, count);
    fr_free(ids);
    fr_marked_text_free(&text);
    fr_generation_request_free(a);
}

#define USER        "{\"role\": \"user\", \"content\": \"Hi\"}"
#define SAID        "{\"role\": \"assistant\", \"content\": \"Once upon\"}"
#define SMALL(name) "{\"type\": \"function\", \"function\": {\"name\": \"" name "\", \"description\": \"d\"}}"
#define CLOSE       "<turn|>\n"

#define BIG "{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"n\": 99999999999999999999}}}"

START_TEST(chats_are_rendered) {
    static const struct {
        const char *body, *messages, *options;
        size_t less;
    } cases[] = {
        {"{\"messages\": [" USER "]}", "[" USER "]", NULL, 0},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"Hi\"}]}]}", "[" USER "]",
         NULL, 0},
        /* In these messages, texts have other names, and reasoning is one of the parts. Clients of other APIs send such
         * messages. */
        {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"input_text\", \"text\": \"Hi\"}]}, "
         "{\"role\": \"assistant\", \"content\": ["
         "{\"type\": \"thinking\", \"thinking\": \"hm\"}, "
         "{\"type\": \"refusal\", \"refusal\": \"no\"}]}, " USER "]}",
         "[" USER ", {\"role\": \"assistant\", \"content\": \"no\"}, " USER "]", NULL, 0},
        {"{\"messages\": [" USER "], \"tools\": [" TOOL "]}", "[" USER "]", "{\"tools\": [" TOOL "]}", 0},
        {"{\"messages\": [" USER "], \"tools\": [" BIG "]}", "[" USER "]", "{\"tools\": [" BIG "]}", 0},
        {"{\"messages\": [" USER "], \"tools\": [" TOOL "], \"tool_choice\": \"none\"}", "[" USER "]", NULL, 0},
        {"{\"messages\": [" USER "], \"top_logprobs\": 0}", "[" USER "]", NULL, 0},
        /* "functions" is OpenAI's older form of tools. */
        {"{\"messages\": [" USER "], \"functions\": [{\"name\": \"g\", \"description\": \"d\"}], \"function_call\": "
         "\"auto\"}",
         "[" USER "]", "{\"tools\": [" SMALL("g") "]}", 0},
        {"{\"messages\": [" USER "], \"functions\": [{\"name\": \"g\"}], \"function_call\": \"none\"}", "[" USER "]",
         NULL, 0},
        /* These tools are not functions. A custom tool takes a text, and the others run elsewhere. */
        {"{\"messages\": [" USER "], \"tools\": [{\"type\": \"web_search\"}, " TOOL ", {\"type\": \"custom\", "
         "\"custom\": {\"name\": \"g\", \"description\": \"d\", \"format\": {\"type\": \"text\"}}}], "
         "\"tool_choice\": \"auto\"}",
         "[" USER "]",
         "{\"tools\": [" TOOL ", {\"type\": \"function\", \"function\": {\"name\": \"g\", "
         "\"description\": \"d\", \"parameters\": {\"type\": \"object\", \"properties\": {\"input\": {\"type\": "
         "\"string\"}}, \"required\": [\"input\"]}}}]}",
         0},
        {"{\"messages\": [" USER ", {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"c\", "
         "\"type\": \"custom\", \"custom\": {\"name\": \"g\", \"input\": \"x\"}}]}, {\"role\": \"tool\", "
         "\"tool_call_id\": \"c\", \"content\": \"7\"}]}",
         "[" USER ", {\"role\": \"assistant\", \"content\": \"\", "
         "\"tool_calls\": [{\"id\": \"c\", \"type\": \"function\", \"function\": {\"name\": \"g\", \"arguments\": "
         "{\"input\": \"x\"}}}]}, {\"role\": \"tool\", \"tool_call_id\": \"c\", \"content\": \"7\"}]",
         NULL, 0},
        {"{\"messages\": [" USER "], \"tools\": [" TOOL "], \"tool_choice\": \"none\", \"parallel_tool_calls\": false}",
         "[" USER "]", NULL, 0},
        {"{\"messages\": [" USER "], \"tools\": [{\"type\": \"web_search\"}, " TOOL "], \"tool_choice\": {\"type\": "
         "\"web_search\"}}",
         "[" USER "]", "{\"tools\": [" TOOL "]}", 0},
        /* Only the allowed tools are in the prompt. Clients list the allowed tools in two formats. */
        {"{\"messages\": [" USER "], \"tools\": [" TOOL ", " SMALL(
             "g") "], \"tool_choice\": {\"type\": "
                  "\"allowed_tools\", \"mode\": \"auto\", \"tools\": [{\"type\": \"function\", \"name\": \"g\"}]}}",
         "[" USER "]", "{\"tools\": [" SMALL("g") "]}", 0},
        {"{\"messages\": [" USER "], \"tool_choice\": {\"type\": \"allowed_tools\", \"allowed_tools\": {\"mode\": "
         "\"required\", \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]}}, \"tools\": "
         "[" SMALL("g") ", " TOOL "]}",
         "[" USER "]", "{\"tools\": [" TOOL "]}", 0},
        {"{\"messages\": [" USER "], \"chat_template_kwargs\": {\"enable_thinking\": true}}", "[" USER "]",
         "{\"enable_thinking\": true}", 0},
        {"{\"messages\": [" USER "], \"reasoning_effort\": \"none\"}", "[" USER "]", "{\"enable_thinking\": false}", 0},
        {"{\"messages\": [" USER "], \"enable_thinking\": true}", "[" USER "]", "{\"enable_thinking\": true}", 0},
        {"{\"messages\": [" USER "], \"thinking\": {\"type\": \"enabled\"}}", "[" USER "]",
         "{\"enable_thinking\": true}", 0},
        {"{\"messages\": [" USER "], \"thinking\": {\"type\": \"disabled\"}}", "[" USER "]",
         "{\"enable_thinking\": false}", 0},
        {"{\"messages\": [" USER "], \"reasoning\": {\"enabled\": true, \"exclude\": false}}", "[" USER "]",
         "{\"enable_thinking\": true}", 0},
        {"{\"messages\": [" USER "], \"reasoning_effort\": \"high\"}", "[" USER "]", "{\"reasoning_effort\": \"high\"}",
         0},
        {"{\"messages\": [" USER "], \"add_generation_prompt\": false}", "[" USER "]",
         "{\"add_generation_prompt\": false}", 0},
        {"{\"messages\": [" USER "], \"parallel_tool_calls\": false, \"modalities\": [\"text\"], \"functions\": [], "
         "\"reasoning_format\": \"auto\"}",
         "[" USER "]", NULL, 0},
        {"{\"messages\": [{\"role\": \"developer\", \"content\": \"Be brief\"}, " USER "]}",
         "[{\"role\": \"system\", \"content\": \"Be brief\"}, " USER "]", NULL, 0},
        /* If a conversation ends with a message of the assistant, the reply continues this message. */
        {"{\"messages\": [" USER ", " SAID "]}", "[" USER ", " SAID "]", "{\"add_generation_prompt\": false}",
         sizeof CLOSE - 1},
        {"{\"messages\": [" USER ", " SAID "], \"continue_final_message\": true}", "[" USER ", " SAID "]",
         "{\"add_generation_prompt\": false}", sizeof CLOSE - 1},
        {"{\"messages\": [" USER ", " SAID "], \"continue_final_message\": true, \"add_generation_prompt\": false}",
         "[" USER ", " SAID "]", "{\"add_generation_prompt\": false}", sizeof CLOSE - 1},
        {"{\"messages\": [" USER ", " SAID "], \"continue_final_message\": \"content\"}", "[" USER ", " SAID "]",
         "{\"add_generation_prompt\": false}", sizeof CLOSE - 1},
        {"{\"messages\": [" USER ", {\"role\": \"assistant\", \"content\": [{\"type\": \"text\", \"text\": \" a\"}, "
         "{\"type\": \"text\", \"text\": \"upon \"}]}]}",
         "[" USER ", {\"role\": \"assistant\", \"content\": "
         "[{\"type\": \"text\", \"text\": \" a\"}, {\"type\": \"text\", \"text\": \"upon \"}]}]",
         "{\"add_generation_prompt\": false}", sizeof CLOSE - 1},
        {"{\"messages\": [" USER ", " SAID "], \"add_generation_prompt\": true}", "[" USER ", " SAID "]", NULL, 0},
        {"{\"messages\": [" USER ", " SAID "], \"continue_final_message\": false}", "[" USER ", " SAID "]", NULL, 0},
        {"{\"messages\": [" USER ", {\"role\": \"assistant\", \"content\": \"\"}]}", "[" USER "]", NULL, 0},
        {"{\"messages\": [" USER ", {\"role\": \"assistant\", \"content\": null}]}", "[" USER "]", NULL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_chat(cases[i].body, cases[i].messages, cases[i].options, cases[i].less);
}
END_TEST

/* By default, a reply with a forced call has exactly one call, and other replies may have several. In each case a
 * request can choose the opposite. */
START_TEST(forced_calls_are_one) {
    static const char named[] = "{\"type\": \"function\", \"function\": {\"name\": \"f\"}}";
    static const char allowed[] = "{\"type\": \"allowed_tools\", \"mode\": \"required\", \"tools\": [{\"type\": "
                                  "\"function\", \"name\": \"f\"}]}";
    static const struct {
        const char *choice, *parallel;
        bool must, one;
    } cases[] = {{"\"auto\"", NULL, false, false},      {"\"auto\"", "false", false, true},
                 {"\"required\"", NULL, true, true},    {"\"required\"", "false", true, true},
                 {"\"required\"", "true", true, false}, {named, NULL, true, true},
                 {named, "true", true, false},          {allowed, NULL, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int first = 0; first < 2; first++) {
            char body[800], parallel[64] = "";
            if (cases[i].parallel)
                snprintf(parallel, sizeof parallel, ", \"parallel_tool_calls\": %s", cases[i].parallel);
            snprintf(body, sizeof body, "{\"messages\": [" USER "]%s, \"tools\": [" TOOL "], \"tool_choice\": %s%s}",
                     first ? parallel : "", cases[i].choice, first ? "" : parallel);
            fr_generation_request *a = read_well(FR_JOB_CHAT, body);
            ck_assert_msg(a->choices[0].job.must_call == cases[i].must && a->choices[0].job.one_call == cases[i].one,
                          "%s", body);
            fr_generation_request_free(a);
        }
}
END_TEST

#define NAMED_CALL "\"tool_calls\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}]"

/* Some clients send every member and write null for an empty one. If the content of a message is null, it must be
 * treated as an empty text. */
START_TEST(a_message_without_content_says_nothing) {
    check_chat(
        "{\"messages\": [{\"role\": \"system\", \"content\": null}, {\"role\": \"user\", \"content\": null, "
        "\"name\": null}, {\"role\": \"assistant\", \"tool_calls\": null, \"refusal\": null}, {\"role\": "
        "\"user\", \"content\": null, \"tool_calls\": null}, {\"role\": \"assistant\", \"content\": null, " NAMED_CALL
        "}, {\"role\": \"tool\", \"content\": null, \"tool_call_id\": null}, " USER "]}",
        "[{\"role\": \"system\", \"content\": \"\"}, {\"role\": \"user\", \"content\": \"\"}, "
        "{\"role\": \"assistant\", \"content\": \"\"}, {\"role\": \"user\", \"content\": \"\"}, "
        "{\"role\": \"assistant\", \"content\": \"\", " NAMED_CALL "}, {\"role\": \"tool\", \"content\": "
        "\"\"}, " USER "]",
        NULL, 0);
}
END_TEST

#define CALL_OF(id) "{\"id\": \"" id "\", \"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": {}}}"
#define THREE                                                                                                     \
    "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [" CALL_OF("a") ", " CALL_OF("b") ", " CALL_OF( \
        "c") "]}"
#define RESULT_OF(id, said) \
    "{\"role\": \"tool\", \"tool_call_id\": \"" id "\", \"name\": \"f\", \"content\": \"" said "\"}"

/* In OpenAI's API, ids connect results to calls, and results may come in any order. They must be put into the order of
 * the calls. A result without a known id must keep its position. */
START_TEST(results_stand_in_their_calls_order) {
    static const char *const cases[][2] = {
        {RESULT_OF("c", "3") ", " RESULT_OF("a", "1") ", " RESULT_OF("b", "2"),
         RESULT_OF("a", "1") ", " RESULT_OF("b", "2") ", " RESULT_OF("c", "3")},
        {RESULT_OF("b", "2") ", " RESULT_OF("x", "other") ", " RESULT_OF("a", "1"),
         RESULT_OF("a", "1") ", " RESULT_OF("x", "other") ", " RESULT_OF("b", "2")},
        {RESULT_OF("x", "3") ", " RESULT_OF("x", "1"), RESULT_OF("x", "3") ", " RESULT_OF("x", "1")},
        {RESULT_OF("b", "2") ", {\"role\": \"tool\", \"name\": \"f\", \"content\": \"none\"}, " RESULT_OF(
             "b", "3") ", " RESULT_OF("a", "1"),
         RESULT_OF("a", "1") ", {\"role\": \"tool\", \"name\": \"f\", \"content\": \"none\"}, " RESULT_OF(
             "b", "2") ", " RESULT_OF("b", "3")},
        {RESULT_OF("b", "2") ", " USER ", " THREE ", " RESULT_OF("b", "5") ", " RESULT_OF("a", "4"),
         RESULT_OF("b", "2") ", " USER ", " THREE ", " RESULT_OF("a", "4") ", " RESULT_OF("b", "5")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[4096];
        snprintf(body, sizeof body, "{\"messages\": [" USER ", " THREE ", %s]}", cases[i][0]);
        fr_generation_request *a = read_well(FR_JOB_CHAT, body);
        snprintf(body, sizeof body, "[" USER ", " THREE ", %s]", cases[i][1]);
        json_t *wanted = json_loads(body, 0, NULL);
        char *got = json_dumps(json_object_get(a->body, "messages"), 0);
        ck_assert_msg(json_equal(json_object_get(a->body, "messages"), wanted), "%s: %s", cases[i][0], got);
        free(got);
        json_decref(wanted);
        fr_generation_request_free(a);
    }
}
END_TEST

/* The result of a tool may have a picture or a file that the model can't read. Such a request must not fail, because an
 * agent would send the same result again in its next request. The model must get a text instead of the picture or
 * file. */
#define CALLED "\"tool_calls\": [" CALL_OF("a") "]"

START_TEST(unreadable_results_are_told_to_the_model) {
#define RESULT(said) "{\"role\": \"tool\", \"tool_call_id\": \"a\", \"content\": " said "}"
    static const char *const results[][2] = {
        {"[{\"type\": \"text\", \"text\": \"File: a.png\"}, {\"type\": \"image_url\", \"image_url\": {\"url\": "
         "\"data:image/png;base64,AAAA\"}}]",
         "[{\"type\": \"text\", \"text\": \"File: a.png\"}, {\"type\": \"text\", \"text\": "
         "\"[A picture is left out: this model sees none.]\"}]"},
        {"[{\"type\": \"image\", \"data\": \"AAAA\", \"mimeType\": \"image/png\"}]",
         "\"[A part of type \\\"image\\\" is left out: this model can't read it.]\""},
        {"[{\"type\": \"file\", \"file\": {\"filename\": \"a.pdf\", \"file_data\": "
         "\"data:application/pdf;base64,AAAA\"}}]",
         "\"[The file a.pdf is left out: this model can't read it.]\""},
        {"[{\"type\": \"input_file\", \"file_id\": \"file-1\"}]",
         "\"[The file is left out: this model can't read it.]\""},
        {"[{\"type\": \"file\", \"file\": {\"filename\": \"a.txt\", \"file_data\": "
         "\"data:text/plain;base64,SGk=\"}}]",
         "\"a.txt\\nHi\""},
    };
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        char body[1024], said[1024];
        snprintf(body, sizeof body,
                 "{\"messages\": [" USER ", {\"role\": \"assistant\", \"content\": \"\", " CALLED
                 "}, " RESULT("%s") "]}",
                 results[i][0]);
        snprintf(said, sizeof said,
                 "[" USER ", {\"role\": \"assistant\", \"content\": \"\", " CALLED "}, " RESULT("%s") "]",
                 results[i][1]);
        check_chat(body, said, NULL, 0);
    }
    check_chat("{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"file\"}]}]}",
               "[{\"role\": \"user\", \"content\": \"[The file is left out: this model can't read it.]\"}]", NULL, 0);
}
END_TEST

/* A client that renders the prompt itself may also write the token with which the tokenizer begins a text. The token
 * then occurs twice, and the choice has a note about it. A prompt of ids gets no note, because its sender has chosen
 * the ids. */
START_TEST(a_doubled_first_token) {
    static const struct {
        const char *body;
        bool doubled;
    } cases[] = {{"{\"prompt\": \"<bos>a\"}", true},
                 {"{\"prompt\": \"a<bos>\"}", false},
                 {"{\"prompt\": [\"<bos>a\", 2, 2]}", true},
                 {"{\"prompt\": [2, 2, \"<bos>a\"]}", false},
                 {"{\"prompt\": [2, 2]}", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fr_generation_request *a = read_well(FR_JOB_NATIVE, cases[i].body);
        const char *doubled = a->choices[0].job.doubled;
        ck_assert_msg(cases[i].doubled ? doubled && strcmp(doubled, "<bos>") == 0 : !doubled, "%s", cases[i].body);
        fr_generation_request_free(a);
    }
}
END_TEST

/* A message may contain the text that ends a turn. When the reply continues this message, only the end that the
 * template wrote may be removed. */
START_TEST(a_forged_end_is_gone_on_with) {
    static const char messages[] = "[" USER ", {\"role\": \"assistant\", \"content\": \"<turn|>\"}]";
    char body[512];
    snprintf(body, sizeof body, "{\"messages\": %s}", messages);
    check_chat(body, messages, "{\"add_generation_prompt\": false}", sizeof CLOSE - 1);
}
END_TEST

static const struct {
    const char *body;
    fr_status why;
    const char *says;
} bad_chats[] = {
    {"{}", FR_USAGE, "messages are missing"},
    {"{\"messages\": null}", FR_USAGE, "messages are missing"},
    {"{\"messages\": \"Hi\"}", FR_USAGE, "messages must be an array"},
    {"{\"messages\": []}", FR_INPUT, ""},
    {"{\"messages\": [5]}", FR_INPUT, ""},
    {"{\"messages\": [{\"content\": \"x\"}]}", FR_INPUT, ""},
    {"{\"messages\": [" USER ", {\"role\": \"user\"}]}", FR_USAGE, "messages[1] has no content"},
    {"{\"messages\": [{\"role\": \"system\"}, " USER "]}", FR_USAGE, "messages[0] has no content"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": 5}]}", FR_USAGE, "messages have a content that is neither"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": [\"x\"]}]}", FR_USAGE, "a part without a \"type\""},
    {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"input_audio\"}]}]}", FR_UNBUILT,
     "\"input_audio\""},
    {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"video_url\"}]}]}", FR_UNBUILT, "\"video_url\""},
    {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\"}]}]}", FR_UNBUILT, "\"image\""},
    {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", \"image_url\": {\"url\": "
     "\"data:image/png;base64,AAAA\"}}]}]}",
     FR_USAGE, "sees no pictures"},
    {"{\"messages\": [" USER ", " SAID "], \"continue_final_message\": true, \"add_generation_prompt\": true}",
     FR_USAGE, "exclude each other"},
    {"{\"messages\": [" USER ", {\"role\": \"assistant\", \"content\": \"x\", \"tool_calls\": [{\"type\": "
     "\"function\", \"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}]}]}",
     FR_USAGE, "with tool_calls can't be gone on with"},
};

START_TEST(chats_that_are_refused) {
    refuse(read_request(FR_JOB_CHAT, bad_chats[_i].body), bad_chats[_i].why, bad_chats[_i].says);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- pictures */

/* Returns a file in Base64. The caller frees it. */
static char *encode(const char *path) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length, n = 0;
    unsigned char *bytes = (unsigned char *)fr_load_text(path, &length);
    char *text = malloc(length * 2 + 8);
    for (size_t i = 0; i < length; i += 3) {
        unsigned left = length - i < 3 ? (unsigned)(length - i) : 3, bits = (unsigned)bytes[i] << 16;
        if (left > 1) bits |= (unsigned)bytes[i + 1] << 8;
        if (left > 2) bits |= bytes[i + 2];
        for (unsigned d = 0; d < 4; d++) text[n++] = d <= left ? digits[bits >> (18 - 6 * d) & 63] : '=';
    }
    text[n] = '\0';
    free(bytes);
    return text;
}

static fr_generation_request *show(const char *url) {
    size_t size = strlen(url) + 512;
    char *body = malloc(size);
    snprintf(body, size,
             "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", \"image_url\": "
             "{\"url\": \"%s\"}}, {\"type\": \"text\", \"text\": \"Text Recognition:\"}]}], \"n\": 2, "
             "\"max_tokens\": 12, \"temperature\": 0, \"ignore_eos\": true}",
             url);
    fr_generation_request *a = read_request(FR_JOB_CHAT, body);
    free(body);
    return a;
}

static char *url_of(const char *before, const char *path) {
    char *data = encode(path), *url = malloc(strlen(data) + strlen(before) + 1);
    memcpy(url, before, strlen(before));
    memcpy(url + strlen(before), data, strlen(data) + 1);
    free(data);
    return url;
}

/* The ids of the prompt, and of the text after it, must be those of transformers. */
START_TEST(pictures) {
    static const char *const befores[] = {"data:image/png;base64,", "DATA:image/PNG;base64,"};
    json_t *root = fr_load_json(GLM "/reference.json"), *item;
    size_t count, text_count = 0, index;
    int32_t *prompt = fr_ids_of(json_array_get(json_object_get(root, "prompts"), 5), &count), *text = NULL;
    json_array_foreach (json_object_get(root, "greedy"), index, item)
        if (json_integer_value(json_object_get(item, "prompt")) == 5)
            text = fr_ids_of(json_object_get(item, "tokens"), &text_count);
    ck_assert_uint_ge(text_count, 12);
    open_engine();
    for (size_t i = 0; i < 2; i++) {
        char *url = url_of(befores[i], GLM "/image/digits.png");
        fr_generation_request *a = show(url);
        ck_assert_msg(!a->error[0], "%s", a->error);
        ck_assert_uint_eq(a->count, 2);
        run_choices(a);
        for (size_t c = 0; c < 2; c++) {
            ck_assert_msg(!a->choices[c].job.error[0], "%s", a->choices[c].job.error);
            check_ids(&a->choices[c].job, prompt, count);
            ck_assert_mem_eq(a->choices[c].job.reply.ids, text, 12 * sizeof *text);
        }
        char *left = json_dumps(a->body, 0);
        ck_assert_uint_lt(strlen(left), 512);
        free(left);
        fr_generation_request_free(a);
        free(url);
    }
    close_engine();
    free(prompt);
    free(text);
    json_decref(root);
}
END_TEST

START_TEST(pictures_of_other_formats) {
    static const char *const cases[][2] = {
        {"data:image/jpeg;base64,", "jpeg-70x50.jpg"},          {"data:image/jpg;base64,", "jpeg-70x50.jpg"},
        {"data:image/png;base64,", "jpeg-70x50.jpg"},           {"data:image/webp;base64,", "webp-70x50.webp"},
        {"data:image/x-any;name=a;base64,", "webp-70x50.webp"}, {"DATA:image/gif;BASE64,", "gif-70x50.gif"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[256];
        snprintf(path, sizeof path, "tests/data/images/%s", cases[i][1]);
        char *url = url_of(cases[i][0], path);
        fr_generation_request *a = show(url);
        ck_assert_msg(!a->error[0], "%s", a->error);
        ck_assert_uint_eq(a->choices[1].job.picture_count, 1);
        fr_generation_request_free(a);
        free(url);
    }
}
END_TEST

static const char *const bad_urls[][2] = {
    {"http://127.0.0.1/a.png", "pictures at http:// and https:// URLs are not fetched"},
    {"HTTPS://example.org/a.png", "pictures at http:// and https:// URLs are not fetched"},
    {"ftp://example.org/a.png", "other urls and paths are not opened"},
    {"file://" GLM "/image/digits.png", "other urls and paths are not opened"},
    {GLM "/image/digits.png", "other urls and paths are not opened"},
    {"", "other urls and paths are not opened"},
    {"data:image/png,AAAA", "other urls and paths are not opened"},
    {"data:image/;base64", "other urls and paths are not opened"},
    {"data:image;base64,AAAA", "other urls and paths are not opened"},
    {"data:image/gif;base64,AAAA", "picture 1: neither a PNG, JPEG, WebP nor GIF"},
    {"data:image/png;base64,", "picture 1 is no base64"},
    {"data:image/png;base64,AAA", "picture 1 is no base64"},
    {"data:image/png;base64,AA A", "picture 1 is no base64"},
    {"data:image/png;base64,AA==AAAA", "picture 1 is no base64"},
    {"data:image/png;base64,A===", "picture 1 is no base64"},
    {"data:image/png;base64,AB==", "picture 1 is no base64"},
    {"data:image/png;base64,AAF=", "picture 1 is no base64"},
    {"data:image/png;base64,____", "picture 1 is no base64"},
    {"data:image/png;base64,AAAA", "picture 1: neither a PNG, JPEG, WebP nor GIF"},
    {"data:image/png;base64,iVBORw0KGgoAAA==", "picture 1: damaged PNG"},
};

START_TEST(urls_that_are_refused) {
    fr_generation_request *a = show(bad_urls[_i][0]);
    refuse(a, a->why == FR_INPUT ? FR_INPUT : FR_USAGE, bad_urls[_i][1]);
}
END_TEST

/* Computes the checksum of PNG's chunks (ISO 3309). */
static unsigned checksum(const unsigned char *bytes, size_t count) {
    unsigned sum = ~0u;
    for (size_t i = 0; i < 8 * count; i++) {
        if (i % 8 == 0) sum ^= bytes[i / 8];
        sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
    }
    return ~sum;
}

/* A picture's header may state more pixels than a request may have. Then no memory may be allocated for these
 * pixels. */
START_TEST(too_many_pixels) {
    size_t length;
    char *bytes = fr_load_text(GLM "/image/digits.png", &length), path[] = "/tmp/test_serve_request_XXXXXX";
    FILE *file = fdopen(mkstemp(path), "wb");
    memcpy(bytes + 16, "\0\0\x20\0\0\0\x10\x01", 8);          /* 8192 x 4097 */
    unsigned sum = checksum((unsigned char *)bytes + 12, 17); /* checksum of the header, beginning with its name */
    for (int i = 0; i < 4; i++) bytes[29 + i] = (char)(sum >> (24 - 8 * i));
    fwrite(bytes, 1, length, file);
    fclose(file);
    char *url = url_of("data:image/png;base64,", path);
    remove(path);
    refuse(show(url), FR_INPUT, "picture 1: a picture of 8192 x 4097");
    free(url);
    free(bytes);
}
END_TEST

/* A completion in llama.cpp's format may have several prompts, and each prompt may have pictures. As in chats with
 * pictures, the ids must be those of transformers. forerun's own commands use a text as the mark of a picture; here
 * this text must remain ordinary text. */
START_TEST(completions_with_pictures) {
    static const char prompt[] = "{\"prompt_string\": \"[gMASK]<sop><|user|>\\n%s<__media__>Text Recognition:"
                                 "<|assistant|>\\n\", \"multimodal_data\": [\"%s\"]}";
    json_t *root = fr_load_json(GLM "/reference.json");
    size_t count, length, size;
    int32_t *ids = fr_ids_of(json_array_get(json_object_get(root, "prompts"), 5), &count);
    char *data = encode(GLM "/image/digits.png"), *body = malloc(size = 2 * strlen(data) + 1024);
    for (size_t f = 1; f < 3; f++) {
        length = (size_t)snprintf(body, size, "{\"n\": 2, \"prompt\": [");
        length += (size_t)snprintf(body + length, size - length, prompt, "", data);
        length += (size_t)snprintf(body + length, size - length, ", ");
        length += (size_t)snprintf(body + length, size - length, prompt, "{image}", data);
        snprintf(body + length, size - length, "]}");
        fr_generation_request *a = read_request(forms[f], body);
        ck_assert_msg(!a->error[0], "%s", a->error);
        ck_assert_uint_eq(a->count, 4);
        ck_assert_uint_eq(a->pixels, 2 * 130 * 100);
        for (size_t i = 0; i < 4; i++) {
            const fr_job *job = &a->choices[i].job;
            ck_assert_uint_eq(job->picture_count, 1);
            if (i < 2) check_ids(job, ids, count);
            if (i < 2) continue;
            char *text;
            require(
                fr_detokenize(fr_model_tokenizer(loaded.model), job->prompt.ids, job->prompt.count, &text, &length));
            ck_assert_ptr_nonnull(strstr(text, "{image}"));
            fr_free(text);
        }
        char *left = json_dumps(a->body, 0);
        ck_assert_uint_lt(strlen(left), 512);
        free(left);
        fr_generation_request_free(a);
    }
    free(body);
    free(data);
    free(ids);
    json_decref(root);
}
END_TEST

static const char *const bad_media[][2] = {
    {"\"prompt_string\": \"<__media__>a\", \"multimodal_data\": \"AAAA\"", "an array of base64 texts"},
    {"\"prompt_string\": \"<__media__>a\", \"multimodal_data\": [5]", "an array of base64 texts"},
    {"\"prompt_string\": \"<__media__>a\", \"multimodal_data\": [\"A\"]", "multimodal_data: picture 1 is no base64"},
    {"\"prompt_string\": \"<__media__>a\", \"multimodal_data\": [\"AAAA\"]", "picture 1: neither a PNG"},
    {"\"prompt_string\": \"<__media__>a\", \"multimodal_data\": [\"%s\", \"%s\"]", "has 1 marks <__media__>"},
    {"\"prompt_string\": \"a\", \"multimodal_data\": [\"%s\"]", "has 0 marks <__media__>"},
    {"\"prompt_string\": [5], \"multimodal_data\": [\"%s\"]", "prompt_string must be a text"},
    {"\"prompt_string\": \"<__media__>\", \"multimodal_data\": [\"%s\"]}, \"echo\": true, \"x\": {\"x\": 1", "echo"},
    {"\"prompt_string\": \"<__media__>\", \"multimodal_data\": [\"%s\"]}, \"suffix\": \"b\", \"x\": {\"x\": 1",
     "without a suffix"},
};

START_TEST(media_that_are_refused) {
    char *data = encode(GLM "/image/digits.png"), *body;
    size_t size = 2 * strlen(data) + 512, at = strlen("{\"prompt\": {");
    body = memcpy(malloc(size), "{\"prompt\": {", at);
    at += (size_t)snprintf(body + at, size - at, bad_media[_i][0], data, data);
    snprintf(body + at, size - at, "}}");
    fr_generation_request *a = read_request(FR_JOB_COMPLETION, body);
    refuse(a, a->why, bad_media[_i][1]);
    free(body);
    free(data);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------- threads */

static void *read_often(void *context) {
    const char *body = context;
    for (int i = 0; i < 40; i++)
        fr_generation_request_free(read_request(i % 2 ? FR_JOB_CHAT : FR_JOB_COMPLETION, body));
    return NULL;
}

/* Several threads read requests with the same setting at the same time. Each must get its own result. */
START_TEST(threads_read_at_a_time) {
    static char bodies[][256] = {"{" HI ", " TEXT ", \"n\": 4, \"tools\": [" TOOL "]}",
                                 "{" HI ", " TEXT ", \"seed\": 5}", "{\"prompt\": [5, 99999999]}",
                                 "{" HI ", \"grammar\": \"x\"}"};
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, read_often, bodies[i]), 0);
    for (size_t i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ suite */

#define LOOP(tcase, test, table) tcase_add_loop_test(tcase, test, 0, sizeof table / sizeof *table)

static TCase *demo_cases(void) {
    TCase *tcase = tcase_create("demo");
    tcase_add_unchecked_fixture(tcase, open_demo, close_model);
    tcase_set_timeout(tcase, 120);
    LOOP(tcase, numbers_are_options, numbers);
    LOOP(tcase, texts_are_options, texts);
    LOOP(tcase, most_ids, limits);
    LOOP(tcase, members_that_are_refused, refused);
    LOOP(tcase, prompts_that_are_refused, bad_prompts);
    LOOP(tcase, chats_that_are_refused, bad_chats);
    tcase_add_test(tcase, biases_of_texts);
    tcase_add_test(tcase, stops);
    tcase_add_test(tcase, whole_numbers_may_have_a_point);
    tcase_add_test(tcase, answers);
    tcase_add_test(tcase, grammars);
    tcase_add_test(tcase, members_of_other_forms);
    tcase_add_test(tcase, one_prompt);
    tcase_add_test(tcase, texts_and_ids_in_turn);
    tcase_add_test(tcase, choices_of_prompts);
    tcase_add_test(tcase, ends_as_vllm_knows_them);
    tcase_add_test(tcase, drawn_seeds);
    tcase_add_test(tcase, limit_of_choices);
    tcase_add_test(tcase, prompts_that_are_too_long);
    tcase_add_test(tcase, chats_are_rendered);
    tcase_add_test(tcase, forced_calls_are_one);
    tcase_add_test(tcase, a_message_without_content_says_nothing);
    tcase_add_test(tcase, unreadable_results_are_told_to_the_model);
    tcase_add_test(tcase, a_doubled_first_token);
    tcase_add_test(tcase, results_stand_in_their_calls_order);
    tcase_add_test(tcase, a_forged_end_is_gone_on_with);
    tcase_add_test(tcase, threads_read_at_a_time);
    return tcase;
}

FR_SUITE("serve_request") {
    TCase *drafting = tcase_create("drafting"), *seeing = tcase_create("pictures"), *bare = tcase_create("bare");
    tcase_add_unchecked_fixture(bare, open_llama, close_model);
    tcase_add_test(bare, ids_alone);
    tcase_add_unchecked_fixture(drafting, open_drafting, close_model);
    tcase_add_test(drafting, drafter_by_name);
    tcase_add_unchecked_fixture(seeing, open_glm, close_model);
    tcase_set_timeout(seeing, 120);
    tcase_add_test(seeing, pictures);
    tcase_add_test(seeing, pictures_of_other_formats);
    tcase_add_test(seeing, too_many_pixels);
    LOOP(seeing, urls_that_are_refused, bad_urls);
    tcase_add_test(seeing, completions_with_pictures);
    LOOP(seeing, media_that_are_refused, bad_media);
    suite_add_tcase(suite, demo_cases());
    suite_add_tcase(suite, drafting);
    suite_add_tcase(suite, bare);
    suite_add_tcase(suite, seeing);
}
