/* Reads bytes and characters of a text (cursor.h). */
#include "src/language/grammar/cursor.h"

#include <utf8proc.h>

int fr_cursor_peek(const fr_cursor *c) {
    return c->at < c->text.length ? (unsigned char)c->text.bytes[c->at] : -1;
}

bool fr_cursor_take(fr_cursor *c, char byte) {
    if (fr_cursor_peek(c) != (unsigned char)byte) return false;
    c->at++;
    return true;
}

bool fr_cursor_take_hex(fr_cursor *c, size_t digits, uint32_t *number) {
    *number = 0;
    for (size_t i = 0; i < digits; i++, c->at++) {
        int byte = fr_cursor_peek(c), low = byte | 0x20;
        bool letter = low >= 'a' && low <= 'f';
        if (!letter && !(byte >= '0' && byte <= '9')) return false;
        *number = *number * 16 + (uint32_t)(letter ? low - 'a' + 10 : byte - '0');
    }
    return true;
}

bool fr_cursor_take_character(fr_cursor *c, uint32_t *code) {
    utf8proc_int32_t read;
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)c->text.bytes + c->at;
    utf8proc_ssize_t length = utf8proc_iterate(bytes, (utf8proc_ssize_t)(c->text.length - c->at), &read);
    if (length < 1) return false;
    *code = (uint32_t)read;
    c->at += (size_t)length;
    return true;
}
