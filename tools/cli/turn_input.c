/* Reads turns from lines (turn_input.h). */
#include "tools/cli/turn_input.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"

#define PROMPT  "> "
#define GOES_ON ". "

static const char quotes[] = "\"\"\"";
enum { QUOTES = sizeof quotes - 1 };

static void append(fr_turn *turn, const char *bytes, size_t length) {
    if (turn->capacity - turn->length <= length) {
        turn->capacity = 2 * turn->capacity + length + 256;
        turn->bytes = fr_resize(turn->bytes, turn->capacity, 1);
    }
    memcpy(turn->bytes + turn->length, bytes, length);
    turn->length += length;
    turn->bytes[turn->length] = '\0';
}

/* Reads another line of a turn. Returns false if the input has no more lines, or if the person has dropped the turn. */
static bool read_more(fr_turn *turn, fr_line_input *input) {
    fr_line got = fr_line_input_read(input, GOES_ON);
    if (got == FR_LINE_DROPPED) turn->length = 0;
    return got == FR_LINE_TYPED;
}

static bool ends_block(const char *line, size_t length) {
    return length >= QUOTES && memcmp(line + length - QUOTES, quotes, QUOTES) == 0;
}

/* Reads the rest of a block, which is text between two """. line, length: the text after the opening """. */
static void read_block(fr_turn *turn, fr_line_input *input, const char *line, size_t length) {
    bool first = true; /* no line of the text was read yet */
    for (bool opening = true;; opening = false) {
        bool last = ends_block(line, length);
        if (last) length -= QUOTES;
        if (length > 0 || (!opening && !last)) {
            if (!first) append(turn, "\n", 1);
            append(turn, line, length);
            first = false;
        }
        if (last || !read_more(turn, input)) return;
        line = input->line;
        length = input->length;
    }
}

/* Reads a line. If the line ends with a backslash, reads the next line too, and so on. */
static void read_lines(fr_turn *turn, fr_line_input *input, const char *line, size_t length) {
    for (;;) {
        bool more = length > 0 && line[length - 1] == '\\';
        append(turn, line, length - more);
        if (!more || !read_more(turn, input)) return;
        append(turn, "\n", 1);
        line = input->line;
        length = input->length;
    }
}

bool fr_turn_begin_with(fr_line_input *input, const char *text) {
    bool command = text[0] == '/' && !strchr(text, '\n');
    char *line = fr_resize(NULL, strlen(text) + 2, 1);
    snprintf(line, strlen(text) + 2, "%s%s", command ? "/" : "", text);
    bool edits = fr_line_input_begin_with(input, line);
    free(line);
    return edits;
}

bool fr_turn_read(fr_turn *turn, fr_line_input *input) {
    fr_line got = fr_line_input_read(input, PROMPT);
    const char *line = input->line;
    size_t length = input->length;
    turn->length = 0;
    turn->command = false;
    if (got != FR_LINE_TYPED) return got == FR_LINE_DROPPED;
    append(turn, "", 0);
    /* a line that contains line ends was pasted; it becomes the text of the turn unchanged */
    bool pasted = memchr(line, '\n', length) != NULL;
    turn->command = !pasted && line[0] == '/' && line[1] != '/';
    if (turn->command || pasted)
        append(turn, line, length);
    else if (strncmp(line, quotes, QUOTES) == 0)
        read_block(turn, input, line + QUOTES, length - QUOTES);
    else if (line[0] == '/')
        read_lines(turn, input, line + 1, length - 1);
    else
        read_lines(turn, input, line, length);
    return true;
}

void fr_turn_free(fr_turn *turn) {
    free(turn->bytes);
    *turn = (fr_turn){0};
}
