/* Decodes Base64 (RFC 4648, section 4).
 *
 * In: text, with or without its padding. Out: the decoded bytes. */
#ifndef FR_BASE_BASE64_H
#define FR_BASE_BASE64_H

#include "base/text.h"

/* Decodes text. `bytes` has room for three quarters of text.length. Returns false if a character is no Base64 digit,
 * or if a single digit is left over at the end. */
bool fr_base64_decode(fr_text text, char *bytes, size_t *size);

#endif
