/* forerun report: turns a trace into one HTML page with plots. */
#include "tools/cli/loaded.h"
#include "tools/cli/page.h"
#include "tools/cli/verbs.h"

static int write_page(const fr_record *record, const char *path) {
    fr_writer writer;
    int code = fr_writer_open(&writer, path);
    if (code) return code;
    fr_page_write(record, writer.file);
    return fr_writer_close(&writer);
}

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
    if (!code) code = write_page(&record, page);
    fr_record_free(&record);
    fr_prompt_free(&file);
    return code;
}
