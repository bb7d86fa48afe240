/* Gives the options' texts in --help and in the manual page. They come from the table of options (options.h). */
#include <string.h>

#include "tools/cli/option_table.h"
#include "tools/cli/words.h"

/* Copies a text of the option table. The first {} in the text is replaced by the words of the library's table `of`. */
static void expand(const char *text, fr_lab_words of, char *into, size_t size) {
    char words[FR_HELP_SIZE] = "";
    const char *place = text ? strstr(text, "{}") : NULL;
    fr_add_words(of, words, sizeof(words));
    if (place)
        snprintf(into, size, "%.*s%s%s", (int)(place - text), text, words, place + 2);
    else
        snprintf(into, size, "%s", text ? text : "");
}

fr_option_help fr_arguments_help(fr_arg arg) {
    const fr_option_row *row = &fr_option_table[arg];
    fr_option_help help = {.names = row->names, .value = row->value, .verbs = row->verbs};
    expand(row->help, row->of, help.help, sizeof(help.help));
    expand(row->more, row->of, help.more, sizeof(help.more));
    return help;
}

/* COLUMN: the column where an option's text begins. COLUMNS: the width of a line. CONTINUED: the indent of the later
 * parts of a command line that is split. */
enum { COLUMN = 27, COLUMNS = 80, CONTINUED = 4 };

/* Prints a text in lines that begin at the given column, and breaks the lines anew. Where a line of the text ends with
 * the end of a sentence, the printed line ends too. */
static void print_wrapped(const char *text, int column, FILE *out) {
    int width = column;
    for (size_t length; *text; text += length) {
        text += strspn(text, " ");
        length = strcspn(text, " \n");
        bool first = width == column, fits = width + !first + (int)length <= COLUMNS;
        if (!first && !fits) width = fprintf(out, "\n%*s", column, "") - 1;
        width += fprintf(out, "%s%.*s", first || !fits ? "" : " ", (int)length, text);
        if (text[length] != '\n') continue;
        bool ends = length && strchr(".:", text[length - 1]) && text[length + 1];
        if (ends) width = fprintf(out, "\n%*s", column, "") - 1;
        length++;
    }
    fputc('\n', out);
}

/* Prints a command line. A long one is split into several lines, and all of them but the last end with `mark`. */
static void print_command(const char *line, size_t length, const char *mark, FILE *out) {
    size_t most = COLUMNS - strlen(mark), indent = strspn(line, " ") + CONTINUED;
    for (size_t part; (part = fr_line_part(line, length, most)) < length; most = COLUMNS - strlen(mark) - indent) {
        fprintf(out, "%.*s%s\n%*s", (int)part, line, mark, (int)indent, "");
        line += part + 1;
        length -= part + 1;
    }
    fprintf(out, "%.*s\n", (int)length, line);
}

static void print_option(const fr_option_help *option, FILE *out) {
    int width = fprintf(out, "  ");
    const char *names = option->names;
    size_t length;
    for (const char *name; (name = fr_next_word(&names, ' ', &length));) {
        if (name != option->names) {
            width += fprintf(out, ",");
            width = width + (int)length + 2 > COLUMNS ? fprintf(out, "\n    ") - 1 : width + fprintf(out, " ");
        }
        width += fprintf(out, "%.*s", (int)length, name);
    }
    if (option->value) width += fprintf(out, " %s", option->value);
    if (width > COLUMN - 2) width = fprintf(out, "\n") - 1;
    fprintf(out, "%*s", COLUMN - width, "");
    print_wrapped(option->help, COLUMN, out);
}

static void print_options(const fr_verb *verb, FILE *out) {
    fprintf(out, "\noptions:\n");
    for (fr_arg arg = 0; arg < FR_ARG_COUNT; arg++) {
        fr_option_help option = fr_arguments_help(arg);
        if (fr_verb_takes(verb, &fr_option_table[arg]) && !fr_option_table[arg].manual) print_option(&option, out);
    }
}

void fr_help_print(const fr_verb *verb, FILE *out) {
    char usage[512];
    int length = snprintf(usage, sizeof usage, "usage: forerun %s", verb->usage);
    print_command(usage, (size_t)length, "", out);
    fprintf(out, "\n%s: %s\n", verb->name, verb->does);
    print_wrapped(verb->notes, 0, out);
    print_options(verb, out);
    fprintf(out, "\nexamples:\n");
    for (const char *line = verb->examples; *line;) {
        size_t part = strcspn(line, "\n");
        print_command(line, part, " \\", out);
        line += part + 1;
    }
}
