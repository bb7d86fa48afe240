/* Reads a user's turn: one line of input, or several.
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
    char *bytes; /* NUL-terminated; it may also contain NULs */
    size_t length, capacity;
    bool command; /* the turn is a command, and the bytes are its line */
} fr_turn;

/* Puts this text into the next turn, to be edited. Returns false if lines can't be edited. */
bool fr_turn_begin_with(fr_line_input *input, const char *text);

/* Reads the next turn, which replaces the last one. The turn is empty if one of its lines is dropped. Returns false if
 * the input ends before a turn begins; a turn that the end of input cuts off still counts. */
bool fr_turn_read(fr_turn *turn, fr_line_input *input);
void fr_turn_free(fr_turn *turn);

#endif
