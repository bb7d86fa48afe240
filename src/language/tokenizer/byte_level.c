/* Converts between bytes and printable characters (byte_level.h). */
#include "src/language/tokenizer/byte_level.h"

#define OTHERS 68 /* number of bytes whose character is not their own Latin-1 character: 0 to 32, 127 to 160, 173 */

static bool stands_for_itself(unsigned byte) {
    return (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
}

/* Gives the n-th of the bytes whose character is not their own Latin-1 character. */
static unsigned other(unsigned n) {
    return n < 33 ? n : n < OTHERS - 1 ? n + 127 - 33 : 173;
}

size_t fr_byte_level_write(unsigned char byte, char out[2]) {
    unsigned character = byte;
    if (!stands_for_itself(byte)) {
        unsigned n = byte < 33 ? byte : byte == 173 ? OTHERS - 1 : byte - (127u - 33);
        character = 256 + n;
    }
    out[0] = (char)(character < 128 ? character : 0xC0 | character >> 6);
    out[1] = (char)(0x80 | (character & 0x3F));
    return character < 128 ? 1 : 2;
}

bool fr_byte_level_read(fr_text text, char *out, size_t *length) {
    *length = 0;
    for (size_t at = 0; at < text.length;) {
        unsigned lead = (unsigned char)text.bytes[at++], character = lead;
        if (lead >= 0x80) {
            if (lead < 0xC2 || lead > 0xC5 || at == text.length) return false;
            character = (lead & 0x1F) << 6 | ((unsigned char)text.bytes[at++] & 0x3F);
        }
        if (character >= 256 + OTHERS || (character < 256 && !stands_for_itself(character))) return false;
        out[(*length)++] = (char)(character < 256 ? character : other(character - 256));
    }
    return true;
}
