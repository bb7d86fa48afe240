/* Implements forerun synth: writes a model of a given shape with random weights as GGUF. */
#include "forerun_lab.h"
#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/terminal/progress.h"
#include "tools/cli/verbs.h"

static int write_model(const fr_arguments *args, const fr_options *options, fr_progress *progress, fr_writer *writer) {
    const fr_lab_shape shape = {.name = args->text[FR_ARG_SHAPE],
                                .type = args->text[FR_ARG_TYPE],
                                .vocab = (size_t)args->number[FR_ARG_VOCAB],
                                .layers = (size_t)args->number[FR_ARG_LAYERS],
                                .experts = (size_t)args->number[FR_ARG_EXPERTS],
                                .note = args->given[FR_ARG_QUIET] ? NULL : fr_note_line};
    fr_status status = fr_lab_synth(&shape, options, writer->file);
    fr_progress_end(progress);
    if (status == FR_OK) return fr_writer_close(writer);
    fr_writer_abandon(writer);
    return fr_exit_status(status);
}

int fr_verb_synth(const fr_arguments *args) {
    if (!args->given[FR_ARG_SHAPE]) return fr_wrong_usage("synth needs --shape SHAPE");
    if (!args->given[FR_ARG_TYPE]) return fr_wrong_usage("synth needs --type TYPE");
    if (!args->given[FR_ARG_OUT_FILE]) return fr_wrong_usage("synth needs the name of a file to write");
    fr_options *options;
    fr_writer writer;
    fr_progress progress = fr_progress_begin("writing", args->given[FR_ARG_QUIET]);
    int code = fr_loaded_options(&options, args);
    if (code) return code;
    fr_options_set_progress(options, fr_progress_show, &progress);
    code = fr_writer_open(&writer, args->text[FR_ARG_OUT_FILE]);
    if (!code) code = write_model(args, options, &progress, &writer);
    fr_options_free(options);
    return code;
}
