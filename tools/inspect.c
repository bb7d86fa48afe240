/* forerun inspect: what a model or drafter folder is, and whether it can be used. */
#include "engine.h"
#include "forerun_lab.h"
#include "output.h"
#include "verbs.h"

int fr_verb_inspect(const fr_arguments *args) {
    const char *model = args->text[FR_ARG_MODEL], *drafter = args->text[FR_ARG_DRAFTER];
    bool tensors = args->given[FR_ARG_TENSORS];
    fr_options *options = NULL;
    int code = fr_engine_options(&options, args);
    if (!code) code = fr_exit_status(fr_lab_inspect(model, NULL, options, tensors, stdout));
    if (!code && drafter) code = fr_exit_status(fr_lab_inspect(drafter, model, options, tensors, stdout));
    fr_options_free(options);
    return code;
}
