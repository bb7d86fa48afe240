/* What --help and the manual page say of options, from the table. See options.h. */
#include <string.h>

#include "option_table.h"
#include "words.h"

/* A text of a row, the library's words in it where it says so. */
static void expand(const char *text, fr_lab_words of, char *into, size_t size) {
    char words[FR_HELP_SIZE] = "";
    const char *place = text ? strstr(text, "{}") : NULL;
    fr_add_words(of, words, sizeof(words));
    if (place) snprintf(into, size, "%.*s%s%s", (int)(place - text), text, words, place + 2);
    else snprintf(into, size, "%s", text ? text : "");
}

fr_option_help fr_arguments_help(fr_arg arg) {
    const fr_option_row *row = &fr_option_table[arg];
    fr_option_help help = {.names = row->names, .value = row->value, .verbs = row->verbs};
    expand(row->help, row->of, help.help, sizeof(help.help));
    expand(row->more, row->of, help.more, sizeof(help.more));
    return help;
}

enum { COLUMN = 36, COLUMNS = 120 }; /* where the texts begin; as wide as lines may be */

/* A text from that column on, in as many lines as it takes. */
static void print_in_column(const char *text, FILE *out) {
    int width = COLUMN;
    size_t length;
    for (const char *word; (word = fr_next_word(&text, ' ', &length));) {
        bool first = width == COLUMN, fits = width + !first + (int)length <= COLUMNS;
        if (!first && !fits) width = fprintf(out, "\n%*s", COLUMN, "") - 1;
        width += fprintf(out, "%s%.*s", first || !fits ? "" : " ", (int)length, word);
    }
    fputc('\n', out);
}

static void print_option(const fr_option_help *option, FILE *out) {
    int width = fprintf(out, "  ");
    const char *names = option->names;
    size_t length;
    for (const char *name; (name = fr_next_word(&names, ' ', &length));) {
        width += fprintf(out, "%.*s%s", (int)length, name, names ? ", " : "");
    }
    if (option->value) width += fprintf(out, " %s", option->value);
    if (width >= COLUMN) width = fprintf(out, "\n") - 1;
    fprintf(out, "%*s", COLUMN - width, "");
    print_in_column(option->help, out);
}

static void print_options(const fr_verb *verb, FILE *out) {
    fprintf(out, "\noptions:\n");
    for (fr_arg arg = 0; arg < FR_ARG_COUNT; arg++) {
        fr_option_help option = fr_arguments_help(arg);
        if (fr_verb_takes(verb, &fr_option_table[arg]) && !fr_option_table[arg].manual) print_option(&option, out);
    }
}

void fr_help_print(const fr_verb *verb, FILE *out) {
    fprintf(out, "usage: forerun %s\n\n%s: %s\n", verb->usage, verb->name, verb->does);
    if (verb->notes) fprintf(out, "%s", verb->notes);
    print_options(verb, out);
    fprintf(out, "\nexamples:\n%s", verb->examples);
}
