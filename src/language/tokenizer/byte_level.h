/* Writes bytes as printable characters, as byte-level vocabularies do.
 *
 * Printable characters of Latin-1 stand for themselves; the other bytes, in order, are U+0100 and on: a space is "Ġ".
 * Radford et al. 2019, GPT-2. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_BYTE_LEVEL_H
#define FR_SRC_LANGUAGE_TOKENIZER_BYTE_LEVEL_H

#include <stdbool.h>

#include "base/text.h"

/* Writes a byte's character in UTF-8, and gives its length, 1 or 2. */
size_t fr_byte_level_write(unsigned char byte, char out[2]);

/* Converts a text to the bytes for which its characters stand; `out` has room for text.length bytes. If some character
 * stands for no byte, returns false. */
bool fr_byte_level_read(fr_text text, char *out, size_t *length);

#endif
