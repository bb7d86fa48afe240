/* Moves words that are too long for a terminal's line to the next line (word_wrap.h). */
#include "tools/cli/terminal/word_wrap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

/* NARROWEST: text is wrapped only on terminals with at least this many columns. TAB: columns between two tab stops.
 * CHARACTER: the most bytes of a character in UTF-8. */
enum { NARROWEST = 20, TAB = 8, CHARACTER = 4 };

bool fr_word_wrap_begin(fr_word_wrap *wrap, FILE *out) {
    struct winsize size;
    const char *kind = getenv("TERM");
    *wrap = (fr_word_wrap){.out = out};
    bool moves = isatty(fileno(out)) && kind && *kind && strcmp(kind, "dumb") != 0;
    if (!moves || ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col < NARROWEST) return false;
    wrap->columns = size.ws_col;
    return true;
}

/* Gives the number of bytes that follow the first byte of a character. If this byte is a whole character, or can't
 * begin a character, the result is 0. */
static size_t count_following(unsigned char first) {
    if (first < 0xc0 || first >= 0xf8) return 0;
    return first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
}

/* Gives the number of columns that the character at the end of the word takes. */
static size_t measure(const fr_word_wrap *wrap) {
    const unsigned char *bytes = (const unsigned char *)wrap->word + wrap->character;
    size_t count = wrap->length - wrap->character;
    wchar_t code = count == 1 ? bytes[0] : bytes[0] & (0x7f >> count);
    for (size_t i = 1; i < count; i++) code = code << 6 | (bytes[i] & 0x3f);
    if (code < ' ' || code == 0x7f) return 0;
    int width = wcwidth(code);
    return width < 0 ? 1 : (size_t)width;
}

static void forget_word(fr_word_wrap *wrap) {
    wrap->length = wrap->width = 0;
}

static void end_line(fr_word_wrap *wrap, fr_wrap_put *put, void *context) {
    put(context, '\n', false);
    wrap->column = 0;
}

/* Begins a new line for the character at the end of the word. If the word is not the first one of its line, the whole
 * word moves to the new line. The last column of a line stays free, because terminals differ in where they place the
 * cursor after the last column. */
static void break_line(fr_word_wrap *wrap, fr_wrap_put *put, void *context) {
    size_t shown = wrap->character;
    bool whole_line = wrap->width == wrap->column;
    if (whole_line || wrap->width == 0) {
        end_line(wrap, put, context);
        memmove(wrap->word, wrap->word + shown, wrap->length - shown);
        memmove(wrap->accepted, wrap->accepted + shown, wrap->length - shown);
        wrap->length -= shown;
        wrap->width = 0;
        wrap->character = 0;
        return;
    }
    fprintf(wrap->out, "\033[%zuD\033[K", wrap->width);
    end_line(wrap, put, context);
    for (size_t i = 0; i < shown; i++) put(context, wrap->word[i], wrap->accepted[i]);
    wrap->column = wrap->width;
}

static void add_blank(fr_word_wrap *wrap, char byte, bool accepted, fr_wrap_put *put, void *context) {
    size_t columns = byte == '\t' ? TAB - wrap->column % TAB : 1;
    bool ends = byte == '\n' || wrap->column + columns >= wrap->columns;
    forget_word(wrap);
    if (ends) {
        end_line(wrap, put, context);
    } else {
        put(context, byte, accepted);
        wrap->column += columns;
    }
}

/* Writes the last character of the word. If the text ends there, the character may be incomplete. */
static void put_character(fr_word_wrap *wrap, fr_wrap_put *put, void *context) {
    for (size_t i = wrap->character; i < wrap->length; i++) put(context, wrap->word[i], wrap->accepted[i]);
}

void fr_word_wrap_finish(fr_word_wrap *wrap, fr_wrap_put *put, void *context) {
    if (wrap->missing > 0) put_character(wrap, put, context);
    wrap->missing = 0;
}

void fr_word_wrap_feed(fr_word_wrap *wrap, char byte, bool accepted, fr_wrap_put *put, void *context) {
    bool follows = wrap->missing > 0 && ((unsigned char)byte & 0xc0) == 0x80;
    if (!follows) fr_word_wrap_finish(wrap, put, context);
    if (byte == ' ' || byte == '\t' || byte == '\n') {
        add_blank(wrap, byte, accepted, put, context);
        return;
    }
    if (!follows) {
        if (wrap->length + CHARACTER > FR_WRAP_WORD) forget_word(wrap);
        wrap->character = wrap->length;
        wrap->missing = count_following((unsigned char)byte);
    } else {
        wrap->missing--;
    }
    wrap->word[wrap->length] = byte;
    wrap->accepted[wrap->length++] = accepted;
    if (wrap->missing > 0) return; /* a character is written only when it is complete */
    size_t width = measure(wrap);
    if (wrap->column + width >= wrap->columns) break_line(wrap, put, context);
    put_character(wrap, put, context);
    wrap->column += width;
    wrap->width += width;
    /* a line of Chinese or Japanese may be broken after any character, so the word ends here */
    if (width == 2) forget_word(wrap);
}
