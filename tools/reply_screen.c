/* Parts of a reply on their way to standard output (reply_view.h). */
#include "reply_view.h"

#define DIM   "\033[2m"
#define PLAIN "\033[0m"

/* What stands between parts of different kinds. */
static void part_from_last(fr_reply_screen *screen, bool thinks) {
    FILE *out = screen->out;
    if (screen->thinking && !thinks) fputs(screen->dim ? "\n\n" : "\n</think>\n\n", out);
    if (!screen->thinking && thinks && screen->begun) fputs("\n\n", out);
    if (!screen->thinking && thinks && !screen->dim) fputs("<think>\n", out);
    screen->thinking = thinks;
    screen->begun = true;
}

static void show_reasoning(fr_reply_screen *screen, const char *text, size_t length) {
    part_from_last(screen, true);
    if (screen->dim) fputs(DIM, screen->out);
    fwrite(text, 1, length, screen->out);
    if (screen->dim) fputs(PLAIN, screen->out);
}

/* A call is shown as Hermes' models write it. */
static void show_call_name(fr_reply_screen *screen, const char *text, size_t length) {
    bool apart = !screen->begun || screen->thinking;
    part_from_last(screen, false);
    fputs(apart ? "<tool_call>{\"name\": " : "\n<tool_call>{\"name\": ", screen->out);
    json_t *name = fr_json_bytes(text, length);
    json_dumpf(name, screen->out, JSON_ENCODE_ANY);
    json_decref(name);
    fputs(", \"arguments\": ", screen->out);
}

void fr_reply_screen_show(void *context, fr_reply_part part, const char *text, size_t length) {
    fr_reply_screen *screen = context;
    switch (part) {
    case FR_REPLY_CONTENT: part_from_last(screen, false); break;
    case FR_REPLY_REASONING: show_reasoning(screen, text, length); break;
    case FR_REPLY_NAME: show_call_name(screen, text, length); break;
    case FR_REPLY_ARGUMENTS: fwrite(text, 1, length, screen->out); break;
    case FR_REPLY_CALL_END: fputs("}</tool_call>", screen->out); break;
    default: break;
    }
}

void fr_reply_screen_end(const fr_reply_screen *screen) {
    if (screen->out && screen->thinking && !screen->dim) fputs("\n</think>", screen->out);
}
