/* Tests the verb batch. Its ids and texts must be those that generate gives for each line alone. They must not depend
 * on -np or on the other lines. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/changed_folder.h"
#include "tests/support/command.h"
#include "tests/support/suite.h"

#define TARGET  DEMO
#define BOTH    DEMO DEMO_DRAFTER
#define SEES    "tests/data/models/glm-ocr-odd"
#define PICTURE SEES "/image/digits.png"

/* Parses each line of a batch's output. Returns an array of the objects. */
static json_t *answers_of(const fr_command *c) {
    json_t *all = json_array();
    for (const char *line = c->out, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        json_t *answer = json_loadb(line, (size_t)(end - line), 0, NULL);
        ck_assert_ptr_nonnull(answer);
        json_array_append_new(all, answer);
    }
    return all;
}

/* Lines of a batch, and the options of generate that request the same. */
static const struct {
    const char *line, *options;
} lines[] = {
    {"{\"id\": 1, \"prompt\": \"Once upon a time\", \"n\": 40}", "-p 'Once upon a time' -n 40"},
    {"{\"id\": [\"any\"], \"ids\": [2, 5, 9, 300], \"n\": 7}", "--ids 2,5,9,300 -n 7"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"n\": 12}", "--chat -p Hi -n 12"},
    {"{\"prompt\": \"import os\", \"n\": 60, \"temp\": 0.9, \"seed\": 7}", "-p 'import os' -n 60 --temp 0.9 --seed 7"},
    {"{\"prompt\": \"import os\", \"temp\": 0.9, \"seed\": 7, \"stop\": [\"zzz\", \"\\n\"]}",
     "-p 'import os' -n 30 --temp 0.9 --seed 7 --stop zzz --stop '\n'"},
    {"{\"prompt\": \"def f(x):\", \"n\": 33, \"temp\": 1.2, \"top_k\": 20, \"top_p\": 0.9, \"min_p\": 0.01}",
     "-p 'def f(x):' -n 33 --temp 1.2 --top-k 20 --top-p 0.9 --min-p 0.01"},
    {"{\"prompt\": \"The\", \"ignore_eos\": true, \"n\": 90}", "-p The --ignore-eos -n 90"},
    {"{\"prompt\": \"The\"}", "-p The -n 30"},
    {"{\"prompt\": \"The\", \"n\": 1}", "-p The -n 1"},
    {"{\"prompt\": \"The\", \"n\": 0}", "-p The -n 0"},
    {"{\"prompt\": \"The\", \"temp\": 0.9, \"typical_p\": 0.8, \"xtc_probability\": 0.4, \"xtc_threshold\": 0.02, "
     "\"dynatemp_range\": 0.3, \"dynatemp_exponent\": 2, \"top_n_sigma\": 2, \"dry_multiplier\": 0.7, "
     "\"dry_base\": 1.5, \"dry_allowed_length\": 1, \"dry_penalty_last_n\": 90, "
     "\"dry_sequence_breakers\": [\"\\n\", \" a\"], \"repeat_penalty\": 1.1, \"repeat_last_n\": 20, "
     "\"presence_penalty\": 0.1, \"frequency_penalty\": 0.2}",
     "-p The -n 30 --temp 0.9 --typical 0.8 --xtc-probability 0.4 --xtc-threshold 0.02 --dynatemp-range 0.3 "
     "--dynatemp-exp 2 --top-nsigma 2 --dry-multiplier 0.7 --dry-base 1.5 --dry-allowed-length 1 "
     "--dry-penalty-last-n 90 --dry-sequence-breaker '\\n' --dry-sequence-breaker ' a' --repeat-penalty 1.1 "
     "--repeat-last-n 20 --presence-penalty 0.1 --frequency-penalty 0.2"},
    {"{\"prompt\": \"The\", \"temp\": 1.1, \"mirostat\": 2, \"mirostat_tau\": 3, \"mirostat_eta\": 0.2}",
     "-p The -n 30 --temp 1.1 --mirostat 2 --mirostat-ent 3 --mirostat-lr 0.2"},
    {"{\"prompt\": \"The\", \"temp\": 1.1, \"samplers\": [\"typ_p\", \"temperature\"], \"typical_p\": 0.7, "
     "\"top_k\": 1}",
     "-p The -n 30 --temp 1.1 --sampler-seq yt --typical-p 0.7"},
    {"{\"prompt\": \"The\", \"grammar\": \"root ::= (\\\"yes \\\" | \\\"no \\\")*\", \"temp\": 1, \"seed\": 3}",
     "-p The -n 30 --temp 1 --seed 3 --grammar 'root ::= (\"yes \" | \"no \")*'"},
    {"{\"prompt\": \"The\", \"regex\": \"[a-z]{3} [0-9]{2}\"}", "-p The -n 30 --regex '[a-z]{3} [0-9]{2}'"},
    {"{\"prompt\": \"The\", \"json_schema\": {\"type\": \"array\", \"items\": {\"enum\": [1, 2]}, \"maxItems\": 4}}",
     "-p The -n 30 -j '{\"type\": \"array\", \"items\": {\"enum\": [1, 2]}, \"maxItems\": 4}'"},
};
enum { LINES = sizeof lines / sizeof *lines };

static char *input_of(size_t copies) {
    char *input;
    size_t length;
    FILE *stream = open_memstream(&input, &length);
    for (size_t i = 0; i < copies * LINES; i++) fprintf(stream, "%s\n", lines[(i * 7) % LINES].line);
    fclose(stream);
    return input;
}

static void check_answer(const json_t *answer, size_t line) {
    fr_command alone = fr_command_ok("generate " TARGET "%s --output json", lines[line].options);
    json_t *expected = json_loads(alone.out, 0, NULL);
    static const char *const members[] = {"ids", "text", "stop"};
    for (size_t i = 0; i < 3; i++)
        ck_assert_msg(json_equal(json_object_get(answer, members[i]), fr_json_get(expected, members[i])),
                      "%s: another %s than alone", lines[line].line, members[i]);
    ck_assert_ptr_nonnull(json_object_get(json_object_get(answer, "stats"), "target_calls"));
    ck_assert(json_is_integer(json_object_get(json_object_get(answer, "stats"), "rows")));
    json_t *asked = json_loads(lines[line].line, 0, NULL), *id = json_object_get(asked, "id");
    ck_assert(id ? json_equal(json_object_get(answer, "id"), id) : json_is_null(json_object_get(answer, "id")));
    json_decref(asked);
    json_decref(expected);
    fr_command_free(&alone);
}

START_TEST(lines_say_what_they_say_alone) {
    static const struct {
        const char *options;
        size_t copies;
    } ways[] = {{TARGET "-np 1", 1}, {BOTH "-np 3 -t 2", 1}, {BOTH "", 2}, {BOTH "-np 16 --draft-max 5 -t 3", 3}};
    char *input = input_of(ways[_i].copies);
    fr_command c = fr_command_feed(input, "batch %s -f - -o - -n 30", ways[_i].options);
    json_t *answers = answers_of(&c);
    ck_assert_uint_eq(json_array_size(answers), ways[_i].copies * LINES);
    for (size_t i = 0; i < json_array_size(answers); i++) check_answer(json_array_get(answers, i), (i * 7) % LINES);
    ck_assert_str_eq(c.err, "");
    json_decref(answers);
    fr_command_free(&c);
    free(input);
}
END_TEST

START_TEST(pictures) {
    const char *line = "{\"images\": [\"" PICTURE "\"], \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
                       "\"image\"}, {\"type\": \"text\", \"text\": \"Read:\"}]}], \"n\": 9}\n";
    char input[2048];
    snprintf(input, sizeof input, "%s{\"prompt\": \"Read:\", \"n\": 5}\n%s", line, line);
    fr_command c = fr_command_feed(input, "batch -m " SEES " -f - -o - -np 3");
    fr_command alone = fr_command_ok("generate -m " SEES " --image " PICTURE " --chat -p Read: -n 9 --output json");
    json_t *answers = answers_of(&c), *expected = json_loads(alone.out, 0, NULL);
    for (size_t i = 0; i < 3; i += 2)
        ck_assert(json_equal(json_object_get(json_array_get(answers, i), "ids"), fr_json_get(expected, "ids")));
    json_decref(expected);
    json_decref(answers);
    fr_command_free(&alone);
    fr_command_free(&c);
}
END_TEST

/* The id of a line must be written back exactly as it was given, whatever JSON value it is. */
START_TEST(ids_come_back_as_they_were_written) {
    static const char *const ids[] = {"1.10",
                                      "123456789012345678901234567890",
                                      "-0",
                                      "1E+2",
                                      "\"\\u00e9\\n, }\"",
                                      "{\"id\": [1.50, {\"x\": \"]\"}]}",
                                      "null",
                                      "true",
                                      "[ 1 ,2]",
                                      "1e999"};
    char input[1024], expected[64];
    size_t at = 0, count = sizeof ids / sizeof *ids;
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(input + at, sizeof input - at,
                               i % 2 ? "{\"prompt\": \"The\", \"n\": 1, \"id\" : %s }\n"
                                     : "{ \"id\":%s, \"prompt\": \"The\", \"n\": 1}\n",
                               ids[i]);
    fr_command c = fr_command_run("batch " TARGET "-f - -o -", input);
    const char *line = c.out;
    for (size_t i = 0; i < count; i++, line = strchr(line, '\n') + 1) {
        snprintf(expected, sizeof expected, "{\"id\":%s,\"ids\":[", ids[i]);
        ck_assert_msg(strncmp(line, expected, strlen(expected)) == 0, "%s: %s", ids[i], line);
    }
    fr_command_free(&c);
    c = fr_command_run("batch " TARGET "-f - -o -",
                       "{\"id\": 1, \"prompt\": \"x\", \"id\": 2}\n"
                       "{\"id\": 1, \"prompt\": \"x\", \"seed\": 18446744073709551615}\n{\"id\": 1, \"n\": 1,}\n"
                       "{\"id\": [1, \"prompt\": \"x\"}\n{\"id\": \"\n{\"id\": 01, \"n\": 1}\n");
    json_t *answers = answers_of(&c);
    for (size_t i = 0; i < 6; i++) {
        const json_t *answer = json_array_get(answers, i), *id = json_object_get(answer, "id");
        ck_assert_ptr_nonnull(strstr(json_string_value(fr_json_get(answer, "error")), "no JSON"));
        ck_assert(i < 3 ? json_integer_value(id) == 1 : json_is_null(id));
    }
    json_decref(answers);
    fr_command_free(&c);
    c = fr_command_feed("{\"\\u0069d\": 7, \"prompt\": \"The\", \"n\": 1}\n", "batch " TARGET "-f - -o -");
    ck_assert_int_eq(strncmp(c.out, "{\"id\":7,", 8), 0);
    fr_command_free(&c);
}
END_TEST

/* If the seed of a line is -1, a random seed is chosen. The answer must contain it, so that the text can be generated
 * again. */
START_TEST(a_drawn_seed_is_told) {
    fr_command c =
        fr_command_feed("{\"prompt\": \"The\", \"seed\": -1, \"temp\": 1.5, \"n\": 9}\n", "batch " TARGET "-f - -o -");
    json_t *answers = answers_of(&c);
    const json_t *answer = json_array_get(answers, 0);
    fr_command again = fr_command_ok("generate " TARGET "-p The --temp 1.5 -n 9 --output json --seed %lld",
                                     (long long)json_integer_value(fr_json_get(answer, "seed")));
    json_t *expected = json_loads(again.out, 0, NULL);
    ck_assert(json_equal(fr_json_get(answer, "ids"), fr_json_get(expected, "ids")));
    json_decref(expected);
    json_decref(answers);
    fr_command_free(&again);
    fr_command_free(&c);
}
END_TEST

/* A template silently leaves out pictures that it can't show. So batch must refuse pictures in three cases: the model
 * does not read pictures, the line names no files for them, or the template has no place for them. */
#define SHOWS(parts) "\"messages\": [{\"role\": \"user\", \"content\": [" parts "]}], \"n\": 1}\n"
#define SAYS         "{\"type\": \"text\", \"text\": \"Read:\"}"

START_TEST(pictures_that_nobody_would_see) {
    /* clang-format off */
    static const char *const input =
        "{" SHOWS("{\"type\": \"image_url\", \"image_url\": {\"url\": \"file:///x\"}}, " SAYS)
        "{" SHOWS("{\"type\": \"image\"}, " SAYS)
        "{" SHOWS("{\"image\": \"x.png\"}, " SAYS)
        "{\"images\": [], " SHOWS(SAYS ", {\"type\": \"input_audio\"}")
        "{" SHOWS(SAYS);
    /* clang-format on */
    static const struct {
        const char *model, *picture;
    } ways[] = {{TARGET, "no vision tower"},
                {"-m " SEES, "\"images\" names 0 files"},
                {"-m " SEES " --chat-template-file tests/data/templates/glm.jinja", "\"images\" names 0 files"}};
    char line[256];
    snprintf(line, sizeof line, "batch %s -f - -o -", ways[_i].model);
    fr_command c = fr_command_run(line, input);
    ck_assert_int_eq(c.status, 1);
    json_t *answers = answers_of(&c);
    ck_assert_uint_eq(json_array_size(answers), 5);
    const char *const said[] = {"\"image_url\": pictures are parts", ways[_i].picture, ways[_i].picture,
                                "\"input_audio\": pictures are parts"};
    for (size_t i = 0; i < 4; i++) {
        const char *error = json_string_value(json_object_get(json_array_get(answers, i), "error"));
        ck_assert_msg(error && strstr(error, said[i]), "line %zu: %s", i, error ? error : "no error");
    }
    ck_assert_ptr_nonnull(json_object_get(json_array_get(answers, 4), "ids"));
    json_decref(answers);
    fr_command_free(&c);
}
END_TEST

/* Bans all tokens except one, in both formats of a line. So the text can only consist of this token. */
START_TEST(bans_may_be_many) {
    char *bans, *input;
    size_t length;
    FILE *stream = open_memstream(&bans, &length);
    for (int id = 0; id < 4096; id++)
        if (id != 77) fprintf(stream, "%s\"%d\": -1e30", id ? ", " : "", id);
    fclose(stream);
    stream = open_memstream(&input, &length);
    fprintf(stream, "{\"prompt\": \"The\", \"logit_bias\": {%s}}\n", bans);
    fprintf(stream,
            "{\"custom_id\": \"a\", \"url\": \"/v1/completions\", \"body\": {\"prompt\": \"The\", "
            "\"logit_bias\": {%s}}}\n",
            bans);
    fclose(stream);
    fr_command c = fr_command_run("batch " TARGET "-f - -o - -n 3", input);
    ck_assert_msg(c.status == 0, "%s%.400s", c.err, c.out);
    json_t *answers = answers_of(&c), *left = json_pack("[iii]", 77, 77, 77);
    ck_assert(json_equal(json_object_get(json_array_get(answers, 0), "ids"), left));
    const char *text;
    ck_assert_int_eq(
        json_unpack(json_array_get(answers, 1), "{s{s{s[{ss}]}}}", "response", "body", "choices", "text", &text), 0);
    ck_assert_str_eq(text, json_string_value(json_object_get(json_array_get(answers, 0), "text")));
    json_decref(left);
    json_decref(answers);
    fr_command_free(&c);
    free(bans);
    free(input);
}
END_TEST

/* OpenAI's clients write null for a member that is not set, and so do programs that write tables as JSON. OpenAI's
 * schema allows this. So null must mean that the member is missing. */
START_TEST(a_member_that_is_null_is_not_there) {
    static const char *const own[] = {"id",       "ids",    "messages",       "seed",     "stop",        "ignore_eos",
                                      "logprobs", "images", "tools",          "grammar",  "json_schema", "regex",
                                      "temp",     "top_k",  "top_p",          "min_p",    "custom_id",   "method",
                                      "url",      "body",   "repeat_penalty", "mirostat", "logit_bias",  "samplers"};
    static const char *const bodies[] = {
        "seed",    "stop",   "temperature", "top_p",           "max_tokens",        "logprobs", "logit_bias",
        "n",       "user",   "metadata",    "response_format", "frequency_penalty", "echo",     "suffix",
        "best_of", "stream", "model"};
    enum { OWN = sizeof own / sizeof *own, BODIES = sizeof bodies / sizeof *bodies };
    char *input;
    size_t length;
    FILE *stream = open_memstream(&input, &length);
    for (size_t i = 0; i < OWN; i++) fprintf(stream, "{\"prompt\": \"The\", \"n\": 4, \"%s\": null}\n", own[i]);
    fprintf(stream, "{\"prompt\": null, \"ids\": [2], \"n\": null}\n{\"ids\": [2]}\n");
    for (size_t i = 0; i < BODIES; i++)
        fprintf(stream,
                "{\"custom_id\": \"a\", \"method\": null, \"url\": \"/v1/completions\", \"body\": {\"prompt\": "
                "\"The\", \"max_completion_tokens\": null, \"%s\": null}}\n",
                bodies[i]);
    fclose(stream);
    fr_command c = fr_command_run("batch " TARGET "-f - -o - -np 4 -c 64 -n 4", input);
    ck_assert_msg(c.status == 0, "%s%.400s", c.err, c.out);
    json_t *answers = answers_of(&c);
    ck_assert_uint_eq(json_array_size(answers), OWN + 2 + BODIES);
    const json_t *first = json_array_get(answers, 0);
    for (size_t i = 0; i < OWN; i++) {
        const json_t *answer = json_array_get(answers, i);
        ck_assert_msg(json_equal(json_object_get(answer, "ids"), json_object_get(first, "ids")), "%s", own[i]);
    }
    ck_assert(json_equal(json_object_get(json_array_get(answers, OWN), "ids"),
                         json_object_get(json_array_get(answers, OWN + 1), "ids")));
    for (size_t i = 0; i < BODIES; i++) {
        const char *text;
        ck_assert_int_eq(json_unpack(json_array_get(answers, OWN + 2 + i), "{s{s{s[{ss}]}}}", "response", "body",
                                     "choices", "text", &text),
                         0);
        ck_assert_str_eq(text, json_string_value(json_object_get(first, "text")));
    }
    json_decref(answers);
    fr_command_free(&c);
    free(input);
}
END_TEST

/* Each of these lines must be answered with an error that gives the reason. All other lines must be run. */
START_TEST(lines_that_can_not_be_run) {
    static const struct {
        const char *line, *error;
    } wrong[] = {
        {"nonsense", "no JSON"},
        {"[1]", "no JSON object"},
        {"{\"id\": 5}", "one of prompt, ids and messages"},
        {"{\"prompt\": \"x\", \"ids\": [1]}", "one of prompt, ids and messages"},
        {"{\"prompt\": \"x\", \"bogus\": 1}", "\"bogus\" is not known"},
        {"{\"prompt\": 3}", "prompt must be a text"},
        {"{\"prompt\": \"x\", \"prompt\": \"y\"}", "no JSON"},
        {"{\"ids\": [-1]}", "ids[0] is no id"},
        {"{\"ids\": [2, 99999999]}", "outside the vocabulary"},
        {"{\"ids\": []}", "ids must be"},
        {"{\"messages\": 3}", "messages"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": 12345678901234567890}]}", "neither a text nor"},
        {"{\"prompt\": 12345678901234567890}", "too big integer"},
        {"{\"prompt\": \"x\", \"stop\": [12345678901234567890]}", "too big integer"},
        {"{\"prompt\": \"x\", \"n\": \"y\"}", "n must be"},
        {"{\"prompt\": \"x\", \"n\": -2}", "n must be"},
        {"{\"prompt\": \"x\", \"temp\": -1}", "temperature must be"},
        {"{\"prompt\": \"x\", \"temp\": \"hot\"}", "temp must be"},
        {"{\"prompt\": \"x\", \"top_k\": 1.5}", "top_k must be a whole"},
        {"{\"prompt\": \"x\", \"seed\": -2}", "seed must be"},
        {"{\"prompt\": \"x\", \"stop\": [\"\", 4]}", "stop must be"},
        {"{\"prompt\": \"x\", \"stop\": 4}", "stop must be"},
        {"{\"prompt\": \"x\", \"ignore_eos\": 1}", "ignore_eos must be"},
        {"{\"prompt\": \"x\", \"images\": [\"tests/data/none.png\"]}", "vision"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": {\"a\": 1}}]}", "neither a text nor"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [\"x\"]}]}", "neither a text nor"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": 5}]}]}", "neither a text nor"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"text\": \"x\"}]}]}", "neither a text nor"},
    };
    enum { COUNT = sizeof wrong / sizeof *wrong };
    char *input;
    size_t length;
    FILE *stream = open_memstream(&input, &length);
    for (size_t i = 0; i < COUNT; i++) fprintf(stream, "%s\n{\"prompt\": \"The\", \"n\": 1}\n\n", wrong[i].line);
    fclose(stream);
    fr_command c = fr_command_run("batch " TARGET "-f - -o - -np 2 -c 64", input);
    ck_assert_int_eq(c.status, 1);
    ck_assert_str_eq(c.err, "forerun: 28 of 56 lines could not be run: each has its \"error\"\n");
    json_t *answers = answers_of(&c);
    ck_assert_uint_eq(json_array_size(answers), 2 * COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        const char *error = json_string_value(json_object_get(json_array_get(answers, 2 * i), "error"));
        ck_assert_msg(error && strstr(error, wrong[i].error), "%s: %s", wrong[i].line, error ? error : "no error");
        check_answer(json_array_get(answers, 2 * i + 1), 8);
    }
    json_decref(answers);
    fr_command_free(&c);
    free(input);
}
END_TEST

/* A full disk or a crash can leave zero bytes in a file. There must still be one answer for each line. */
START_TEST(bytes_that_are_no_text_are_a_line) {
    static const char input[] = "\0\0\0\n \0\r\n{\"ids\": [2], \"n\": 1}\n\0";
    fr_command c = fr_command_run_bytes("batch " TARGET "-f - -o -", input, sizeof input - 1);
    json_t *answers = answers_of(&c);
    ck_assert_int_eq(c.status, 1);
    ck_assert_str_eq(c.err, "forerun: 3 of 4 lines could not be run: each has its \"error\"\n");
    ck_assert_uint_eq(json_array_size(answers), 4);
    for (size_t i = 0; i < 4; i++) ck_assert(i == 2 || json_object_get(json_array_get(answers, i), "error") != NULL);
    json_decref(answers);
    fr_command_free(&c);
}
END_TEST

/* There are only pages for one long text. So lines have to wait for each other and start again. This must not change
 * their texts. */
START_TEST(lines_wait_for_pages) {
    char input[4096], options[128];
    size_t at = 0;
    for (int i = 0; i < 9; i++)
        at += (size_t)snprintf(input + at, sizeof input - at,
                               "{\"ids\": [2, 5, %d], \"n\": %d, \"ignore_eos\": true}\n", 300 + i, 60 + 25 * (i % 4));
    fr_command plain = fr_command_feed(input, "batch %s -f - -o - -c 192 -np 2", BOTH);
    fr_command least = fr_command_run("batch " BOTH "-f - -o - -c 192 -np 6 --kv-memory 1", input);
    const char *bytes = strstr(least.err, "at least ");
    ck_assert_ptr_nonnull(bytes);
    snprintf(options, sizeof options, "%s -c 192 -np 6 --kv-memory %lld", _i ? BOTH : TARGET,
             strtoll(bytes + 9, NULL, 10));
    fr_command crowded = fr_command_feed(input, "batch %s -f - -o -", options);
    json_t *expected = answers_of(&plain), *got = answers_of(&crowded);
    ck_assert_uint_eq(json_array_size(got), 9);
    for (size_t i = 0; i < 9; i++) {
        json_int_t kv, checkpoints;
        const json_t *answer = json_array_get(got, i);
        ck_assert(json_equal(json_object_get(answer, "ids"), fr_json_get(json_array_get(expected, i), "ids")));
        ck_assert_int_eq(json_unpack((json_t *)answer, "{s{s{sI,sI}}}", "stats", "memory", "target_kv", &kv,
                                     "snapshots", &checkpoints),
                         0);
        ck_assert(kv > 0 && checkpoints >= 0 && checkpoints < strtoll(bytes + 9, NULL, 10));
    }
    json_decref(expected);
    json_decref(got);
    fr_command_free(&plain);
    fr_command_free(&least);
    fr_command_free(&crowded);
}
END_TEST

START_TEST(too_long_for_the_context) {
    char input[1024];
    size_t at = (size_t)snprintf(input, sizeof input, "{\"ids\": [2");
    for (int i = 0; i < 70; i++) at += (size_t)snprintf(input + at, sizeof input - at, ",5");
    snprintf(input + at, sizeof input - at, "]}\n{\"ids\": [2, 5], \"ignore_eos\": true}\n");
    fr_command c = fr_command_run("batch " TARGET "-f - -o - -c 64", input);
    json_t *answers = answers_of(&c);
    ck_assert_int_eq(c.status, 1);
    ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(json_array_get(answers, 0), "error")), "raise -c"));
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(answers, 1), "stop")), "context");
    ck_assert_uint_eq(json_array_size(json_object_get(json_array_get(answers, 1), "ids")), 62);
    json_decref(answers);
    fr_command_free(&c);
}
END_TEST

static void check_line_of(const json_t *answers, size_t line, const char *stop, size_t ids) {
    const json_t *answer = json_array_get(answers, line);
    ck_assert_str_eq(json_string_value(fr_json_get(answer, "stop")), stop);
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "ids")), ids);
}

/* The context has 4096 positions, as in generate. If the longest line needs more, the context has as many as this line
 * needs. If there is too little memory for the longest line, only this line is refused. */
START_TEST(the_context_is_the_longest_lines) {
    fr_changed_folder wide;
    char line[512], *input;
    size_t length;
    fr_changed_folder_make(&wide, "tests/data/models/llama-odd", "{\"max_position_embeddings\": 16384}");
    FILE *stream = open_memstream(&input, &length);
    fprintf(stream, "{\"ids\": [2, 5], \"n\": 3}\n{\"ids\": [2");
    for (int i = 1; i < 4200; i++) fprintf(stream, ",%d", 3 + i % 250);
    fprintf(stream, "], \"n\": 30, \"ignore_eos\": true}\n{\"ids\": [2, 5], \"n\": 20000}\n");
    fclose(stream);
    char *last = strstr(input, "{\"ids\": [2, 5], \"n\": 20000"), kept = *last;
    *last = '\0';
    snprintf(line, sizeof line, "batch -m %s -f - -o - -np 2", wide.path);
    fr_command c = fr_command_feed(input, "%s", line), least;
    json_t *answers = answers_of(&c);
    check_line_of(answers, 0, "length", 3);
    check_line_of(answers, 1, "length", 30);
    json_decref(answers);
    fr_command_free(&c);
    snprintf(line, sizeof line, "batch -m %s -f - -o - -np 2 --kv-memory 1", wide.path);
    least = fr_command_run(line, "{\"ids\": [2], \"n\": 1}\n");
    const char *bytes = strstr(least.err, "a context of 4096 needs at least ");
    ck_assert_ptr_nonnull(bytes);
    snprintf(line, sizeof line, "batch -m %s -f - -o - -np 2 --kv-memory %lld", wide.path,
             strtoll(bytes + 33, NULL, 10));
    *last = kept;
    c = fr_command_run(line, input);
    answers = answers_of(&c);
    ck_assert_int_eq(c.status, 1);
    check_line_of(answers, 0, "length", 3);
    ck_assert_ptr_nonnull(strstr(json_string_value(fr_json_get(json_array_get(answers, 1), "error")), "4096"));
    check_line_of(answers, 2, "context", 4094);
    json_decref(answers);
    fr_command_free(&least);
    fr_command_free(&c);
    free(input);
    fr_changed_folder_remove(&wide);
}
END_TEST

/* Writes a tokenizer.json whose decoder removes the space before the first token of a text, as Llama 2's decoder
 * does. */
static void write_stripping(const fr_changed_folder *folder, const char *from) {
    json_t *root = json_load_file(from, 0, NULL);
    json_t *strip = json_pack("{sssssisi}", "type", "Strip", "content", " ", "start", 1, "stop", 0);
    json_array_append_new(json_object_get(json_object_get(root, "decoder"), "decoders"), strip);
    char *text = json_dumps(root, 0);
    fr_changed_folder_write(folder, "tokenizer.json", text);
    free(text);
    json_decref(root);
}

/* A text that continues a prompt keeps the space before its first token. A reply in a chat begins without this
 * space. */
START_TEST(continued_texts_keep_their_blank) {
    static const char input[] =
        "{\"prompt\": \"The\", \"grammar\": \"root ::= \\\" a\\\"\"}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"grammar\": \"root ::= \\\" a\\\"\"}\n";
    fr_changed_folder folder;
    fr_changed_folder_make(&folder, "tools/demo/target", "{}");
    write_stripping(&folder, "tools/demo/target/tokenizer.json");
    fr_command c = fr_command_feed(input, "batch -m %s -f - -o -", folder.path);
    json_t *answers = answers_of(&c);
    ck_assert_str_eq(json_string_value(fr_json_get(json_array_get(answers, 0), "text")), " a");
    ck_assert_str_eq(json_string_value(fr_json_get(json_array_get(answers, 1), "text")), "a");
    json_decref(answers);
    fr_command_free(&c);
    fr_changed_folder_remove(&folder);
}
END_TEST

START_TEST(command_lines) {
    static const struct {
        const char *line;
        int status;
        const char *error;
    } wrong[] = {{"batch " TARGET "-f -", 2, "-o OUT"},
                 {"batch " TARGET "-o -", 2, "-f IN"},
                 {"batch " TARGET "-f - -o - -np 0", 2, "-np"},
                 {"batch " TARGET "-f - -o - -np 257", 2, "-np"},
                 {"batch " TARGET "-f - -o - -np 1 --kv-memory 100000000", 2, "--kv-memory is for lines that share it"},
                 {"batch " TARGET "-f - -o - --accept rejection --temp 1", 2, "rejection"},
                 {"batch " TARGET "-f tests/data/nothing.jsonl -o -", 1, "nothing.jsonl"},
                 {"batch " TARGET "-f - -o tests/nowhere/out.jsonl", 1, "nowhere"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fr_command c = fr_command_run(wrong[i].line, "");
        ck_assert_int_eq(c.status, wrong[i].status);
        ck_assert_msg(strstr(c.err, wrong[i].error), "%s: %s", wrong[i].line, c.err);
        ck_assert_str_eq(c.out, "");
        fr_command_free(&c);
    }
    fr_command nothing = fr_command_feed("\n \n", "batch " TARGET "-f - -o -");
    ck_assert_str_eq(nothing.out, "");
    fr_command_free(&nothing);
}
END_TEST

FR_SUITE("cli_batch") {
    TCase *cases = tcase_create("batch");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, lines_say_what_they_say_alone, 0, 4);
    tcase_add_test(cases, pictures);
    tcase_add_test(cases, ids_come_back_as_they_were_written);
    tcase_add_test(cases, a_drawn_seed_is_told);
    tcase_add_loop_test(cases, pictures_that_nobody_would_see, 0, 3);
    tcase_add_test(cases, bans_may_be_many);
    tcase_add_test(cases, a_member_that_is_null_is_not_there);
    tcase_add_test(cases, lines_that_can_not_be_run);
    tcase_add_test(cases, bytes_that_are_no_text_are_a_line);
    tcase_add_loop_test(cases, lines_wait_for_pages, 0, 2);
    tcase_add_test(cases, too_long_for_the_context);
    tcase_add_test(cases, the_context_is_the_longest_lines);
    tcase_add_test(cases, continued_texts_keep_their_blank);
    tcase_add_test(cases, command_lines);
    suite_add_tcase(suite, cases);
}
