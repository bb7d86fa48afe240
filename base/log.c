/* Writes log lines: see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void fr_log_line(const fr_log *log, fr_log_level level, const char *format, ...) {
    char line[512];
    if (!log->fn) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    log->fn(log->context, level, line);
}
