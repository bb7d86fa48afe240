/* Base64 of RFC 4648, section 4.
 *
 * In: text, its padding there or not. Out: the bytes that it stands for. */
#ifndef FR_BASE_BASE64_H
#define FR_BASE_BASE64_H

#include "base/text.h"

/* bytes has room for three quarters of text.length. False: some character is no digit, or a lone one is left over. */
bool fr_base64_decode(fr_text text, char *bytes, size_t *size);

#endif
