/* Implements forerun quantize: writes a model as GGUF with its matrices in another type. */
#include "forerun_lab.h"
#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/terminal/progress.h"
#include "tools/cli/verbs.h"

static int write_model(const fr_arguments *args, const fr_options *options, fr_progress *progress, fr_writer *writer) {
    fr_lab_quantization how = {
        .type = args->text[FR_ARG_TYPE],
        .overrides = args->tensor_types,
        .override_count = args->tensor_type_count,
        .output_type = args->text[FR_ARG_OUTPUT_TYPE],
        .imatrix = args->text[FR_ARG_IMATRIX],
        .embedding_type = args->text[FR_ARG_EMBEDDING_TYPE],
        .pure = args->given[FR_ARG_PURE],
        .note = args->given[FR_ARG_QUIET] ? NULL : fr_note_line,
        .drafter = args->text[FR_ARG_DRAFTER],
    };
    fr_status status = fr_lab_quantize(args->text[FR_ARG_MODEL], &how, options, writer->file);
    fr_progress_end(progress);
    if (status == FR_OK) return fr_writer_close(writer);
    fr_writer_abandon(writer);
    return fr_exit_status(status);
}

int fr_verb_quantize(const fr_arguments *args) {
    if (!args->given[FR_ARG_TYPE]) return fr_wrong_usage("quantize needs --type TYPE");
    if (!args->given[FR_ARG_OUT_FILE]) return fr_wrong_usage("quantize needs -o FILE");
    fr_options *options;
    fr_writer writer;
    fr_progress progress = fr_progress_begin("quantizing", args->given[FR_ARG_QUIET]);
    int code = fr_loaded_options(&options, args);
    if (!code) {
        fr_options_set_progress(options, fr_progress_show, &progress);
        code = fr_writer_open(&writer, args->text[FR_ARG_OUT_FILE]);
        if (!code) code = write_model(args, options, &progress, &writer);
    }
    fr_options_free(options);
    return code;
}
