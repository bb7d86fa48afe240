/* Implements forerun inspect: describes a model or a drafter, in words or as one JSON object, and says whether it can
 * be used. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/verbs.h"

/* Gives the library's description of a model as an object. Returns NULL if there is no description. *code is the exit
 * status. If the model does not fit into memory, there is a description although *code is not 0. */
static json_t *describe(const char *path, const fr_lab_inspection *how, const fr_options *options, int *code) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out) {
        *code = fr_bad_input("out of memory: a description");
        return NULL;
    }
    *code = fr_exit_status(fr_lab_inspect(path, how, options, out));
    fclose(out);
    json_t *object = length ? json_loadb(text, length, JSON_ALLOW_NUL, NULL) : NULL;
    if (!*code && !object) *code = fr_bad_input("out of memory: a description");
    free(text);
    return object;
}

/* Prints the description of the model. Its member "drafter" describes the drafter of -md. */
static int print_json(const fr_arguments *args, fr_lab_inspection how, const fr_options *options) {
    int code;
    json_t *object = describe(args->text[FR_ARG_MODEL], &how, options, &code), *drafter = NULL;
    how.target = args->text[FR_ARG_MODEL];
    bool both = !code && args->given[FR_ARG_DRAFTER];
    if (both) drafter = describe(args->text[FR_ARG_DRAFTER], &how, options, &code);
    if (drafter) fr_json_put(object, "drafter", drafter);
    if (object && (!both || drafter)) {
        json_dumpf(object, stdout, 0);
        putchar('\n');
        fr_flush_output();
    }
    json_decref(object);
    return code;
}

static int print_words(const fr_arguments *args, fr_lab_inspection how, const fr_options *options) {
    int code = fr_exit_status(fr_lab_inspect(args->text[FR_ARG_MODEL], &how, options, stdout));
    how.target = args->text[FR_ARG_MODEL];
    if (code || !args->given[FR_ARG_DRAFTER]) return code;
    return fr_exit_status(fr_lab_inspect(args->text[FR_ARG_DRAFTER], &how, options, stdout));
}

int fr_verb_inspect(const fr_arguments *args) {
    bool json = args->given[FR_ARG_INSPECT_FORM] && strcmp(args->text[FR_ARG_INSPECT_FORM], "json") == 0;
    fr_lab_inspection how = {.tensors = args->given[FR_ARG_TENSORS], .json = json};
    int64_t context = args->number[FR_ARG_CONTEXT];
    how.images = args->images;
    how.image_count = args->image_count;
    if (args->given[FR_ARG_CONTEXT]) how.context = context ? (size_t)context : SIZE_MAX;
    fr_options *options = NULL;
    size_t limit = SIZE_MAX;
    how.limit = &limit;
    int code = fr_loaded_options(&options, args);
    if (!code) code = (how.json ? print_json : print_words)(args, how, options);
    if (!code && context > 0 && (size_t)context > limit && !args->given[FR_ARG_QUIET])
        fr_note("-c %lld: this model runs at most %zu positions: the figures are for these", (long long)context, limit);
    fr_options_free(options);
    return code;
}
