/* Base64 of RFC 4648, section 4: with its padding, and nothing else between. */
#ifndef FR_TOOLS_SERVE_BASE64_H
#define FR_TOOLS_SERVE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes that a text stands for; free. NULL: it is no such text, or stands for none. */
unsigned char *fr_base64_read(const char *text, size_t length, size_t *size);

/* The text of bytes, with a NUL; free. */
char *fr_base64_write(const unsigned char *bytes, size_t size);

#endif
