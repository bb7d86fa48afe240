/* Keeps each thread's last error line, and the names of statuses.
 *
 * In: a status and a printf format. Out: one printable line in thread-local memory, for fr_last_error(). */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SIZE 512

static _Thread_local char last_error[LINE_SIZE];
static _Thread_local fr_option last_about = FR_OPT_COUNT;
_Static_assert(sizeof((fr_failure){0}.line) == LINE_SIZE, "a line fits a failure");

const char *fr_last_error(void) {
    return last_error;
}

fr_option fr_last_error_option(void) {
    return last_about;
}

const char *fr_status_name(fr_status status) {
    static const char *const names[] = {"ok",      "input",   "usage",   "memory", "numeric",
                                        "machine", "unbuilt", "aborted", "lost"};
    return (size_t)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

void fr_free(void *memory) {
    free(memory);
}

/* Replaces the characters that terminals act on: C0 controls, DEL, and C1 controls. C1 controls are U+0080 to U+009F;
 * in UTF-8 they are the byte C2 and a byte from 80 to 9F. */
static void make_printable(unsigned char *line) {
    for (size_t i = 0; line[i]; i++) {
        bool c1 = line[i] == 0xC2 && line[i + 1] >= 0x80 && line[i + 1] <= 0x9F;
        if (c1) line[i + 1] = '?';
        if (c1 || line[i] < 0x20 || line[i] == 0x7F) line[i] = '?';
    }
}

/* Drops the incomplete UTF-8 character that a line may end with after vsnprintf has cut it. */
static void drop_cut_character(unsigned char *line) {
    size_t length = strlen((const char *)line), first = length - 1;
    while (first > 0 && (line[first] & 0xC0) == 0x80) first--;
    size_t wanted = line[first] >= 0xF0 ? 4 : line[first] >= 0xE0 ? 3 : line[first] >= 0xC0 ? 2 : 1;
    if (length - first < wanted) line[first] = 0;
}

/* Formats a printable line, cut to `size` bytes. */
static void write_line(char *line, size_t size, const char *format, va_list arguments) {
    int length = vsnprintf(line, size, format, arguments);
    if (length < 0) snprintf(line, size, "failed, and the reason could not be written");
    if (length >= (int)size) drop_cut_character((unsigned char *)line);
    make_printable((unsigned char *)line);
}

static void fail(fr_option about, const char *format, va_list arguments) {
    char line[LINE_SIZE]; /* a separate buffer, because the arguments may point into last_error */
    write_line(line, sizeof line, format, arguments);
    memcpy(last_error, line, sizeof line);
    last_about = about;
}

fr_status fr_fail(fr_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fail(FR_OPT_COUNT, format, arguments);
    va_end(arguments);
    return status;
}

fr_status fr_fail_about(fr_option option, fr_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fail(option, format, arguments);
    va_end(arguments);
    return status;
}

fr_status fr_fail_also(fr_status status, const char *format, ...) {
    size_t length = strlen(last_error);
    if (length + 2 >= LINE_SIZE) return status;
    last_error[length++] = '\n';
    va_list arguments;
    va_start(arguments, format);
    write_line(last_error + length, LINE_SIZE - length, format, arguments);
    va_end(arguments);
    return status;
}

fr_status fr_fail_memory(const char *what, size_t bytes) {
    return fr_fail(FR_MEMORY, "out of memory: %zu bytes for %s", bytes, what);
}

fr_status fr_fail_null(const char *call, const char *what) {
    return fr_fail(FR_USAGE, "%s: %s is needed, not NULL", call, what);
}

fr_status fr_fail_no_tokenizer(const char *call) {
    return fr_fail(FR_INPUT, "%s: there is no tokenizer, as the model has none", call);
}

fr_status fr_fail_ended(const char *path, uint64_t done, uint64_t total) {
    return fr_fail(FR_ABORTED, "%s: aborted with %.1f of %.1f MB done", path, (double)done / 1e6, (double)total / 1e6);
}

fr_failure fr_failure_keep(fr_status status) {
    fr_failure failure = {.status = status, .about = last_about};
    if (status != FR_OK) memcpy(failure.line, last_error, sizeof failure.line);
    return failure;
}

fr_status fr_failure_raise(const fr_failure *failure) {
    if (failure->status == FR_OK) return FR_OK;
    memcpy(last_error, failure->line, sizeof last_error);
    last_about = failure->about;
    return failure->status;
}
