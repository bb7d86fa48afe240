/* Text that grows as it is appended to.
 *
 * In: bytes. Out: all of them, in order. Appending reports nothing: a failure (no memory, or more than FR_MAX_TEXT
 * bytes) drops what follows and stays, and one call at the end asks for it. A zeroed struct is an empty text. */
#ifndef FR_BASE_TEXT_BUFFER_H
#define FR_BASE_TEXT_BUFFER_H

#include "forerun.h"

#define FR_MAX_TEXT ((size_t)1 << 30)

typedef struct fr_text_buffer {
    char *bytes; /* NUL-terminated once something was appended, even if of length 0 */
    size_t length, capacity;
    fr_status status;
} fr_text_buffer;

void fr_text_append(fr_text_buffer *buffer, const void *bytes, size_t length);
void fr_text_append_string(fr_text_buffer *buffer, const char *string);

/* FR_OK when everything appended so far is there; otherwise the failure, with a line that says whose text it is. */
fr_status fr_text_check(const fr_text_buffer *buffer, const char *what);

/* Gives the bytes away as a NUL-terminated string for the caller to free, and leaves the buffer empty. */
fr_status fr_text_take(fr_text_buffer *buffer, const char *what, char **bytes, size_t *length);

void fr_text_free(fr_text_buffer *buffer);

#endif
