/* A place in a text that is read character by character, for the languages that grammars are written in.
 *
 * In: a text of any bytes. Out: bytes and characters at the place, which moves behind what was taken. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_CURSOR_H
#define FR_SRC_LANGUAGE_GRAMMAR_CURSOR_H

#include "base/text.h"

typedef struct fr_cursor {
    fr_text text;
    size_t at;
} fr_cursor;

/* The byte at hand, -1 at the end; whether it is this one, which then is taken. */
int fr_cursor_peek(const fr_cursor *cursor);
bool fr_cursor_take(fr_cursor *cursor, char byte);

/* A number of so many hexadecimal digits, at most 8; false: one is missing, and the place is where. */
bool fr_cursor_take_hex(fr_cursor *cursor, size_t digits, uint32_t *number);

/* A character of UTF-8; false, and nothing is taken: there is none. */
bool fr_cursor_take_character(fr_cursor *cursor, uint32_t *code);

#endif
