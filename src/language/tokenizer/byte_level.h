/* Writes bytes as printable characters, as byte-level vocabularies do.
 *
 * The character of a printable byte of Latin-1 is that byte's own character. The other bytes, in ascending order, have
 * the characters from U+0100 on, so a space is "Ġ". Radford et al. 2019, GPT-2. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_BYTE_LEVEL_H
#define FR_SRC_LANGUAGE_TOKENIZER_BYTE_LEVEL_H

#include <stdbool.h>

#include "base/text.h"

/* Writes a byte's character in UTF-8, and gives its length, 1 or 2. */
size_t fr_byte_level_write(unsigned char byte, char out[2]);

/* Converts each character of a text to its byte. `out` has room for text.length bytes. Returns false if some character
 * is not that of a byte. */
bool fr_byte_level_read(fr_text text, char *out, size_t *length);

#endif
