/* Tests the refusal of unsupported architectures (src/engine/families/architecture.c and families.c). A model is
 * refused with exit status 1. If the reason is its architecture, a second line names the page of the documentation that
 * lists the supported ones. An unsupported drafter is refused with FR_UNBUILT, which is exit status 2. */
/* suite: native */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/suite.h"

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

/* Makes a model that states only the name of its architecture, in a folder's config.json or in a key of a GGUF file.
 * The engine must refuse the model after reading only this name. */
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

static void expect(const char *line, int status, const char *says, bool listed) {
    fr_command c = fr_command_run(line, NULL);
    ck_assert_msg(c.status == status, "%s: exit %d, not %d: %s", line, c.status, status, c.err);
    ck_assert_msg(strstr(c.err, says) != NULL, "%s: no \"%s\" in: %s", line, says, c.err);
    const char *end = strchr(c.err, '\n'),
               *second = strstr(c.err, "forerun: docs/models.md lists those that can be run\n");
    if (second) end = strchr(end + 1, '\n');
    ck_assert_msg(end == c.err + c.err_length - 1, "%s: not one line, or two: %s", line, c.err);
    ck_assert_msg((second != NULL) == listed, "%s: which can be run %s said: %s", line, listed ? "isn't" : "is", c.err);
    fr_command_free(&c);
}

/* `listed`: the error has a second line, which says where the supported architectures are listed. That line appears
 * only if the error is about the architecture. A folder of an unknown architecture may contain a drafter. So the engine
 * first looks for the folder's tensors, and the error is that there are none. */
static const struct {
    const char *architecture, *says;
    int status;
    bool gguf, drafter, listed;
} cases[] = {
    {"Glm4vMoeForConditionalGeneration", "(GLM-4.5V) can't be run", 1, .listed = true},
    {"Gemma4DSparkModel", "is a drafter that is not built yet", 2, .drafter = true},
    {"XPressDraftModel", "is a drafter that is not built yet", 2, .drafter = true},
    {"PEagleDraftModel", "is a drafter that is not built yet", 2, .drafter = true},
    {"deepseek4", "(DeepSeek-V4) can't be run", 1, .gguf = true, .listed = true},
    {"mimo2", "(MiMo-V2) can't be run", 1, .gguf = true, .listed = true},
    {"MiMoV2FlashForCausalLM", "can't be run; the nearest architecture that can be run is MiMoForCausalLM\n", 1,
     .listed = true},
    {"Qwen9OmniForConditionalGeneration",
     "it hears or speaks; the nearest architecture that can be run is Qwen2ForCausalLM\n", 1, .gguf = false},
    {"UnheardOfVLForConditionalGeneration", "index.json; by its name or configuration it sees pictures\n", 1,
     .gguf = false},
    {"UnheardOfForMaskedLM", "index.json; by its name or configuration it is an encoder\n", 1, .gguf = false},
    {"StableDiffusionPipeline", "it draws pictures\n", 1, .gguf = false},
    {"HydraSpeculator", "index.json; by its name or configuration it drafts for another model\n", 1, .gguf = false},
    {"UnheardOfForCausalLM", "\"UnheardOfForCausalLM\" is not known, and there is neither", 1, .gguf = false},
    {"Llama", "\"Llama\" is not known, and there is neither", 1, .drafter = true},
    {"ForCausalLM", "\"ForCausalLM\" is not known, and there is neither", 1, .gguf = false},
    {"LlamaForCausalLM", "has neither model.safetensors nor", 1, .gguf = false},
    {"qwen", "\"qwen\" is not known", 1, .gguf = true, .listed = true},
    {"unheard-of", "known", 1, .gguf = true, .drafter = true, .listed = true},
};

START_TEST(an_architecture_that_is_not_built_is_refused) {
    char line[512];
    make_folder();
    const char *model = make_model(cases[_i].architecture, cases[_i].gguf);
    static const char *const lines[] = {"inspect -m %s", "generate -p x -m %s", "verify -m %s",
                                        "quantize --type q4_0 -o /dev/null -m %s"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        if (cases[_i].gguf && i == 3) continue; /* quantize accepts GGUF files of any architecture */
        snprintf(line, sizeof line, lines[i], model);
        expect(line, cases[_i].status, cases[_i].says, cases[_i].listed);
    }
    if (cases[_i].drafter) {
        snprintf(line, sizeof line, "generate " MODEL "-p x -md %s", model);
        expect(line, cases[_i].status, cases[_i].says, false);
    }
    remove_folder();
}
END_TEST

FR_SUITE("unbuilt") {
    TCase *cases_of_files = tcase_create("unbuilt");
    tcase_set_timeout(cases_of_files, 60);
    tcase_add_loop_test(cases_of_files, an_architecture_that_is_not_built_is_refused, 0, COUNT_OF(cases));
    suite_add_tcase(suite, cases_of_files);
}
