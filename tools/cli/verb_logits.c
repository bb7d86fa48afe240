/* Implements forerun logits: writes logits as raw float32. They are a prompt's logits, or those of the drafter's steps,
 * each of which takes the draft before it as its input. */
#include <string.h>

#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/verbs.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is the memory, so that must be little-endian too");

static fr_status write_rows(void *context, const float *logits, size_t rows, size_t vocab) {
    const fr_writer *writer = context;
    fwrite(logits, sizeof(*logits) * vocab, rows, writer->file); /* a write that fails ends the command */
    return FR_OK;
}

static fr_status run(const fr_loaded *loaded, const fr_arguments *args, const fr_prompt *prompt, fr_writer *writer) {
    bool last = args->given[FR_ARG_ROWS] && strcmp(args->text[FR_ARG_ROWS], "last") == 0;
    size_t first = last ? prompt->count - 1 : 0;
    if (args->given[FR_ARG_DRAFT_STEPS]) {
        return fr_session_draft_logits(loaded->session, prompt->ids, prompt->count,
                                       (size_t)args->number[FR_ARG_DRAFT_STEPS], write_rows, writer);
    }
    return fr_session_logits(loaded->session, prompt->ids, prompt->count, first, write_rows, writer);
}

static int check(const fr_arguments *args) {
    if (!args->given[FR_ARG_OUT_FILE]) return fr_wrong_usage("logits needs -o FILE");
    if (!args->given[FR_ARG_DRAFT_STEPS]) {
        bool drafts = args->given[FR_ARG_DRAFTER] || args->given[FR_ARG_SPEC_TYPE];
        return drafts ? fr_wrong_usage("-md and --spec-type go with --draft-steps: the model's logits need no drafter")
                      : 0;
    }
    if (!args->uses_drafter) {
        return fr_wrong_usage("--draft-steps and --spec-type %s exclude each other", args->text[FR_ARG_SPEC_TYPE]);
    }
    if (args->given[FR_ARG_ROWS]) return fr_wrong_usage("--rows is for the model's logits, not with --draft-steps");
    if (args->given[FR_ARG_IDS] && args->id_count < 2) {
        return fr_wrong_usage("--draft-steps needs two ids or more: the target runs all but the last");
    }
    return 0;
}

int fr_verb_logits(const fr_arguments *args) {
    int code = check(args);
    if (code) return code;
    fr_loaded loaded = {0};
    fr_prompt prompt = {0};
    fr_writer writer;
    code = fr_writer_open(&writer, args->text[FR_ARG_OUT_FILE]);
    if (code) return code;
    code = fr_prompt_read(&prompt, args);
    if (!code) code = fr_loaded_open(&loaded, args);
    if (!code) code = fr_prompt_render(&prompt, &loaded, args);
    if (!code) code = fr_prompt_tokenize(&prompt, &loaded, args);
    if (!code) code = fr_loaded_start(&loaded, args, prompt.count, args->number[FR_ARG_DRAFT_STEPS]);
    if (!code) code = fr_exit_status(run(&loaded, args, &prompt, &writer));
    if (!code)
        code = fr_writer_close(&writer);
    else
        fr_writer_abandon(&writer);
    fr_loaded_close(&loaded);
    fr_prompt_free(&prompt);
    return code;
}
