/* Prints the manual page from the tables of verbs and options (manual.h). */
#include "tools/cli/manual.h"

#include <string.h>

#include "tools/cli/foreign_options.h"
#include "tools/cli/words.h"

/* Prints text as roff. Hyphens stay hyphens, so that a search finds them, and no line is mistaken for a roff
 * request. */
static void put(const char *text, size_t length, FILE *out) {
    bool begins = true;
    for (size_t i = 0; i < length; i++) {
        if (begins && (text[i] == '.' || text[i] == '\'')) fputs("\\&", out);
        begins = text[i] == '\n';
        if (text[i] == '-')
            fputs("\\-", out);
        else if (text[i] == '\\')
            fputs("\\e", out);
        else
            putc(text[i], out);
    }
}

static void put_all(const char *text, FILE *out) {
    put(text, strlen(text), out);
}

/* Prints words that a user types literally, in bold. */
static void put_bold(const char *text, size_t length, FILE *out) {
    fputs("\\fB", out);
    put(text, length, out);
    fputs("\\fR", out);
}

/* Prints "-m, --model MODEL". */
static void put_names(const fr_option_help *option, FILE *out) {
    fputs(".TP\n", out);
    for (const char *name = option->names; *name;) {
        size_t length = strcspn(name, " ");
        put_bold(name, length, out);
        name += length;
        if (*name) fputs(", ", out);
        name += *name == ' ';
    }
    if (option->value) fprintf(out, " \\fI%s\\fR", option->value);
    putc('\n', out);
}

/* Prints the list of verbs that take an option, such as "(generate, chat)". If all verbs take it, prints nothing. */
static void put_takers(const fr_verb *verbs, size_t count, const fr_option_help *option, FILE *out) {
    const char *before = "(";
    bool all = true;
    for (size_t i = 0; i < count; i++) all &= (option->verbs & verbs[i].bit) != 0;
    for (size_t i = 0; i < count && !all; i++) {
        if (!(option->verbs & verbs[i].bit)) continue;
        fprintf(out, "%s%s", before, verbs[i].name);
        before = ", ";
    }
    if (!all) fputs(")\n", out);
}

static void put_options(const fr_verb *verbs, size_t count, bool bench, FILE *out) {
    for (int arg = 0; arg < FR_ARG_COUNT; arg++) {
        fr_option_help option = fr_arguments_help((fr_arg)arg);
        if ((option.verbs == FR_VERB_BENCH) != bench) continue;
        put_names(&option, out);
        put_all(option.help, out);
        if (*option.more) fputs(".\n", out);
        put_all(option.more, out);
        fputs(".\n", out);
        if (!bench) put_takers(verbs, count, &option, out);
    }
}

/* COLUMNS: a command line with more columns than this is split, because a page has 80 columns. CONTINUED: the indent of
 * the second and later parts of a split command line. */
enum { COLUMNS = 72, CONTINUED = 4 };

/* Prints a command line. If it is wider than the page, it is split into several lines. All of them but the last end
 * with `mark`. */
static void put_line(const char *line, size_t length, const char *mark, FILE *out) {
    size_t most = COLUMNS - strlen(mark);
    for (size_t part; (part = fr_line_part(line, length, most)) < length; most = COLUMNS - strlen(mark) - CONTINUED) {
        put(line, part, out);
        put_all(mark, out);
        fprintf(out, "\n%*s", CONTINUED, "");
        line += part + 1;
        length -= part + 1;
    }
    put(line, length, out);
    putc('\n', out);
}

static void put_verbs(const fr_verb *verbs, size_t count, FILE *out) {
    for (size_t i = 0; i < count; i++) {
        fprintf(out, ".TP\n.B %s\n", verbs[i].name);
        put_all(verbs[i].does, out);
        fputs(".\n", out);
        put_all(verbs[i].notes, out);
    }
}

static void put_usage(const fr_verb *verbs, size_t count, FILE *out) {
    for (size_t i = 0; i < count; i++) {
        char line[256];
        int length = snprintf(line, sizeof line, "forerun %s", verbs[i].usage);
        put_line(line, (size_t)length, "", out);
    }
    fputs("forerun help [VERB]\nforerun \\-\\-version\n", out);
}

static void put_examples(const fr_verb *verbs, size_t count, FILE *out) {
    for (size_t i = 0; i < count; i++) {
        for (const char *line = verbs[i].bit ? verbs[i].examples : ""; *line;) {
            line += strspn(line, " ");
            size_t length = strcspn(line, "\n");
            put_line(line, length, " \\", out);
            line += length + 1;
        }
    }
}

void fr_manual_print(const fr_verb *verbs, size_t count, const char *about, FILE *out) {
    fputs(".\\\" Printed by `forerun help --man`.\n"
          ".TH FORERUN 1 \"\" \"forerun\" \"User commands\"\n.SH NAME\n"
          "forerun \\- large language models on the CPU, with speculative decoding that gives the same text\n"
          ".SH SYNOPSIS\n.nf\n",
          out);
    put_usage(verbs, count, out);
    fputs(".fi\n.SH DESCRIPTION\n", out);
    put_all(about, out);
    fputs(".PP\nStandard output holds the result alone; progress, notes and statistics go to standard error.\n"
          ".SH VERBS\n",
          out);
    put_verbs(verbs, count, out);
    fputs(".SH OPTIONS\nA long option's value may also follow an equals sign. Behind \\-\\- no word is an option.\n"
          "In brackets: the verbs that take it, where not all do.\n",
          out);
    put_options(verbs, count, false, out);
    fputs(".SS Measuring (bench)\nA list of numbers is 1,2,4 or 1..8,16.\n", out);
    put_options(verbs, count, true, out);
    fputs(".SS Of llama.cpp's programs\nOptions of theirs that have another name here, or none.\n", out);
    fr_foreign_print_manual(out);
    fputs(".SH EXIT STATUS\n.TP\n0\nDone.\n"
          ".TP\n1\nThe input or the model is unusable; one line says which file, tensor or value.\n"
          ".TP\n2\nWrong usage, an unknown word, or a part that is not built yet.\n"
          ".TP\n129, 130, 143\nEnded by SIGHUP, Ctrl-C or SIGTERM, as a shell has it.\n.SH EXAMPLES\n.nf\n",
          out);
    put_examples(verbs, count, out);
    fputs(".fi\n", out);
}
