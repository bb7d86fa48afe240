/* Reports failures: a function returns a status and leaves one error line in its thread.
 *
 * In: a status and a printf format. Out: the status; fr_last_error() gives the line. The line is cut at 511 bytes.
 * Control characters, which a hostile tensor name may contain, are written as '?', so that the output stays one line.
 * fr_fail_also adds a second line, after a line feed, that says what would work instead. */
#ifndef FR_BASE_ERROR_H
#define FR_BASE_ERROR_H

#include "forerun.h"

fr_status fr_fail(fr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a second line to the thread's last error line and returns the status. No argument may point into that last
 * line. */
fr_status fr_fail_also(fr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fails with FR_MEMORY: "out of memory: N bytes for WHAT". */
fr_status fr_fail_memory(const char *what, size_t bytes);

/* Fails with FR_USAGE: "CALL: WHAT is needed, not NULL". */
fr_status fr_fail_null(const char *call, const char *what);

/* Fails with FR_INPUT: the call needs a tokenizer, and the model has none. */
fr_status fr_fail_no_tokenizer(const char *call);

/* Fails like fr_fail, and names the option at fault (fr_last_error_option). */
fr_status fr_fail_about(fr_option option, fr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fails with FR_ABORTED, because the caller's progress function asked to stop. */
fr_status fr_fail_ended(const char *path, uint64_t done, uint64_t total);

/* Carries a failure to another thread, where it becomes fr_last_error(). */
typedef struct fr_failure {
    fr_status status;
    char line[512];
    fr_option about;
} fr_failure;

/* Copies the status that the calling thread's last call returned, and its error line. */
fr_failure fr_failure_keep(fr_status status);

/* Makes a kept failure the calling thread's last one and returns its status. Does nothing if the status is FR_OK. */
fr_status fr_failure_raise(const fr_failure *failure);

/* Returns from the calling function if the call fails. It is a macro because a function can't return from its
 * caller. */
#define FR_TRY(call)                                      \
    do {                                                  \
        fr_status fr_try_status = (call);                 \
        if (fr_try_status != FR_OK) return fr_try_status; \
    } while (0)

#endif
