/* What --help and the manual page say of options, from the table. See options.h. */
#include <string.h>

#include "option_table.h"
#include "words.h"

static void print_row(const fr_option_row *row, FILE *out) {
    enum { COLUMN = 36 };
    int width = fprintf(out, "  ");
    const char *names = row->names;
    size_t length;
    for (const char *name; (name = fr_next_word(&names, ' ', &length));) {
        width += fprintf(out, "%.*s%s", (int)length, name, names ? ", " : "");
    }
    if (row->value) width += fprintf(out, " %s", row->value);
    if (width >= COLUMN) width = fprintf(out, "\n") - 1;
    fprintf(out, "%*s%s\n", COLUMN - width, "", row->help);
}

static void print_options(const fr_verb *verb, FILE *out) {
    fprintf(out, "\noptions:\n");
    for (int arg = 0; arg < FR_ARG_COUNT; arg++) {
        const fr_option_row *row = &fr_option_table[arg];
        if (fr_verb_takes(verb, row) && !row->manual) print_row(row, out);
    }
}

fr_option_help fr_arguments_help(fr_arg arg) {
    const fr_option_row *row = &fr_option_table[arg];
    return (fr_option_help){row->names, row->value, row->help, row->more, row->verbs};
}

void fr_help_print(const fr_verb *verb, FILE *out) {
    fprintf(out, "usage: forerun %s\n\n%s: %s\n", verb->usage, verb->name, verb->does);
    if (!verb->bit) {
        fprintf(out, "not built yet\n");
    } else {
        if (verb->notes) fprintf(out, "%s", verb->notes);
        print_options(verb, out);
    }
    fprintf(out, "\nexamples:\n%s", verb->examples);
}
