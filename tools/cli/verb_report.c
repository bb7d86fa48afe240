/* Implements forerun report: turns a trace into one HTML page with plots. */
#include "tools/cli/loaded.h"
#include "tools/cli/page.h"
#include "tools/cli/verbs.h"

int fr_verb_report(const fr_arguments *args) {
    const char *trace = args->text[FR_ARG_FILE], *page = args->text[FR_ARG_OUT_FILE];
    if (!trace) return fr_wrong_usage("report needs a trace: forerun report TRACE -o FILE");
    if (!page) return fr_wrong_usage("report needs -o FILE");
    fr_prompt file;
    fr_record record = {0};
    int code = fr_prompt_read(&file, args);
    if (!code) code = fr_record_read(&record, trace, file.bytes, file.length);
    if (!code && record.cut_off && !args->given[FR_ARG_QUIET])
        fr_note("%s: the last line is not complete and was left out", trace);
    fr_writer writer;
    if (!code) code = fr_writer_open(&writer, page);
    if (!code) {
        fr_page_write(&record, writer.file);
        code = fr_writer_close(&writer);
    }
    fr_record_free(&record);
    fr_prompt_free(&file);
    return code;
}
