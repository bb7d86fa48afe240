/* Wraps a text that comes in pieces between words, for a terminal.
 *
 * In: bytes of UTF-8, in any pieces. Out: the same bytes, with a line end before a word for which the line has no
 * room. A word is shown as it comes. If it turns out too long for its line, it is erased and shown again in the next
 * one. */
#ifndef FR_TOOLS_CLI_TERMINAL_WORD_WRAP_H
#define FR_TOOLS_CLI_TERMINAL_WORD_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes one byte of the text; accepted is what the byte came with. */
typedef void fr_wrap_put(void *context, char byte, bool accepted);

enum { FR_WRAP_WORD = 1024 }; /* bytes of a word that is moved to the next line; a longer one is cut */

typedef struct fr_word_wrap {
    FILE *out;
    size_t columns; /* of the terminal */
    size_t column;  /* where the cursor is */
    char word[FR_WRAP_WORD];
    bool accepted[FR_WRAP_WORD];
    size_t length, width;      /* of the word so far: bytes, columns */
    size_t character, missing; /* of a character that has begun: its first byte in the word, bytes to come */
} fr_word_wrap;

/* Begins a text at the first column of the terminal `out`. Returns false if it is no terminal, or one whose cursor
 * can't be moved; the text is then written as it is. */
bool fr_word_wrap_begin(fr_word_wrap *wrap, FILE *out);

/* Writes the next byte by `put`. */
void fr_word_wrap_feed(fr_word_wrap *wrap, char byte, bool accepted, fr_wrap_put *put, void *context);

/* Writes the beginning of a character that was never completed, at the end of a text. */
void fr_word_wrap_finish(fr_word_wrap *wrap, fr_wrap_put *put, void *context);

#endif
