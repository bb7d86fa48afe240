/* What a user says in turn: one line of input, or several.
 *
 * In: lines. Out: the text of a turn, or a command.
 *
 *     /word ...        a command, in one line
 *     //text           the text "/text"
 *     text\            goes on in the next line
 *     """text          a block: everything up to a line that ends in """, as it is
 *     text"""
 *
 * The quotes may stand alone in their lines; then these are no lines of the text. Several lines that were pasted at
 * once are a text as they are. */
#ifndef FR_TOOLS_CLI_TURN_INPUT_H
#define FR_TOOLS_CLI_TURN_INPUT_H

#include "tools/cli/terminal/line_input.h"

typedef struct fr_turn {
    char *bytes; /* NUL-terminated, whatever NULs it has */
    size_t length, capacity;
    bool command; /* the bytes are those of its line */
} fr_turn;

/* The next turn begins with this text, to be edited; false where lines can't be. */
bool fr_turn_begin_with(fr_line_input *input, const char *text);

/* Reads the next turn in the place of the last one, which may be empty: it is where one of its lines is dropped. False
 * when the input ends before it; a turn that the end of the input cuts short is one. */
bool fr_turn_read(fr_turn *turn, fr_line_input *input);
void fr_turn_free(fr_turn *turn);

#endif
