/* Tests models whose names are found in the caches of other programs. Also tests the verb models, which lists these
 * models. */
/* suite: native */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/command.h"
#include "tests/support/http_client.h"
#include "tests/support/made_root.h"
#include "tests/support/server.h"
#include "tests/support/suite.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define HUB    "hub/models--"
#define DIGEST "00000000000000000000000000000000000000000000000000000000000000aa"
#define GGUF   "tests/data/gguf/"

/* Makes caches of other programs. They contain a published folder, a drafter, GGUF files and an ollama store. */
static void open_caches(void) {
    char value[128];
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json"};
    fr_made_root_open();
    unsetenv("HF_HUB_CACHE");
    unsetenv("HUGGINGFACE_HUB_CACHE");
    unsetenv("LLAMA_CACHE");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", fr_made_root, 1);
    setenv("HF_HOME", fr_made_root, 1);
    snprintf(value, sizeof value, "%s/ollama", fr_made_root);
    setenv("OLLAMA_MODELS", value, 1);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char from[256], to[256];
        snprintf(from, sizeof from, FOLDER "/%s", files[i]);
        snprintf(to, sizeof to, HUB "Org--E/snapshots/" COMMIT "/%s", files[i]);
        fr_made_root_take(to, from);
        snprintf(from, sizeof from, FOLDER "/assistant/%s", files[i]);
        snprintf(to, sizeof to, HUB "Org--E-assistant/snapshots/" COMMIT "/%s", files[i]);
        if (i < 2) fr_made_root_take(to, from);
    }
    fr_made_root_take(HUB "Org--M-GGUF/snapshots/" COMMIT "/m-BF16.gguf", GGUF "moe-odd.gguf");
    fr_made_root_take(HUB "Org--M-GGUF/snapshots/" COMMIT "/m-Q4_0.gguf", GGUF "e-q4_0.gguf");
    fr_made_root_put(HUB "Org--M-GGUF/snapshots/" COMMIT "/m-Q2_K.gguf", "no GGUF");
    fr_made_root_put(HUB "Org--U/blobs/1.incomplete", "");
    fr_made_root_take("ollama/blobs/sha256-" DIGEST, GGUF "e-q4_0.gguf");
    fr_made_root_put("ollama/manifests/registry.ollama.ai/library/e/2b",
                     "{\"layers\": [{\"mediaType\": \"application/vnd.ollama.image.model\", \"size\": 1279168, "
                     "\"digest\": \"sha256:" DIGEST "\"}]}");
}

static const char *const same[][2] = {
    {"generate -m Org/E -md Org/E-assistant --ids 2,415,443 -n 8 --output ids",
     "generate " MODEL DRAFTER "--ids 2,415,443 -n 8 --output ids"},
    {"generate Org/E --ids 2,415,443 -n 8 --output ids", "generate " MODEL "--ids 2,415,443 -n 8 --output ids"},
    {"generate -hf Org/M-GGUF:BF16 --ids 2,13,45 -n 8 --output ids",
     "generate -m " GGUF "moe-odd.gguf --ids 2,13,45 -n 8 --output ids"},
    {"generate -m Org/M-GGUF:m-Q4_0.gguf --ids 2,13,45 -n 8 --output ids",
     "generate -m " GGUF "e-q4_0.gguf --ids 2,13,45 -n 8 --output ids"},
    {"generate -m ollama:e:2b --ids 2,13,45 -n 8 --output ids",
     "generate -m " GGUF "e-q4_0.gguf --ids 2,13,45 -n 8 --output ids"},
    {"generate -m org/e --ids 2,415,443 -n 8 --output ids -md E-Assistant",
     "generate " MODEL DRAFTER "--ids 2,415,443 -n 8 --output ids"},
    {"generate -m org/m-gguf:BF16 --ids 2,13,45 -n 8 --output ids",
     "generate -m " GGUF "moe-odd.gguf --ids 2,13,45 -n 8 --output ids"},
    {"generate -m E:2B --ids 2,13,45 -n 8 --output ids",
     "generate -m " GGUF "e-q4_0.gguf --ids 2,13,45 -n 8 --output ids"},
    {"tokenize -m Org/E -p Hello", "tokenize " MODEL "-p Hello"},
    {"verify -m Org/E -t 1", "verify " MODEL "-t 1"},
};

START_TEST(a_name_is_its_path) {
    fr_command named = fr_command_ok("%s", same[_i][0]), path = fr_command_ok("%s", same[_i][1]);
    ck_assert_str_eq(named.out, path.out);
    fr_command_free(&named);
    fr_command_free(&path);
}
END_TEST

static const struct {
    const char *line, *says;
} missing[] = {
    {"generate -m Org/Nothing -p x",
     "forerun: Org/Nothing: there is no such path, and no model of this name in a cache; this would download it: "
     "hf download Org/Nothing\n"},
    {"generate " MODEL "-md Org/D:Q8_0 -p x", "hf download Org/D --include '*Q8_0*'\n"},
    {"inspect Org/M-GGUF:Q3_K_S",
     "there are m-BF16.gguf, m-Q2_K.gguf, m-Q4_0.gguf; this would download it: hf download"},
    {"serve -m ollama:none", "this would download it: ollama pull none\n"},
    {"chat -m Org/U", "models--Org--U: its download is not finished\n"},
    {"chat -m Qwen/Qwen2.5-0.5B-Instruct-GGUF",
     "this would download the one file: hf download Qwen/Qwen2.5-0.5B-Instruct-GGUF --include "
     "'*[Qq]4_[Kk]_[Mm].gguf'\n"},
    {"chat -m https://huggingface.co/a/b-GGUF/resolve/main/x/b-Q8_0.gguf?download=true",
     "forerun downloads nothing: run hf download a/b-GGUF x/b-Q8_0.gguf, then give -m a/b-GGUF:x/b-Q8_0.gguf\n"},
    {"chat -m https://huggingface.co/a/b", "forerun downloads nothing: give -m a/b once"},
    {"chat -m http://example.org/m.gguf",
     "forerun downloads nothing: run curl -LO http://example.org/m.gguf, then give -m FILE\n"},
    {"chat -m org/m-gguf:Q3_K_S", "there are m-BF16.gguf, m-Q2_K.gguf, m-Q4_0.gguf"},
    {"chat -m e", "forerun: e could be any of these: Org/E, ollama:e:2b\n"},
    {"chat -m nothing", "forerun: nothing: No such file or directory"},
    {"chat -m models/m.gguf", "forerun: models/m.gguf: No such file or directory"},
};

START_TEST(a_name_that_is_not_there) {
    fr_command c = fr_command_run(missing[_i].line, NULL);
    ck_assert_int_eq(c.status, 1);
    ck_assert_msg(strstr(c.err, missing[_i].says), "%s: %s", missing[_i].line, c.err);
    ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
    fr_command_free(&c);
}
END_TEST

START_TEST(models_in_lines) {
    fr_command c = fr_command_ok("models");
    ck_assert_msg(strncmp(c.out, "NAME", 4) == 0, "%s", c.out);
    ck_assert_msg(strstr(c.out, "\nOrg/E               "), "%s", c.out);
    ck_assert_msg(strstr(c.out, "\nOrg/M-GGUF:BF16     0.7 MB  gemma4        BF16     yes\n"), "%s", c.out);
    ck_assert_msg(strstr(c.out, "\nOrg/M-GGUF:Q2_K     0.0 MB  -             -        "), "%s", c.out);
    ck_assert_msg(strstr(c.out, "\nollama:e:2b         1.3 MB  gemma4        Q4_0     yes\n"), "%s", c.out);
    fr_command_free(&c);
    setenv("HF_HOME", "/nowhere", 1);
    setenv("OLLAMA_MODELS", "/nowhere", 1);
    c = fr_command_ok("models");
    ck_assert_str_eq(c.out, "");
    ck_assert_ptr_nonnull(strstr(c.err, "forerun: no model in the caches"));
    fr_command_free(&c);
    c = fr_command_ok("models -o json");
    ck_assert_str_eq(c.out, "[]\n");
    fr_command_free(&c);
}
END_TEST

static const json_t *row_of(const json_t *rows, const char *name) {
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (strcmp(json_string_value(fr_json_get(json_array_get(rows, i), "name")), name) == 0)
            return json_array_get(rows, i);
    ck_abort_msg("%s is not listed", name);
}

static const char *text(const json_t *rows, const char *name, const char *key) {
    const char *value = json_string_value(fr_json_get(row_of(rows, name), key));
    return value ? value : "null";
}

static bool runs(const json_t *rows, const char *name) {
    return json_is_true(fr_json_get(row_of(rows, name), "runs"));
}

START_TEST(models_as_json) {
    fr_command c = fr_command_ok("models --output json");
    json_t *rows = json_loads(c.out, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(json_array_size(rows) == 7, "%s", c.out);
    ck_assert(runs(rows, "Org/E") && runs(rows, "Org/M-GGUF:BF16") && runs(rows, "ollama:e:2b"));
    ck_assert_str_eq(text(rows, "Org/E", "architecture"), "Gemma4ForCausalLM");
    ck_assert_str_eq(text(rows, "Org/E", "family"), "gemma4");
    ck_assert_str_eq(text(rows, "Org/E", "store"), "Hugging Face");
    ck_assert_str_eq(text(rows, "ollama:e:2b", "store"), "ollama");
    ck_assert_str_eq(text(rows, "ollama:e:2b", "type"), "Q4_0");
    ck_assert_str_eq(text(rows, "Org/E", "reason"), "null");
    ck_assert(!runs(rows, "Org/E-assistant"));
    ck_assert_str_eq(text(rows, "Org/E-assistant", "reason"), "a drafter: -md");
    ck_assert(!runs(rows, "Org/M-GGUF:Q2_K"));
    ck_assert_ptr_nonnull(strstr(text(rows, "Org/M-GGUF:Q2_K", "reason"), "GGUF"));
    ck_assert_str_eq(text(rows, "Org/U", "reason"), "its download is not finished");
    ck_assert_int_eq(json_integer_value(fr_json_get(row_of(rows, "ollama:e:2b"), "bytes")), 1279168);
    json_decref(rows);
    fr_command_free(&c);
}
END_TEST

/* A server must show the model under the name with which the server was started. */
START_TEST(a_server_by_name) {
    fr_server server = fr_server_start("-m Org/M-GGUF:Q4_0");
    char *body;
    ck_assert_int_eq(fr_client_once(server.port, "GET", "/v1/models", NULL, NULL, &body), 200);
    ck_assert_msg(strstr(body, "\"Org/M-GGUF:Q4_0\"") || strstr(body, "\"Org\\/M-GGUF:Q4_0\""), "%s", body);
    free(body);
    fr_server_stop(&server);
}
END_TEST

FR_SUITE("cli_named") {
    TCase *cases = tcase_create("cli_named");
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, open_caches, fr_made_root_close);
    tcase_add_loop_test(cases, a_name_is_its_path, 0, sizeof same / sizeof *same);
    tcase_add_loop_test(cases, a_name_that_is_not_there, 0, sizeof missing / sizeof *missing);
    tcase_add_test(cases, models_in_lines);
    tcase_add_test(cases, models_as_json);
    tcase_add_test(cases, a_server_by_name);
    suite_add_tcase(suite, cases);
}
