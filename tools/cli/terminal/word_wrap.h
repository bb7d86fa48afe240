/* Wraps a text for a terminal, while the text comes in pieces. Lines are broken between words.
 *
 * In: bytes of UTF-8, in any pieces. Out: the same bytes, with a line end before each word that does not fit into its
 * line. A word is shown as its bytes come. If it turns out to be too long for the line, it is erased there and shown
 * again on the next line. */
#ifndef FR_TOOLS_CLI_TERMINAL_WORD_WRAP_H
#define FR_TOOLS_CLI_TERMINAL_WORD_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes one byte of the text. accepted: the flag that was passed with this byte. */
typedef void fr_wrap_put(void *context, char byte, bool accepted);

/* A word of up to this many bytes can be moved to the next line; a longer one is split. */
enum { FR_WRAP_WORD = 1024 };

typedef struct fr_word_wrap {
    FILE *out;
    size_t columns; /* width of the terminal */
    size_t column;  /* column of the cursor */
    char word[FR_WRAP_WORD];
    bool accepted[FR_WRAP_WORD];
    size_t length, width; /* bytes and columns of the word so far */
    /* character: offset of the last character of `word`; missing: number of bytes of this character that are still to
     * come */
    size_t character, missing;
} fr_word_wrap;

/* Begins a text at the first column of the terminal `out`. Returns false if `out` is not a terminal, or its cursor
 * can't be moved; the text must then be written without wrapping. */
bool fr_word_wrap_begin(fr_word_wrap *wrap, FILE *out);

/* Adds the next byte of the text, and writes bytes by `put`. */
void fr_word_wrap_feed(fr_word_wrap *wrap, char byte, bool accepted, fr_wrap_put *put, void *context);

/* Ends a text: writes the beginning of a character that was never completed. */
void fr_word_wrap_finish(fr_word_wrap *wrap, fr_wrap_put *put, void *context);

#endif
