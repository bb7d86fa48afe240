/* Shows the parts of a reply on a terminal or in a file (reply_view.h). */
#include "tools/cli/reply_view.h"

#include <stdlib.h>
#include <string.h>

#define DIM   "\033[2m"
#define PLAIN "\033[0m"

/* Writes a byte to the screen (an fr_wrap_put). */
static void put_byte(void *context, char byte, bool accepted) {
    (void)accepted;
    putc(byte, context);
}

static void show(const fr_reply_screen *screen, const char *text, size_t length) {
    if (!screen->wrap) fwrite(text, 1, length, screen->out);
    for (size_t i = 0; screen->wrap && i < length; i++)
        fr_word_wrap_feed(screen->wrap, text[i], false, put_byte, screen->out);
}

static void show_all(const fr_reply_screen *screen, const char *text) {
    show(screen, text, strlen(text));
}

/* Writes the separator between two parts of different kinds. thinks: the part that begins is reasoning. */
static void part_from_last(fr_reply_screen *screen, bool thinks) {
    if (screen->thinking && !thinks) show_all(screen, screen->dim ? "\n\n" : "\n</think>\n\n");
    if (!screen->thinking && thinks && screen->begun) show_all(screen, "\n\n");
    if (!screen->thinking && thinks && !screen->dim) show_all(screen, "<think>\n");
    screen->thinking = thinks;
    screen->begun = true;
}

static void show_reasoning(fr_reply_screen *screen, const char *text, size_t length) {
    part_from_last(screen, true);
    if (screen->dim) fputs(DIM, screen->out);
    show(screen, text, length);
    if (screen->dim) fputs(PLAIN, screen->out);
}

/* Shows a call in the form that Hermes models write. */
static void show_call_name(fr_reply_screen *screen, const char *text, size_t length) {
    bool apart = !screen->begun || screen->thinking;
    part_from_last(screen, false);
    json_t *name = fr_json_bytes(text, length);
    char *quoted = fr_json_line(name);
    show_all(screen, apart ? "<tool_call>{\"name\": " : "\n<tool_call>{\"name\": ");
    show_all(screen, quoted);
    show_all(screen, ", \"arguments\": ");
    free(quoted);
    json_decref(name);
}

void fr_reply_screen_show(void *context, fr_reply_part part, const char *text, size_t length) {
    fr_reply_screen *screen = context;
    switch (part) {
    case FR_REPLY_CONTENT: part_from_last(screen, false); break;
    case FR_REPLY_REASONING: show_reasoning(screen, text, length); break;
    case FR_REPLY_NAME: show_call_name(screen, text, length); break;
    case FR_REPLY_ARGUMENTS: show(screen, text, length); break;
    case FR_REPLY_CALL_END: show_all(screen, "}</tool_call>"); break;
    default: break;
    }
}

void fr_reply_screen_end(fr_reply_screen *screen) {
    if (screen->out && screen->thinking && !screen->dim) show_all(screen, "\n</think>");
}
