/* The one way a failure travels: a status is returned, one line stays behind in the thread.
 *
 * In: a status and a printf format. Out: the status; fr_last_error() gives the line. The line is cut at 511 bytes, and
 * control characters (a hostile tensor name, say) are written as '?', so that it stays one line. A second one, of what
 * would do instead, may follow it (fr_fail_also), a line feed between. */
#ifndef FR_BASE_ERROR_H
#define FR_BASE_ERROR_H

#include "forerun.h"

fr_status fr_fail(fr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds the second line to the thread's last failure, which is none of the arguments; returns that failure's status. */
fr_status fr_fail_also(fr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "out of memory: N bytes for WHAT", FR_MEMORY. */
fr_status fr_fail_memory(const char *what, size_t bytes);

/* "CALL: WHAT is needed, not NULL", FR_USAGE. */
fr_status fr_fail_null(const char *call, const char *what);

/* FR_INPUT: a call for a tokenizer was given the one of a model without. */
fr_status fr_fail_no_tokenizer(const char *call);

/* fr_fail, about an option (fr_last_error_option). */
fr_status fr_fail_about(fr_option option, fr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* FR_ABORTED: who was told of progress said so. */
fr_status fr_fail_ended(const char *path, uint64_t done, uint64_t total);

/* A failure on its way to another thread, whose fr_last_error() it is to be. */
typedef struct fr_failure {
    fr_status status;
    char line[512];
    fr_option about;
} fr_failure;

/* Keeps what the calling thread's last call returned, with its line. */
fr_failure fr_failure_keep(fr_status status);

/* Fails with it in the calling thread; FR_OK is nothing. */
fr_status fr_failure_raise(const fr_failure *failure);

/* Hands a failure on. A macro because a function can't return from its caller. */
#define FR_TRY(call)                                   \
    do {                                               \
        fr_status fr_try_status = (call);              \
        if (fr_try_status != FR_OK) return fr_try_status; \
    } while (0)

#endif
