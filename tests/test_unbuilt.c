/* src/families/architecture.c, and what every room refuses as not built: FR_UNBUILT and exit status 2, where a file
 * that makes no sense is FR_INPUT and 1. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/command.h"
#include "tests/gguf_builder.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static char folder[64], path[128];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-unbuilt-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* A folder with just a config.json of that architecture, or a GGUF file of it: as much as the refusal needs. */
static const char *make_model(const char *architecture, bool gguf) {
    snprintf(path, sizeof path, "%s/%s", folder, gguf ? "model.gguf" : "config.json");
    if (gguf) {
        fr_builder b = {0};
        fr_build_header(&b, 0, 1);
        fr_build_key_string(&b, "general.architecture", architecture);
        fr_build_align(&b, 32);
        fr_build_write(&b, path);
        fr_build_free(&b);
        return path;
    }
    FILE *file = fopen(path, "w");
    fprintf(file, "{\"architectures\": [\"%s\"]}", architecture);
    fclose(file);
    return folder;
}

static void expect(const char *line, int status, const char *says) {
    fr_command c = fr_command_run(line, NULL);
    ck_assert_msg(c.status == status, "%s: exit %d, not %d: %s", line, c.status, status, c.err);
    ck_assert_msg(strstr(c.err, says) != NULL, "%s: no \"%s\" in: %s", line, says, c.err);
    ck_assert_msg(strchr(c.err, '\n') == c.err + c.err_length - 1, "%s: not one line: %s", line, c.err);
    fr_command_free(&c);
}

static const struct {
    const char *architecture;
    bool gguf, drafter;
    int status;
} cases[] = {
    {"MistralForCausalLM", false, false, 2},
    {"Qwen3NextForCausalLM", false, false, 2},
    {"DeepseekV2ForCausalLM", false, false, 2},
    {"Glm4vMoeForConditionalGeneration", false, false, 2},
    {"DFlashDraftModel", false, true, 2},
    {"qwen2", true, false, 2},
    {"qwen3next", true, false, 2},
    {"deepseek32", true, false, 2},
    {"glm-dsa", true, false, 2},
    {"UnheardOfForCausalLM", false, false, 1},
    {"Llama", false, false, 1},
    {"ForCausalLM", false, false, 1},
    {"qwen", true, false, 1},
    {"unheard-of", true, true, 1},
};

START_TEST(a_known_part_is_2_an_unknown_one_1) {
    char line[512];
    make_folder();
    const char *model = make_model(cases[_i].architecture, cases[_i].gguf);
    bool unbuilt = cases[_i].status == 2, configured = !unbuilt && !cases[_i].gguf;
    const char *says = unbuilt ? "is not built yet" : configured ? "model.safetensors" : "known";
    static const char *const lines[] = {"inspect -m %s", "generate -p x -m %s", "verify -m %s",
                                        "quantize --type q4_0 -o /dev/null -m %s"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        if (cases[_i].gguf && i == 3) continue; /* of GGUF files, any can be written in another type */
        snprintf(line, sizeof line, lines[i], model);
        expect(line, cases[_i].status, says);
    }
    if (cases[_i].drafter) {
        snprintf(line, sizeof line, "generate " MODEL "-p x -md %s", model);
        expect(line, cases[_i].status, says);
    }
    remove_folder();
}
END_TEST

int main(void) {
    TCase *cases_of_files = tcase_create("unbuilt");
    tcase_set_timeout(cases_of_files, 60);
    tcase_add_loop_test(cases_of_files, a_known_part_is_2_an_unknown_one_1, 0, COUNT_OF(cases));
    Suite *suite = suite_create("unbuilt");
    suite_add_tcase(suite, cases_of_files);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
