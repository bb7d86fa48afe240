/* Tests the formats that batch reads and writes: OpenAI's formats, log-probabilities, a byte order mark, and errors
 * that give the number of a line. The expected members are those of OpenAI's reference ("The request output object",
 * "The chat completion object", "The completion object"). */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/suite.h"

#define X                "{\"custom_id\": \"x\", "
#define POST(url, body)  X "\"method\": \"POST\", \"url\": \"/v1/" url "\", \"body\": " body "}\n"
#define CHAT(body)       POST("chat/completions", body)
#define COMPLETION(body) POST("completions", body)
#define HI               "\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]"

/* Runs a batch and parses each line of its output. Returns an array of the objects. */
static json_t *answers_of(const char *input, const char *options, int status) {
    char line[512];
    snprintf(line, sizeof line, "batch " DEMO "--quiet -f - -o - %s", options);
    fr_command c = fr_command_run(line, input);
    ck_assert_msg(c.status == status, "exit %d: %s%s", c.status, c.err, c.out);
    json_t *all = json_array();
    for (const char *at = c.out, *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        ck_assert_ptr_nonnull(end);
        json_t *answer = json_loadb(at, (size_t)(end - at), 0, NULL);
        ck_assert_ptr_nonnull(answer);
        json_array_append_new(all, answer);
    }
    fr_command_free(&c);
    return all;
}

static json_t *json_of(const char *options) {
    fr_command c = fr_command_ok("generate " DEMO "--quiet --output json %s", options);
    json_t *object = json_loads(c.out, 0, NULL);
    fr_command_free(&c);
    ck_assert_ptr_nonnull(object);
    return object;
}

static const json_t *choice_of(const json_t *answer) {
    const json_t *response = fr_json_get(answer, "response");
    ck_assert_int_eq(json_integer_value(fr_json_get(response, "status_code")), 200);
    return json_array_get(fr_json_get(fr_json_get(response, "body"), "choices"), 0);
}

static void check_members(const json_t *object, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) ck_assert_msg(json_object_get(object, names[i]) != NULL, "no \"%s\"", names[i]);
}
#define CHECK_MEMBERS(object, ...)                            \
    check_members(object, (const char *const[]){__VA_ARGS__}, \
                  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* Bodies of requests, and the options of generate that request the same. */
static const struct {
    const char *line, *options, *finish;
} requests[] = {
    {CHAT("{\"model\": \"m\", " HI ", \"max_tokens\": 7}"), "--chat -p Hi -n 7", "length"},
    {CHAT("{" HI ", \"max_tokens\": 3, \"max_completion_tokens\": 9}"), "--chat -p Hi -n 9", "length"},
    {CHAT("{" HI ", \"max_completion_tokens\": 9, \"max_tokens\": null, \"stop\": null, \"user\": \"me\"}"),
     "--chat -p Hi -n 9", "length"},
    {CHAT("{\"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": \"user\", \"content\": "
          "[{\"type\": \"text\", \"text\": \"Hi\"}]}], \"max_tokens\": 7, \"n\": 1, \"stream\": false}"),
     "--chat -sys 'Be brief.' -p Hi -n 7", "length"},
    {CHAT("{" HI ", \"temperature\": 0.9, \"seed\": 5, \"top_p\": 0.9, \"top_k\": 40, \"min_p\": 0.01, "
          "\"presence_penalty\": 0.5, \"frequency_penalty\": 0.25, \"max_tokens\": 30}"),
     "--chat -p Hi --temp 0.9 --seed 5 --top-p 0.9 --top-k 40 --min-p 0.01 --presence-penalty 0.5 "
     "--frequency-penalty 0.25 -n 30",
     "length"},
    {CHAT("{" HI ", \"max_tokens\": 9, \"logit_bias\": {\"421\": -100, \"291\": -100}}"),
     "--chat -p Hi -n 9 -l 421-100,291-100", "length"},
    {COMPLETION("{\"prompt\": \"Once upon\", \"max_tokens\": 12}"), "-p 'Once upon' -n 12", "length"},
    {COMPLETION("{\"prompt\": [\"Once upon\"], \"max_tokens\": 12, \"echo\": false, \"suffix\": \"\"}"),
     "-p 'Once upon' -n 12", "length"},
    {COMPLETION("{\"prompt\": [2, 5, 9, 300], \"max_tokens\": 12}"), "--ids 2,5,9,300 -n 12", "length"},
    {COMPLETION("{\"prompt\": [[2, 5, 9, 300]], \"max_tokens\": 12, \"logit_bias\": [[421, false]]}"),
     "--ids 2,5,9,300 -n 12 -l 421-inf", "length"},
    {COMPLETION("{\"prompt\": \"def f(x):\", \"stop\": [\"zz\", \"\\n\"], \"temperature\": 1.1, \"max_tokens\": 99}"),
     "-p 'def f(x):' --temp 1.1 --stop zz --stop '\n' -n 99", "stop"},
    {CHAT("{" HI ", \"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": \"x\", \"schema\": "
          "{\"enum\": [{\"a\": 1}, [2, 3]]}}}}"),
     "--chat -p Hi -j '{\"enum\": [{\"a\": 1}, [2, 3]]}'", "stop"},
    {COMPLETION("{\"prompt\": \"Once\", \"regex\": \"[a-f]{4}\"}"), "-p Once --regex '[a-f]{4}'", "stop"},
};

START_TEST(openai_requests_say_what_generate_says) {
    json_t *answers = answers_of(requests[_i].line, "", 0), *expected = json_of(requests[_i].options);
    const json_t *answer = json_array_get(answers, 0), *response = fr_json_get(answer, "response"), *choice;
    const json_t *body = fr_json_get(response, "body"), *usage = fr_json_get(body, "usage");
    bool chat = strstr(requests[_i].line, "/chat/") != NULL;
    CHECK_MEMBERS(answer, "id", "custom_id", "response", "error");
    CHECK_MEMBERS(response, "status_code", "request_id", "body");
    CHECK_MEMBERS(body, "id", "object", "created", "model", "choices", "usage");
    CHECK_MEMBERS(usage, "prompt_tokens", "completion_tokens", "total_tokens");
    ck_assert_str_eq(json_string_value(fr_json_get(answer, "custom_id")), "x");
    ck_assert(json_is_null(fr_json_get(answer, "error")));
    ck_assert_str_eq(json_string_value(fr_json_get(body, "object")), chat ? "chat.completion" : "text_completion");
    choice = choice_of(answer);
    CHECK_MEMBERS(choice, "index", "finish_reason", "logprobs");
    ck_assert_str_eq(json_string_value(fr_json_get(choice, "finish_reason")), requests[_i].finish);
    const json_t *text = chat ? fr_json_get(fr_json_get(choice, "message"), "content") : fr_json_get(choice, "text");
    ck_assert_str_eq(json_string_value(text), json_string_value(fr_json_get(expected, "text")));
    ck_assert_uint_eq((size_t)json_integer_value(fr_json_get(usage, "completion_tokens")),
                      json_array_size(fr_json_get(expected, "ids")));
    ck_assert(
        json_equal(fr_json_get(usage, "prompt_tokens"), fr_json_get(fr_json_get(expected, "stats"), "prompt_tokens")));
    json_decref(answers);
    json_decref(expected);
}
END_TEST

/* Each line must be refused in an answer of its own. The answer's status must be the one that a server would give. */
static const struct {
    const char *line;
    int code;
    const char *says;
} refused[] = {
    {CHAT("{" HI ", \"n\": 0}"), 400, "n must be a whole number from 1 to 128"},
    {CHAT("{" HI ", \"echo\": true}"), 501, "\"echo\" in the body is not built yet"},
    {CHAT("{" HI ", \"response_format\": {\"type\": \"grammar\"}}"), 501, "response_format of type \"grammar\" is not"},
    {CHAT("{" HI ", \"response_format\": {\"type\": \"json_schema\", "
          "\"json_schema\": {\"schema\": {\"$dynamicRef\": \"#\"}}}}"),
     501, "response_format.json_schema.schema: schema, at #/$dynamicRef: not built"},
    {CHAT("{" HI ", \"tool_choice\": \"required\"}"), 400, "tool_choice: there is no tool to be called"},
    {CHAT("{" HI ", \"tool_choice\": {\"type\": \"function\"}}"), 400, "tool_choice must be none, auto, required, al"},
    {CHAT("{" HI ", \"tool_choice\": {\"type\": \"file_search\"}}"), 501, "\"tool_choice\" is not built yet"},
    {CHAT("{" HI ", \"parallel_tool_calls\": 0}"), 400, "parallel_tool_calls must be true or false"},
    {CHAT("{" HI ", \"reasoning_effort\": 2}"), 400, "reasoning_effort must be a text"},
    {CHAT("{" HI ", \"grammar\": \"root ::= x\"}"), 400, "grammar: grammar, line 1, column 10"},
    {CHAT("{" HI ", \"prompt\": \"x\"}"), 501, "\"prompt\" in the body"},
    {CHAT("{" HI ", \"stream\": true}"), 400, "stream must be false"},
    {CHAT("{" HI ", \"top_logprobs\": 2}"), 400, "top_logprobs goes with \"logprobs\": true"},
    {CHAT("{" HI ", \"logprobs\": true, \"top_logprobs\": 101}"), 400, "top_logprobs must be a whole number"},
    {CHAT("{" HI ", \"logprobs\": 2}"), 400, "logprobs must be true or false"},
    {CHAT("{" HI ", \"temperature\": \"hot\"}"), 400, "temperature must be a number"},
    {CHAT("{" HI ", \"temperature\": -1}"), 400, "temperature must be"},
    {CHAT("{" HI ", \"max_tokens\": 1.5}"), 400, "max_tokens must be"},
    {CHAT("{" HI ", \"max_tokens\": \"x\", \"max_completion_tokens\": 5}"), 400, "max_tokens must be"},
    {CHAT("{" HI ", \"logit_bias\": {\"1+5,2\": 1}}"), 400, "is no id"},
    {CHAT("{" HI ", \"logit_bias\": {\"5\": \"x\"}}"), 400, "logit_bias has a value that is not a number"},
    {CHAT("{" HI ", \"logit_bias\": 5}"), 400, "logit_bias must be"},
    {CHAT("{" HI ", \"tools\": {}}"), 400, "tools must be an array"},
    {CHAT("{" HI ", \"chat_template_kwargs\": 3}"), 400, "chat_template_kwargs must be an object"},
    {CHAT("{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]}"), 400, "\"image_url\""},
    {CHAT("{}"), 400, "the body has no messages"},
    {CHAT("[]"), 400, "body must be an object"},
    {COMPLETION("{\"prompt\": [\"a\", \"b\"]}"), 501, "several prompts"},
    {COMPLETION("{\"prompt\": \"a\", \"echo\": 1}"), 400, "echo must be true or false"},
    {COMPLETION("{\"prompt\": \"a\", \"echo\": true, \"suffix\": \"b\"}"), 400, "echo and suffix exclude each other"},
    {COMPLETION("{\"prompt\": \"a\", \"best_of\": 2, \"n\": 3}"), 400, "best_of 2 is less than n 3"},
    {COMPLETION("{\"prompt\": \"a\", \"best_of\": 129}"), 400, "best_of must be a whole number from 1 to 128"},
    {COMPLETION("{\"prompt\": \"a\", \"suffix\": \"b\"}"), 501, "suffix: the model has no tokens for a text that"},
    {COMPLETION("{\"prompt\": \"a\", \"suffix\": 5}"), 400, "suffix must be a text"},
    {COMPLETION("{\"prompt\": \"a\", \"tools\": []}"), 501, "\"tools\" in the body is not built yet"},
    {COMPLETION("{\"prompt\": [3, \"b\"]}"), 400, "prompt[1] is no id"},
    {COMPLETION("{\"prompt\": [99999999]}"), 400, "outside the vocabulary"},
    {COMPLETION("{\"prompt\": []}"), 400, "prompt must be an array of ids"},
    {COMPLETION("{}"), 400, "the body has no prompt"},
    {X "\"url\": \"/v1/embeddings\", \"body\": {}}\n", 501, "url \"/v1/embeddings\" is not built"},
    {X "\"method\": \"GET\", \"url\": \"/v1/completions\", \"body\": {}}\n", 400, "method must be"},
    {X "\"url\": 3, \"body\": {}}\n", 400, "url must be a text"},
    {X "\"url\": \"/v1/completions\"}\n", 400, "body must be an object"},
    {X "\"prompt\": \"y\"}\n", 400, "\"prompt\" is not known beside custom_id"},
    {"{\"custom_id\": 5, \"url\": \"/v1/completions\", \"body\": {\"prompt\": \"x\"}}\n", 400,
     "custom_id must be a text"},
    {"{\"url\": \"/v1/completions\", \"body\": {\"prompt\": \"x\"}}\n", 400, "custom_id must be a text"},
    {X "\"url\": \n", 400, "no JSON that can be read"},
};

START_TEST(what_is_not_built_is_refused_in_its_line) {
    json_t *answers = answers_of(refused[_i].line, "", 1);
    const json_t *answer = json_array_get(answers, 0), *response = fr_json_get(answer, "response");
    const json_t *error = fr_json_get(fr_json_get(response, "body"), "error");
    ck_assert_uint_eq(json_array_size(answers), 1);
    CHECK_MEMBERS(answer, "id", "custom_id");
    CHECK_MEMBERS(error, "message", "type", "param", "code");
    const char *message = json_string_value(fr_json_get(error, "message"));
    ck_assert_msg(message && strstr(message, refused[_i].says), "%s: %s", refused[_i].line, message);
    ck_assert_int_eq(strncmp(message, "standard input:1: ", 18), 0);
    ck_assert_int_eq(json_integer_value(fr_json_get(response, "status_code")), refused[_i].code);
    ck_assert_str_eq(json_string_value(fr_json_get(fr_json_get(answer, "error"), "message")), message);
    json_decref(answers);
}
END_TEST

START_TEST(a_prompt_that_is_too_long) {
    json_t *answers =
        answers_of(COMPLETION("{\"prompt\": \"a b c d e f g h i j k l m n o p q r s t u v w x y z\"}"), "-c 12", 1);
    const json_t *response = fr_json_get(json_array_get(answers, 0), "response");
    const json_t *error = fr_json_get(fr_json_get(response, "body"), "error");
    ck_assert_str_eq(json_string_value(fr_json_get(error, "type")), "exceed_context_size_error");
    ck_assert_str_eq(json_string_value(fr_json_get(error, "code")), "context_length_exceeded");
    json_decref(answers);
}
END_TEST

/* A prompt must describe the tools. With tool_choice "none" it must describe none of them. */
#define TOOL "{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"d\", \"parameters\": {}}}"

START_TEST(tools_are_shown) {
    static const char *const bodies[] = {
        "{" HI ", \"max_tokens\": 1, \"tools\": [" TOOL "]}",
        "{" HI ", \"max_tokens\": 1, \"tools\": [" TOOL "], \"tool_choice\": \"none\"}", "{" HI ", \"max_tokens\": 1}"};
    json_int_t tokens[3];
    for (size_t i = 0; i < 3; i++) {
        char line[1024];
        snprintf(line, sizeof line, CHAT("%s"), bodies[i]);
        json_t *answers = answers_of(line, "--chat-template-file tests/data/templates/hermes.jinja", 0);
        const json_t *body = fr_json_get(fr_json_get(json_array_get(answers, 0), "response"), "body");
        tokens[i] = json_integer_value(fr_json_get(fr_json_get(body, "usage"), "prompt_tokens"));
        json_decref(answers);
    }
    ck_assert_int_gt(tokens[0], tokens[2]);
    ck_assert_int_eq(tokens[1], tokens[2]);
}
END_TEST

/* -------------------------------------------------------------------------------------------------------- log-probs */

/* Checks that the bytes of all tokens together are the bytes of the text. */
static void check_texts(const json_t *logprobs, const char *text) {
    char joined[4096];
    size_t length = 0, i, b;
    const json_t *one, *byte;
    json_array_foreach (logprobs, i, one) {
        CHECK_MEMBERS(one, "token", "logprob", "bytes", "top_logprobs", "id");
        json_array_foreach (fr_json_get(one, "bytes"), b, byte) joined[length++] = (char)json_integer_value(byte);
        const json_t *best = json_array_get(fr_json_get(one, "top_logprobs"), 0);
        CHECK_MEMBERS(best, "token", "logprob", "bytes");
        ck_assert(json_equal(fr_json_get(best, "token"), fr_json_get(one, "token")));
    }
    joined[length] = '\0';
    ck_assert_str_eq(joined, text);
}

START_TEST(log_probabilities_have_texts) {
    static const char *const input = "{\"prompt\": \"Once upon\", \"n\": 12, \"logprobs\": 2}\n" COMPLETION(
        "{\"prompt\": \"Once upon\", \"max_tokens\": 12, \"logprobs\": 2}")
        CHAT("{" HI ", \"max_tokens\": 12, \"logprobs\": true, \"top_logprobs\": 2}")
            CHAT("{" HI ", \"max_tokens\": 2, \"logprobs\": true}") "{\"prompt\": \"Once upon\", \"n\": 12}\n";
    json_t *answers = answers_of(input, "", 0), *alone = json_of("-p 'Once upon' -n 12 --logprobs 2");
    const char *text = json_string_value(fr_json_get(alone, "text"));
    const json_t *logprobs = fr_json_get(alone, "logprobs");
    check_texts(logprobs, text);
    ck_assert(json_equal(fr_json_get(json_array_get(answers, 0), "logprobs"), logprobs));
    const json_t *lists = fr_json_get(choice_of(json_array_get(answers, 1)), "logprobs");
    CHECK_MEMBERS(lists, "tokens", "token_logprobs", "top_logprobs", "text_offset");
    for (size_t i = 0, offset = 0; i < 12; i++) {
        const json_t *one = json_array_get(logprobs, i), *token = json_array_get(fr_json_get(lists, "tokens"), i);
        ck_assert(json_equal(token, fr_json_get(one, "token")));
        ck_assert(json_equal(json_array_get(fr_json_get(lists, "token_logprobs"), i), fr_json_get(one, "logprob")));
        ck_assert_uint_eq(json_object_size(json_array_get(fr_json_get(lists, "top_logprobs"), i)), 2);
        ck_assert_int_eq(json_integer_value(json_array_get(fr_json_get(lists, "text_offset"), i)), (json_int_t)offset);
        offset += json_string_length(token);
    }
    const json_t *chat = choice_of(json_array_get(answers, 2));
    check_texts(fr_json_get(fr_json_get(chat, "logprobs"), "content"),
                json_string_value(fr_json_get(fr_json_get(chat, "message"), "content")));
    const json_t *own = fr_json_get(fr_json_get(choice_of(json_array_get(answers, 3)), "logprobs"), "content");
    ck_assert_uint_eq(json_array_size(fr_json_get(json_array_get(own, 0), "top_logprobs")), 0);
    ck_assert_ptr_null(json_object_get(json_array_get(answers, 4), "logprobs"));
    json_decref(alone);
    json_decref(answers);
}
END_TEST

/* If a token is only a part of a character, its "bytes" must be exact. Its text has U+FFFD instead of them. */
START_TEST(part_of_a_character_has_bytes) {
    fr_command ids = fr_command_ok("tokenize -m tools/demo/target --no-bos -p '\xe2\x98\x83'");
    fr_command one = fr_command_ok("tokenize -m tools/demo/target --pieces --no-bos -p '\xe2\x98\x83'");
    int id = (int)strtol(ids.out, NULL, 10);
    ck_assert_ptr_nonnull(strstr(one.out, "\\xe2"));
    char options[128];
    snprintf(options, sizeof options, "-p x -n 1 --logprobs 1 -l %d+1000", id);
    json_t *answer = json_of(options);
    const json_t *token = json_array_get(fr_json_get(answer, "logprobs"), 0);
    ck_assert_str_eq(json_string_value(fr_json_get(token, "token")), "\xef\xbf\xbd");
    ck_assert_int_eq(json_integer_value(json_array_get(fr_json_get(token, "bytes"), 0)), 0xe2);
    ck_assert_int_eq(json_integer_value(fr_json_get(token, "id")), id);
    json_decref(answer);
    fr_command_free(&ids);
    fr_command_free(&one);
}
END_TEST

START_TEST(the_command_line_asks_for_all_lines) {
    json_t *answers = answers_of("{\"prompt\": \"x\", \"n\": 2}\n{\"prompt\": \"x\", \"n\": 2, \"logprobs\": 0}\n",
                                 "--logprobs 3", 0);
    for (size_t i = 0; i < 2; i++) {
        const json_t *all = fr_json_get(json_array_get(answers, i), "logprobs");
        ck_assert_uint_eq(json_array_size(all), 2);
        ck_assert_uint_eq(json_array_size(fr_json_get(json_array_get(all, 0), "top_logprobs")), i ? 0 : 3);
    }
    json_decref(answers);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ lines */

/* Errors must give the number of a line as an editor shows it, where blank lines count too. A byte order mark is not
 * part of the first line. */
START_TEST(errors_name_their_lines) {
    char path[] = "/tmp/forerun-lines-XXXXXX", says[128];
    static const char input[] = "\xef\xbb\xbf{\"prompt\": \"x\", \"n\": 1}\n\n \nnonsense\n"
                                "{\"prompt\": \"x\", \"n\": 1}\r\n{\"ids\": [2, 99999999]}";
    int file = mkstemp(path);
    ck_assert_int_eq(write(file, input, sizeof input - 1), (ssize_t)sizeof input - 1);
    close(file);
    char line[256];
    snprintf(line, sizeof line, "batch " DEMO "--quiet -f %s -o -", path);
    fr_command c = fr_command_run(line, NULL);
    unlink(path);
    ck_assert_str_eq(c.err, "forerun: 2 of 4 lines could not be run: each has its \"error\"\n");
    ck_assert_int_eq(strncmp(c.out, "{\"id\":null,\"ids\":", 17), 0);
    snprintf(says, sizeof says, "\"error\":\"%s:4: no JSON", path);
    ck_assert_msg(strstr(c.out, says), "%s", c.out);
    snprintf(says, sizeof says, "\"error\":\"%s:6: ", path);
    ck_assert_msg(strstr(c.out, says), "%s", c.out);
    fr_command_free(&c);
}
END_TEST

FR_SUITE("cli_batch_forms") {
    TCase *cases = tcase_create("batch_forms");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, openai_requests_say_what_generate_says, 0, sizeof requests / sizeof *requests);
    tcase_add_loop_test(cases, what_is_not_built_is_refused_in_its_line, 0, sizeof refused / sizeof *refused);
    tcase_add_test(cases, a_prompt_that_is_too_long);
    tcase_add_test(cases, tools_are_shown);
    tcase_add_test(cases, log_probabilities_have_texts);
    tcase_add_test(cases, part_of_a_character_has_bytes);
    tcase_add_test(cases, the_command_line_asks_for_all_lines);
    tcase_add_test(cases, errors_name_their_lines);
    suite_add_tcase(suite, cases);
}
