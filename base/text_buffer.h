/* Grows a text as bytes are appended to it.
 *
 * In: bytes. Out: all of them, in order. Appending does not report failures. After a failure (no memory, or more than
 * FR_TEXT_MAX bytes) all further bytes are dropped, and one check at the end reports the failure. A zeroed struct is an
 * empty text. */
#ifndef FR_BASE_TEXT_BUFFER_H
#define FR_BASE_TEXT_BUFFER_H

#include "forerun.h"

#define FR_TEXT_MAX ((size_t)1 << 30)

typedef struct fr_text_buffer {
    char *bytes; /* NUL-terminated after the first call that appends, even if it appended an empty text */
    size_t length, capacity;
    fr_status status;
} fr_text_buffer;

void fr_text_append(fr_text_buffer *buffer, const void *bytes, size_t length);
void fr_text_append_string(fr_text_buffer *buffer, const char *string);

/* Returns FR_OK if everything appended so far is in the buffer. Otherwise returns the failure, with a line that names
 * `what`. */
fr_status fr_text_check(const fr_text_buffer *buffer, const char *what);

/* Hands the bytes over as a NUL-terminated string that the caller frees, and leaves the buffer empty. */
fr_status fr_text_take(fr_text_buffer *buffer, const char *what, char **bytes, size_t *length);

void fr_text_free(fr_text_buffer *buffer);

#endif
