/* Opening a drafter of any method: its folder's architecture names the method, the method reads and checks the rest. */
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "src/draft.h"

static const fr_draft_method *const methods[] = {&fr_draft_mtp};

static fr_status find_method(fr_drafter *drafter) {
    const char *architecture = fr_checkpoint_architecture(&drafter->files);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i]->architecture, architecture) == 0) {
            drafter->method = methods[i];
            return FR_OK;
        }
    return fr_fail(FR_INPUT, "%s: architecture \"%s\" is no drafter that is built (Gemma4AssistantForCausalLM)",
                   drafter->files.path, architecture);
}

static fr_status load(fr_drafter *drafter, const char *path, const fr_options *options) {
    fr_plan plan;
    FR_TRY(fr_plan_from_options(options, &plan));
    FR_TRY(fr_checkpoint_open(&drafter->files, path, options->value[FR_OPT_MMAP] != 0));
    FR_TRY(find_method(drafter));
    FR_TRY(fr_weights_open(&drafter->weights, &drafter->files));
    FR_TRY(drafter->method->load(drafter));
    return fr_weights_settle(&drafter->weights, &plan, options);
}

fr_status fr_drafter_load(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter) {
    *drafter = NULL;
    fr_drafter *d = calloc(1, sizeof *d);
    if (!d) return fr_fail_memory("drafter", sizeof *d);
    d->target = target;
    fr_status status = load(d, path, options);
    if (status == FR_OK)
        *drafter = d;
    else
        fr_drafter_unload(d);
    return status;
}

void fr_drafter_unload(fr_drafter *drafter) {
    if (!drafter) return;
    if (drafter->method) drafter->method->unload(drafter);
    fr_weights_close(&drafter->weights);
    fr_checkpoint_close(&drafter->files);
    free(drafter);
}
