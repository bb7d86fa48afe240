/* Reads a text byte by byte or character by character, for the languages in which grammars are written.
 *
 * In: a text of any bytes. Out: bytes and characters at the cursor's offset. The offset moves past the bytes that are
 * taken. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_CURSOR_H
#define FR_SRC_LANGUAGE_GRAMMAR_CURSOR_H

#include "base/text.h"

typedef struct fr_cursor {
    fr_text text;
    size_t at;
} fr_cursor;

/* fr_cursor_peek gives the next byte, or -1 at the end. fr_cursor_take takes the next byte if it equals `byte`;
 * otherwise it returns false. */
int fr_cursor_peek(const fr_cursor *cursor);
bool fr_cursor_take(fr_cursor *cursor, char byte);

/* Takes a number of exactly `digits` hexadecimal digits, at most 8. If a digit is missing, returns false, and the
 * cursor is at the place of that digit. */
bool fr_cursor_take_hex(fr_cursor *cursor, size_t digits, uint32_t *number);

/* Takes a character of UTF-8. If no valid character follows, takes nothing and returns false. */
bool fr_cursor_take_character(fr_cursor *cursor, uint32_t *code);

#endif
