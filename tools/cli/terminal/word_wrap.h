/* Wraps a text for a terminal while the text is still being written. Lines are broken between words.
 *
 * In: bytes of UTF-8, in any pieces. Out: the same bytes, with a line end before each word that does not fit into its
 * line. The bytes of a word are shown at once. If the word turns out to be too long for the line, it is erased and
 * shown again on the next line. */
#ifndef FR_TOOLS_CLI_TERMINAL_WORD_WRAP_H
#define FR_TOOLS_CLI_TERMINAL_WORD_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes one byte of the text. accepted: the flag that was passed with this byte. */
typedef void fr_wrap_put(void *context, char byte, bool accepted);

/* A word of up to this many bytes can be moved to the next line. A longer word is split. */
enum { FR_WRAP_WORD = 1024 };

typedef struct fr_word_wrap {
    FILE *out;
    size_t columns; /* width of the terminal */
    size_t column;  /* column of the cursor */
    char word[FR_WRAP_WORD];
    bool accepted[FR_WRAP_WORD];
    size_t length, width; /* number of bytes, and number of columns, of the word so far */
    /* character: offset of the last character of `word`. missing: number of bytes of this character that have not come
     * yet */
    size_t character, missing;
} fr_word_wrap;

/* Begins a text at the first column of the terminal `out`. Returns false if `out` is not a terminal, or if its cursor
 * can't be moved. The text must then be written without wrapping. */
bool fr_word_wrap_begin(fr_word_wrap *wrap, FILE *out);

/* Adds the next byte of the text. Calls `put` to write bytes. */
void fr_word_wrap_feed(fr_word_wrap *wrap, char byte, bool accepted, fr_wrap_put *put, void *context);

/* Ends a text. If its last character is incomplete, its bytes are written. */
void fr_word_wrap_finish(fr_word_wrap *wrap, fr_wrap_put *put, void *context);

#endif
