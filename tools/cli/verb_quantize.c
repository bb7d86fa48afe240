/* Implements forerun quantize: writes a model as GGUF with its matrices in another type. If the model has a vision
 * tower, the tower gets a file of its own in the same folder. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/terminal/progress.h"
#include "tools/cli/verbs.h"

static int write_file(const char *model, const fr_lab_quantization *how, const fr_options *options,
                      fr_progress *progress, const char *path) {
    fr_writer writer;
    int code = fr_writer_open(&writer, path);
    if (code) return code;
    fr_status status = fr_lab_quantize(model, how, options, writer.file);
    fr_progress_end(progress);
    if (status == FR_OK) return fr_writer_close(&writer);
    fr_writer_abandon(&writer);
    return fr_exit_status(status);
}

static int write_model(const fr_arguments *args, const fr_options *options, fr_progress *progress) {
    fr_loaded_adapters adapters = {0};
    int code = fr_adapters_read(&adapters, args);
    const fr_lab_quantization how = {
        .type = args->text[FR_ARG_TYPE],
        .overrides = args->tensor_types,
        .override_count = args->tensor_type_count,
        .output_type = args->text[FR_ARG_OUTPUT_TYPE],
        .imatrix = args->text[FR_ARG_IMATRIX],
        .embedding_type = args->text[FR_ARG_EMBEDDING_TYPE],
        .pure = args->given[FR_ARG_PURE],
        .note = args->given[FR_ARG_QUIET] ? NULL : fr_note_line,
        .drafter = args->text[FR_ARG_DRAFTER],
        .adapters = (const char *const *)adapters.path,
        .adapter_scales = adapters.scale,
        .adapter_count = adapters.count,
    };
    if (!code) code = write_file(args->text[FR_ARG_MODEL], &how, options, progress, args->text[FR_ARG_OUT_FILE]);
    fr_adapters_close(&adapters);
    return code;
}

/* Gives the path of the vision tower's file, which is mmproj-FILE in the folder of FILE. Returns NULL if FILE is not a
 * regular file, because the tower's file then has no folder. */
static char *tower_path(const char *file) {
    struct stat found;
    if (strcmp(file, "-") == 0 || (stat(file, &found) == 0 && !S_ISREG(found.st_mode))) return NULL;
    const char *slash = strrchr(file, '/');
    size_t folder = slash ? (size_t)(slash + 1 - file) : 0, size = strlen(file) + sizeof "mmproj-";
    char *path = fr_resize(NULL, size, 1);
    snprintf(path, size, "%.*smmproj-%s", (int)folder, file, file + folder);
    return path;
}

/* Writes the vision tower to the folder of the model's output file. The tower comes from MODEL's folder, or from the
 * file that --mmproj names. It is written before the model, because it is small. *path: the tower's file, which the
 * caller frees; NULL: there is none. */
static int write_tower(const fr_arguments *args, const fr_options *options, fr_progress *progress, char **path) {
    const char *given = args->text[FR_ARG_MMPROJ], *type = args->text[FR_ARG_MMPROJ_TYPE];
    bool found = given != NULL, none = type && strcasecmp(type, "none") == 0;
    if (!given && !args->given[FR_ARG_DRAFTER]) {
        int code = fr_exit_status(fr_lab_find_tower(args->text[FR_ARG_MODEL], &found));
        if (code) return code;
    }
    if (!found && type && !none)
        return fr_bad_input("--mmproj-type %s: %s has no vision tower, and --mmproj gives none", type,
                            args->text[FR_ARG_MODEL]);
    if (!found) return 0;
    *path = none ? NULL : tower_path(args->text[FR_ARG_OUT_FILE]);
    if (!*path) {
        if (!args->given[FR_ARG_QUIET])
            fr_note("the vision tower is not in the file, which sees no pictures alone: give a tower with --mmproj, or "
                    "show pictures to the folder itself");
        return 0;
    }
    const fr_lab_quantization how = {.type = type ? type : "f16",
                                     .pure = args->given[FR_ARG_PURE],
                                     .note = args->given[FR_ARG_QUIET] ? NULL : fr_note_line,
                                     .tower = !given};
    return write_file(given ? given : args->text[FR_ARG_MODEL], &how, options, progress, *path);
}

/* Writes the model's file and the tower's file. If the model's file can't be written, the tower's file is removed
 * again, except if it existed before. */
static int write_both(const fr_arguments *args, const fr_options *options, fr_progress *progress) {
    char *tower = NULL, *place = tower_path(args->text[FR_ARG_OUT_FILE]);
    bool was_there = place && access(place, F_OK) == 0;
    int code = write_tower(args, options, progress, &tower);
    if (!code) {
        code = write_model(args, options, progress);
        if (code && tower && !was_there) remove(tower);
        if (!code && tower && !args->given[FR_ARG_QUIET])
            fr_note("the vision tower is in %s: give it with --mmproj", tower);
    }
    free(tower);
    free(place);
    return code;
}

int fr_verb_quantize(const fr_arguments *args) {
    if (!args->given[FR_ARG_TYPE]) return fr_wrong_usage("quantize needs --type TYPE");
    if (!args->given[FR_ARG_OUT_FILE]) return fr_wrong_usage("quantize needs -o FILE");
    fr_options *options;
    fr_progress progress = fr_progress_begin("quantizing", args->given[FR_ARG_QUIET]);
    int code = fr_loaded_options(&options, args);
    if (!code) {
        fr_options_set_progress(options, fr_progress_show, &progress);
        code = write_both(args, options, &progress);
    }
    fr_options_free(options);
    return code;
}
