/* Passes log lines to the function that the application has set.
 *
 * In: printf formats, from the thread that called into the library. Out: calls of the log function that the options had
 * when the model, drafter or session was opened. If the options had no log function, lines are dropped. */
#ifndef FR_BASE_LOG_H
#define FR_BASE_LOG_H

#include "forerun.h"

typedef struct fr_log {
    fr_log_fn *fn; /* NULL: lines are dropped */
    void *context;
} fr_log;

/* Logs a line, cut at 511 bytes. Allocates nothing. */
void fr_log_line(const fr_log *log, fr_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
