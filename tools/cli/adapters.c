/* Opens the adapters that a command line names: see adapters.h. */
#include "tools/cli/adapters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/output.h"
#include "tools/cli/words.h"

/* Splits FILE=SCALE or FILE:SCALE. A file whose own name ends like this is taken whole. needs: a missing scale is an
 * error. Gives the exit status; *path is for the caller to free. */
static int split(const char *item, size_t length, char mark, const char *option, bool needs, char **path,
                 double *scale) {
    char *text = fr_resize(NULL, length + 1, 1), *end = NULL;
    memcpy(text, item, length);
    text[length] = '\0';
    char *at = strrchr(text, mark);
    *path = text;
    *scale = 1;
    bool whole = !at || (!needs && access(text, F_OK) == 0);
    double value = whole ? 1 : strtod(at + 1, &end);
    bool number = !whole && end != at + 1 && *end == '\0' && isfinite(value);
    if (number) {
        *scale = value;
        *at = '\0';
    }
    if (*text && (number || (whole && !needs))) return 0;
    int code = needs ? fr_wrong_usage("%s %.200s: FILE%cSCALE is needed, with a finite number", option, text, mark)
                     : fr_wrong_usage("%s %.200s: no file has this name, and no finite number is after the %c", option,
                                      text, mark);
    free(text);
    *path = NULL;
    return code;
}

int fr_adapters_read(fr_loaded_adapters *adapters, const fr_arguments *args) {
    for (size_t i = 0; i < args->adapter_count; i++) {
        bool scaled = args->adapters[i].scaled;
        const char *option = scaled ? "--lora-scaled" : "--lora", *list = args->adapters[i].text, *item;
        size_t length;
        while ((item = fr_next_word(&list, ',', &length))) {
            if (adapters->count == FR_LOADED_ADAPTERS_MAX)
                return fr_wrong_usage("%s: at most %d adapters can be given", option, FR_LOADED_ADAPTERS_MAX);
            size_t at = adapters->count;
            int code =
                split(item, length, scaled ? ':' : '=', option, scaled, &adapters->path[at], &adapters->scale[at]);
            if (code) return code;
            if (args->given[FR_ARG_LORA_IDLE]) adapters->scale[at] = 0;
            adapters->count++;
        }
    }
    return 0;
}

int fr_adapters_check(const fr_arguments *args) {
    fr_loaded_adapters read = {0};
    int code = fr_adapters_read(&read, args);
    fr_adapters_close(&read);
    return code;
}

int fr_adapters_open(fr_loaded_adapters *adapters, const fr_model *model, const fr_arguments *args) {
    int code = fr_adapters_read(adapters, args);
    for (size_t i = 0; !code && i < adapters->count; i++)
        code = fr_exit_status(fr_adapter_open(adapters->path[i], model, &adapters->opened[i]));
    return code;
}

void fr_adapters_close(fr_loaded_adapters *adapters) {
    for (size_t i = 0; i < adapters->count; i++) {
        fr_adapter_close(adapters->opened[i]);
        free(adapters->path[i]);
    }
    *adapters = (fr_loaded_adapters){0};
}

fr_status fr_adapters_use(const fr_loaded_adapters *adapters, const double *scales, fr_session *session) {
    const fr_adapter *used[FR_LOADED_ADAPTERS_MAX];
    for (size_t i = 0; i < adapters->count; i++) used[i] = adapters->opened[i];
    if (adapters->count == 0) return FR_OK;
    return fr_session_set_adapters(session, used, scales ? scales : adapters->scale, adapters->count);
}
