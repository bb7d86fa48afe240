/* Replaces the names of models by their paths (named.h). */
#include "tools/cli/named.h"

#include <string.h>
#include <unistd.h>

#include "tools/cli/output.h"

int fr_named_resolve(fr_arguments *args) {
    static const fr_arg models[FR_NAMED_MAX] = {FR_ARG_MODEL, FR_ARG_DRAFTER, FR_ARG_MMPROJ};
    for (size_t i = 0; i < FR_NAMED_MAX; i++) {
        const char *name = args->text[models[i]];
        if (!args->given[models[i]]) continue;
        int code = fr_exit_status(fr_model_find(name, (const char *const *)environ, &args->found[i]));
        if (code) return code;
        if (models[i] == FR_ARG_MODEL && strcmp(name, args->found[i]) != 0) args->model_name = name;
        args->text[models[i]] = args->found[i];
    }
    return 0;
}
