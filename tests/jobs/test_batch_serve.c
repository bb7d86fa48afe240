/* The same body is run as a line of a batch and as a request to a server. The choices must be the same, byte for byte,
 * and so must the token counts. Some bodies ask for several choices ("n", "best_of"). Others have members that only
 * /v1/completions has ("echo", "suffix"). */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/asking.h"
#include "tests/support/changed_folder.h"
#include "tests/support/command.h"
#include "tests/support/server.h"
#include "tests/support/suite.h"

#define OLD    "\"prompt\": \"The river in winter\", \"max_tokens\": 12"
/* All sampling settings are given, because the defaults of serve and batch differ. */
#define DRAWN  "\"temperature\": 1.1, \"top_k\": 30, \"top_p\": 0.9, \"min_p\": 0.01"
#define GREEDY "\"temperature\": 0"
#define HI     "\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"max_tokens\": 9"

static const struct {
    const char *path, *body;
    size_t choices;
} asked[] = {
    {COMPLETION, "{" OLD ", " GREEDY ", \"echo\": true}", 1},
    {COMPLETION, "{" OLD ", " GREEDY ", \"echo\": true, \"logprobs\": 3}", 1},
    {COMPLETION, "{" OLD ", " DRAWN ", \"seed\": 7, \"echo\": true, \"logprobs\": 0, \"n\": 3}", 3},
    {COMPLETION, "{" OLD ", " DRAWN ", \"seed\": 7, \"n\": 2, \"best_of\": 5}", 2},
    {COMPLETION, "{" OLD ", " DRAWN ", \"seed\": 7, \"best_of\": 4, \"logprobs\": 1}", 1},
    {COMPLETION, "{" OLD ", " DRAWN ", \"seed\": 8, \"best_of\": 4, \"echo\": true}", 1},
    {COMPLETION, "{" OLD ", " DRAWN ", \"seed\": 8, \"n\": 3, \"best_of\": 3, \"stop\": [\"e\"]}", 3},
    {COMPLETION, "{\"prompt\": \"The sea\", \"max_tokens\": 0, \"echo\": true, \"logprobs\": 2, " GREEDY "}", 1},
    {COMPLETION, "{\"prompt\": \"The sea\", \"max_tokens\": 0, \"echo\": true, " GREEDY "}", 1},
    {COMPLETION, "{\"prompt\": [300, 301, 302], \"max_tokens\": 5, " GREEDY ", \"echo\": true, \"logprobs\": 1}", 1},
    {COMPLETION, "{" OLD ", " GREEDY ", \"suffix\": \" and the ice.\"}", 1},
    {COMPLETION, "{\"prompt\": [[300, 301]], \"max_tokens\": 5, " GREEDY ", \"suffix\": \"x\", \"logprobs\": 1}", 1},
    {CHAT, "{" HI ", " DRAWN ", \"seed\": 3, \"n\": 3}", 3},
    {CHAT, "{" HI ", " DRAWN ", \"seed\": 9223372036854775807, \"n\": 2, \"logprobs\": true}", 2},
    {CHAT, "{" HI ", " DRAWN ", \"seed\": 3, \"n\": 2, \"regex\": \"[a-f]{4}\"}", 2},
};
enum { ASKED = sizeof asked / sizeof *asked };

static fr_changed_folder folder;

/* Makes a copy of the demo model. The copy's tokenizer has tokens for filling in text. */
static void make_model(void) {
    static const char *const renamed[][2] = {
        {"\"<mask>\"", "\"<|fim_prefix|>\""}, {"\"<pad>\"", "\"<|fim_suffix|>\""}, {"\"<unk>\"", "\"<|fim_middle|>\""}};
    FILE *file = fopen("tools/demo/target/tokenizer.json", "r");
    size_t size = 8 << 20, length, put = 0;
    char *text = malloc(size), *changed = malloc(size);
    ck_assert(file && text && changed);
    length = fread(text, 1, size / 2, file);
    ck_assert(length > 0 && feof(file));
    text[length] = '\0';
    fclose(file);
    for (size_t at = 0; at < length;) {
        size_t i = 0;
        while (i < 3 && strncmp(text + at, renamed[i][0], strlen(renamed[i][0])) != 0) i++;
        ck_assert_uint_lt(put + 32, size);
        if (i == 3) {
            changed[put++] = text[at++];
            continue;
        }
        put += (size_t)snprintf(changed + put, size - put, "%s", renamed[i][1]);
        at += strlen(renamed[i][0]);
    }
    changed[put] = '\0';
    fr_changed_folder_make(&folder, "tools/demo/target", "{}");
    fr_changed_folder_write(&folder, "tokenizer.json", changed);
    free(text);
    free(changed);
}

static char *lines_of_all(void) {
    char *lines = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&lines, &length);
    ck_assert_ptr_nonnull(out);
    for (size_t i = 0; i < ASKED; i++)
        fprintf(out, "{\"custom_id\": \"%zu\", \"method\": \"POST\", \"url\": \"%s\", \"body\": %s}\n", i,
                asked[i].path, asked[i].body);
    fclose(out);
    return lines;
}

static size_t count_of(const json_t *body, const char *key) {
    return (size_t)json_integer_value(fr_json_get(fr_json_get(body, "usage"), key));
}

/* The batch runs all lines at once, or one after the other. In both cases its answers must be those of the server. */
START_TEST(lines_say_what_requests_say) {
    make_model();
    char *lines = lines_of_all();
    fr_command c = fr_command_feed(lines, "batch -m %s --quiet -f - -o - -np %d", folder.path, _i ? 6 : 1);
    fr_server server = fr_server_start("-m %s -np 4 -c 512", folder.path);
    const char *at = c.out;
    for (size_t i = 0; i < ASKED; i++) {
        const char *end = strchr(at, '\n');
        ck_assert_ptr_nonnull(end);
        json_t *answer = json_loadb(at, (size_t)(end - at), 0, NULL), *body = json_loads(asked[i].body, 0, NULL);
        json_t *other;
        at = end + 1;
        ck_assert(answer && body);
        const json_t *said = fr_json_get(fr_json_get(answer, "response"), "body");
        ck_assert_int_eq(fr_ask_json(server.port, asked[i].path, body, &other), 200);
        char *one = json_dumps(fr_json_get(said, "choices"), 0), *two = json_dumps(fr_json_get(other, "choices"), 0);
        ck_assert_uint_eq(json_array_size(fr_json_get(said, "choices")), asked[i].choices);
        ck_assert_msg(strcmp(one, two) == 0, "%s\nbatch: %.900s\nserve: %.900s", asked[i].body, one, two);
        ck_assert_uint_eq(count_of(said, "prompt_tokens"), count_of(other, "prompt_tokens"));
        ck_assert_uint_eq(count_of(said, "completion_tokens"), count_of(other, "completion_tokens"));
        free(one);
        free(two);
        json_decref(other);
        json_decref(answer);
        json_decref(body);
    }
    fr_server_stop(&server);
    fr_command_free(&c);
    fr_changed_folder_remove(&folder);
    free(lines);
}
END_TEST

/* Bodies that can't be answered. `says` is a part of the reason that batch and serve must give. */
static const struct {
    const char *path, *body;
    int status;
    const char *says;
} refused[] = {
    {COMPLETION, "{" OLD ", \"n\": 0}", 400, "n must be a whole number from 1 to 128"},
    {COMPLETION, "{" OLD ", \"n\": 129}", 400, "n must be a whole number from 1 to 128"},
    {COMPLETION, "{" OLD ", \"n\": \"2\"}", 400, "n must be a whole number from 1 to 128"},
    {COMPLETION, "{" OLD ", \"n\": 1.5}", 400, "n must be a whole number from 1 to 128"},
    {COMPLETION, "{" OLD ", \"n_cmpl\": -1}", 400, "n_cmpl must be a whole number from 1 to 128"},
    {COMPLETION, "{" OLD ", \"best_of\": 0}", 400, "best_of must be a whole number from 1 to 128"},
    {COMPLETION, "{" OLD ", \"best_of\": [3]}", 400, "best_of must be a whole number from 1 to 128"},
    {COMPLETION, "{" OLD ", \"best_of\": 4, \"n\": 5}", 400, "best_of 4 is less than n 5"},
    {COMPLETION, "{" OLD ", \"echo\": \"yes\"}", 400, "echo must be true or false"},
    {COMPLETION, "{" OLD ", \"echo\": true, \"suffix\": \"x\"}", 400, "echo and suffix exclude each other"},
    {COMPLETION, "{" OLD ", \"suffix\": 5}", 400, "suffix must be a text"},
    {COMPLETION, "{" OLD ", \"suffix\": [\"x\"]}", 400, "suffix must be a text"},
    {COMPLETION, "{\"prompt\": 5, \"suffix\": \"x\"}", 400, "prompt must be a text, or an array of ids"},
    {COMPLETION, "{\"prompt\": {}, \"suffix\": \"x\"}", 400, "prompt must be a text, or an array of ids"},
    {COMPLETION, "{\"prompt\": [99999999], \"suffix\": \"x\"}", 400, "outside the vocabulary"},
    {COMPLETION, "{\"prompt\": [5, {}], \"suffix\": \"x\"}", 400, "is no id"},
    {COMPLETION, "{\"prompt\": [5, -1], \"suffix\": \"x\"}", 400, "is no id"},
    {COMPLETION, "{\"prompt\": [99999999], \"echo\": true, \"logprobs\": 1}", 400, "outside the vocabulary"},
    {COMPLETION, "{" OLD ", \"echo\": true, \"logprobs\": 101}", 400, "logprobs must be a whole number"},
    {COMPLETION, "{" OLD ", \"best_of\": 2, \"logprobs\": true}", 400, "logprobs must be a whole number"},
    {COMPLETION, "{\"echo\": true, \"logprobs\": 1}", 400, "prompt"},
    {CHAT, "{" HI ", \"n\": 100000000000000000000}", 400, "too big integer"},
    {CHAT, "{" HI ", \"n\": {}}", 400, "n must be a whole number from 1 to 128"},
};
enum { REFUSED = sizeof refused / sizeof *refused };

/* batch and serve must refuse each of these bodies with the same status and the same words. */
START_TEST(what_one_refuses_the_other_does) {
    char *lines = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&lines, &length);
    make_model();
    ck_assert_ptr_nonnull(out);
    for (size_t i = 0; i < REFUSED; i++)
        fprintf(out, "{\"custom_id\": \"x\", \"method\": \"POST\", \"url\": \"%s\", \"body\": %s}\n", refused[i].path,
                refused[i].body);
    fclose(out);
    char line[256];
    snprintf(line, sizeof line, "batch -m %s --quiet -f - -o -", folder.path);
    fr_command c = fr_command_run(line, lines);
    ck_assert_int_eq(c.status, 1);
    fr_server server = fr_server_start("-m %s -np 2 -c 512", folder.path);
    const char *at = c.out;
    for (size_t i = 0; i < REFUSED; i++) {
        const char *end = strchr(at, '\n');
        char *text;
        ck_assert_ptr_nonnull(end);
        json_t *answer = json_loadb(at, (size_t)(end - at), 0, NULL), *other;
        at = end + 1;
        int status = fr_client_once(server.port, "POST", refused[i].path, NULL, refused[i].body, &text);
        ck_assert(answer && text && (other = json_loads(text, 0, NULL)));
        const json_t *response = fr_json_get(answer, "response"), *error = fr_json_get(response, "body");
        const char *one = json_string_value(fr_json_get(fr_json_get(error, "error"), "message"));
        const char *two = json_string_value(fr_json_get(fr_json_get(other, "error"), "message"));
        ck_assert_msg(strstr(one, refused[i].says) && strstr(two, refused[i].says), "%s\nbatch: %s\nserve: %s",
                      refused[i].body, one, two);
        ck_assert_msg(status == refused[i].status, "%s: status %d, %s", refused[i].body, status, two);
        ck_assert_int_eq(json_integer_value(fr_json_get(response, "status_code")), status);
        json_decref(answer);
        json_decref(other);
        free(text);
    }
    fr_server_stop(&server);
    fr_command_free(&c);
    fr_changed_folder_remove(&folder);
    free(lines);
}
END_TEST

FR_SUITE("batch_serve") {
    TCase *cases = tcase_create("bodies");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, lines_say_what_requests_say, 0, 2);
    tcase_add_test(cases, what_one_refuses_the_other_does);
    suite_add_tcase(suite, cases);
}
