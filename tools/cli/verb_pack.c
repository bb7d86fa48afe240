/* Implements forerun pack: writes a model or a drafter as a GGUF file whose matrices have the layout that the kernels
 * read. */
#include "forerun_lab.h"
#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/terminal/progress.h"
#include "tools/cli/verbs.h"

static int write_packed(const fr_arguments *args, const fr_options *options, fr_progress *progress) {
    fr_writer writer;
    int code = fr_writer_open(&writer, args->text[FR_ARG_OUT_FILE]);
    if (code) return code;
    const char *model = args->text[FR_ARG_MODEL], *drafter = args->text[FR_ARG_DRAFTER];
    fr_status status = args->given[FR_ARG_DRAFTER] ? fr_lab_pack_beside(drafter, model, options, writer.file)
                                                   : fr_lab_pack(model, options, writer.file);
    fr_progress_end(progress);
    if (status == FR_OK) return fr_writer_close(&writer);
    fr_writer_abandon(&writer);
    return fr_exit_status(status);
}

int fr_verb_pack(const fr_arguments *args) {
    if (!args->given[FR_ARG_OUT_FILE]) return fr_wrong_usage("pack needs -o FILE");
    fr_options *options;
    int code = fr_loaded_options(&options, args);
    if (code) return code;
    fr_progress progress = fr_progress_begin("packing", args->given[FR_ARG_QUIET]);
    fr_options_set_progress(options, fr_progress_show, &progress);
    code = write_packed(args, options, &progress);
    fr_options_free(options);
    return code;
}
