/* Reads a user's turn: one line of input, or several.
 *
 * In: lines. Out: the text of a turn, or a command.
 *
 *     /word ...        a command, in one line
 *     //text           the text "/text"
 *     text\            goes on in the next line
 *     """text          a block: all lines, unchanged, up to one that ends in """
 *     text"""
 *
 * If a line consists only of """, it adds no empty line to the text. Several lines that were pasted at once become the
 * turn's text unchanged. */
#ifndef FR_TOOLS_CLI_TURN_INPUT_H
#define FR_TOOLS_CLI_TURN_INPUT_H

#include "tools/cli/terminal/line_input.h"

typedef struct fr_turn {
    char *bytes; /* NUL-terminated; it may also contain NULs */
    size_t length, capacity;
    bool command; /* the turn is a command, and `bytes` holds its line */
} fr_turn;

/* Puts this text into the next turn, so that the person can edit it. Returns false if lines can't be edited. */
bool fr_turn_begin_with(fr_line_input *input, const char *text);

/* Reads the next turn into *turn. If the person drops a line of the turn, the turn is empty. If the input ends within
 * a turn, that turn is still returned. The function returns false if the input ends before a turn begins. */
bool fr_turn_read(fr_turn *turn, fr_line_input *input);
void fr_turn_free(fr_turn *turn);

#endif
