/* Reads and writes base64 as in RFC 4648, section 4: padding is required, and other characters are not allowed. */
#ifndef FR_TOOLS_SERVE_BASE64_H
#define FR_TOOLS_SERVE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Gives the bytes that a text encodes. The caller frees them. NULL: the text is not base64, or encodes no bytes. */
unsigned char *fr_base64_read(const char *text, size_t length, size_t *size);

/* Gives the base64 text of the bytes with a NUL at its end; the caller frees it. */
char *fr_base64_write(const unsigned char *bytes, size_t size);

#endif
