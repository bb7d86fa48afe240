/* Opens the adapters that a command line names: see adapters.h. */
#include "tools/cli/adapters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/output.h"
#include "tools/cli/words.h"

/* Splits FILE=SCALE or FILE:SCALE at the mark. If there is a file whose name is the whole text, the text is not split.
 * needs: the scale is required, so the text is split even then. Gives the exit status. The caller frees *path. */
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
    static const char *const names[][2] = {{"--lora", "--lora-scaled"},
                                           {"--control-vector", "--control-vector-scaled"}};
    for (size_t i = 0; i < args->adapter_count; i++) {
        fr_arg arg = args->adapters[i].option;
        bool scaled = arg == FR_ARG_LORA_SCALED || arg == FR_ARG_VECTOR_SCALED;
        bool vector = arg == FR_ARG_VECTOR || arg == FR_ARG_VECTOR_SCALED;
        const char *option = names[vector][scaled], *list = args->adapters[i].text, *item;
        size_t length, *count = vector ? &adapters->vectors : &adapters->count;
        size_t most = vector ? FR_ADAPTERS_MAX : FR_LOADED_ADAPTERS_MAX;
        while ((item = fr_next_word(&list, ',', &length))) {
            size_t at = *count;
            if (at == most) return fr_wrong_usage("%s: at most %zu files can be given", option, most);
            double *scale = vector ? &adapters->vector_scale[at] : &adapters->scale[at];
            char **path = vector ? &adapters->vector_path[at] : &adapters->path[at];
            int code = split(item, length, scaled ? ':' : '=', option, scaled, path, scale);
            if (code) return code;
            if (!vector && args->given[FR_ARG_LORA_IDLE]) *scale = 0;
            ++*count;
        }
    }
    return 0;
}

size_t fr_adapters_count_used(const fr_loaded_adapters *adapters, const double *scales) {
    size_t used = 0;
    for (size_t i = 0; i < adapters->count; i++) used += scales[i] != 0;
    for (size_t i = 0; i < adapters->vectors; i++) used += adapters->vector_scale[i] != 0;
    return used;
}

int fr_adapters_check(const fr_arguments *args) {
    fr_loaded_adapters read = {0};
    int code = fr_adapters_read(&read, args);
    size_t used = fr_adapters_count_used(&read, read.scale);
    if (!code && used > FR_ADAPTERS_MAX)
        code = fr_wrong_usage("%zu adapters and control vectors have a scale, and a text can have %d", used,
                              FR_ADAPTERS_MAX);
    fr_adapters_close(&read);
    return code;
}

int fr_adapters_open(fr_loaded_adapters *adapters, const fr_model *model, const fr_arguments *args) {
    int code = fr_adapters_read(adapters, args);
    const size_t *range = args->vector_range;
    for (size_t i = 0; !code && i < adapters->count; i++)
        code = fr_exit_status(fr_adapter_open(adapters->path[i], model, &adapters->opened[i]));
    for (size_t i = 0; !code && i < adapters->vectors; i++)
        code = fr_exit_status(
            fr_control_vector_open(adapters->vector_path[i], model, range[0], range[1], &adapters->vector[i]));
    return code;
}

void fr_adapters_close(fr_loaded_adapters *adapters) {
    for (size_t i = 0; i < adapters->count; i++) {
        fr_adapter_close(adapters->opened[i]);
        free(adapters->path[i]);
    }
    for (size_t i = 0; i < adapters->vectors; i++) {
        fr_adapter_close(adapters->vector[i]);
        free(adapters->vector_path[i]);
    }
    *adapters = (fr_loaded_adapters){0};
}

fr_status fr_adapters_use(const fr_loaded_adapters *adapters, const double *scales, fr_session *session) {
    const fr_adapter *used[FR_LOADED_ADAPTERS_MAX + FR_ADAPTERS_MAX];
    double by[FR_LOADED_ADAPTERS_MAX + FR_ADAPTERS_MAX];
    size_t count = adapters->count, all = count + adapters->vectors;
    if (all == 0) return FR_OK;
    for (size_t i = 0; i < all; i++) {
        used[i] = i < count ? adapters->opened[i] : adapters->vector[i - count];
        by[i] = i >= count ? adapters->vector_scale[i - count] : scales ? scales[i] : adapters->scale[i];
    }
    return fr_session_set_adapters(session, used, by, all);
}
