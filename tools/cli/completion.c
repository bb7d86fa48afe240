/* Prints completions for shells (completion.h). After an option, the script offers the words that the option takes, or
 * names of files. After a verb it offers the verb's options, and after a part of the bench that part's options. bash
 * and zsh get the same code for this. The code calls two functions, which each of the two shells defines in its own
 * way. */
#include "tools/cli/completion.h"

#include <string.h>

#include "forerun_lab.h"
#include "tools/cli/option_table.h"
#include "tools/cli/words.h"

enum { WORDS = 1024 };

/* Prints the words that an option may have as its value, each after a blank. Prints nothing if the value is a file's
 * name, a text or a number. */
static void put_words(const fr_option_row *row, FILE *out) {
    char words[WORDS];
    fr_option_row_words(row, words, sizeof(words));
    if (words[0]) fprintf(out, " %s", words);
    if (row->special) fprintf(out, " %s", row->special);
}

static bool has_words(const fr_option_row *row) {
    return row->words || row->of || row->special;
}

/* Prints an option's names as alternatives of a case pattern: "-m|--model". */
static void put_alternatives(const char *names, FILE *out) {
    for (; *names; names++) putc(*names == ' ' ? '|' : *names, out);
}

/* Gives the option whose value may follow the verb directly, without the option's name; NULL: the verb has no such
 * option. */
static const fr_option_row *bare_row(const fr_verb *verb) {
    if (verb->bit == FR_VERB_BENCH) return &fr_option_table[FR_ARG_BENCH_PART];
    return verb->bit == FR_VERB_COMPLETION ? &fr_option_table[FR_ARG_SHELL] : NULL;
}

/* ----------------------------------------------------------------------------------------------------- bash and zsh */

enum { ALL_PARTS = 0 };

/* Prints the names of a verb's options. part: the bit of the bench's part whose options are wanted, or ALL_PARTS. */
static void put_names_of(const fr_verb *verb, unsigned part, FILE *out) {
    for (int arg = 0; arg < FR_ARG_COUNT; arg++) {
        const fr_option_row *row = &fr_option_table[arg];
        bool refused = part && row->parts && !(row->parts & part);
        if (fr_verb_takes(verb, row) && !row->manual && !refused) fprintf(out, " %s", row->names);
    }
}

/* Prints a case of the shell script for each part of the bench. It offers the options of that part. */
static void put_part_cases(const fr_verb *verb, FILE *out) {
    const char *words = fr_option_table[FR_ARG_BENCH_PART].words, *word;
    size_t length;
    fputs("\n            case \"$part\" in\n", out);
    for (unsigned part = 1; (word = fr_next_word(&words, ' ', &length)); part <<= 1) {
        fprintf(out, "            %.*s) _forerun_words", (int)length, word);
        put_names_of(verb, part, out);
        fputs(" ;;\n", out);
    }
    fputs("            *) _forerun_words", out);
    put_words(bare_row(verb), out);
    put_names_of(verb, ALL_PARTS, out);
    fputs(" ;;\n            esac", out);
}

static void put_names_cases(const fr_verb *verb, FILE *out) {
    const fr_option_row *bare = bare_row(verb);
    fputs(" _forerun_words", out);
    if (bare) put_words(bare, out);
    put_names_of(verb, ALL_PARTS, out);
}

static void put_verb_cases(const fr_verb *verb, FILE *out) {
    const fr_option_row *bare = bare_row(verb);
    fprintf(out, "%s)\n    case \"$prev\" in\n", verb->name);
    for (int arg = 0; arg < FR_ARG_COUNT; arg++) {
        const fr_option_row *row = &fr_option_table[arg];
        if (!fr_verb_takes(verb, row) || !row->value) continue;
        fputs("    ", out);
        put_alternatives(row->names, out);
        fputs(has_words(row) ? ") _forerun_words" : ") _forerun_files", out);
        put_words(row, out);
        fputs(" ;;\n", out);
    }
    fputs("    *)\n        case \"$cur\" in\n        -*|'')", out);
    if (verb->bit == FR_VERB_BENCH)
        put_part_cases(verb, out);
    else
        put_names_cases(verb, out);
    fputs(bare ? " ;;\n        *) _forerun_words" : " ;;\n        *) _forerun_files", out);
    if (bare) put_words(bare, out);
    fputs(" ;;\n        esac ;;\n    esac ;;\n", out);
}

static void put_cases(const fr_verb *verbs, size_t count, FILE *out) {
    fputs("case \"$verb\" in\n", out);
    for (size_t i = 0; i < count; i++)
        if (verbs[i].bit) put_verb_cases(&verbs[i], out);
    fputs("help) _forerun_words", out);
    for (size_t i = 0; i < count; i++) fprintf(out, " %s", verbs[i].name);
    fputs(" ;;\nesac\n", out);
}

static void put_verbs(const fr_verb *verbs, size_t count, FILE *out) {
    for (size_t i = 0; i < count; i++)
        if (verbs[i].bit) fprintf(out, " %s", verbs[i].name);
    fputs(" help --help --version", out);
}

/* Prints the script for bash. bash makes a word of its own of an equals sign, so "--option=value" is three words. */
static void print_bash(const fr_verb *verbs, size_t count, FILE *out) {
    fputs("# Printed by `forerun completion bash`.\n"
          "_forerun_words() { COMPREPLY=($(compgen -W \"$*\" -- \"$cur\")); }\n"
          "_forerun_files() { :; }\n\n"
          "_forerun() {\n"
          "local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}\n"
          "local part=${COMP_WORDS[2]}\n"
          "if [ \"$part\" = --part ]; then part=${COMP_WORDS[3]}; fi\n"
          "COMPREPLY=()\n"
          "if [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
          "if [ \"$cur\" = = ]; then cur=; fi\n"
          "if [ \"$COMP_CWORD\" = 1 ]; then\n    _forerun_words",
          out);
    put_verbs(verbs, count, out);
    fputs("\n    return\nfi\n", out);
    put_cases(verbs, count, out);
    fputs("}\n\ncomplete -o bashdefault -o default -F _forerun forerun\n", out);
}

static void print_zsh(const fr_verb *verbs, size_t count, FILE *out) {
    fputs("#compdef forerun\n"
          "# Printed by `forerun completion zsh`.\n"
          "_forerun_words() { compadd -- \"$@\" }\n"
          "_forerun_files() { _files }\n\n"
          "_forerun() {\n"
          "local cur=$PREFIX prev=${words[CURRENT-1]} verb=${words[2]} part=${words[3]}\n"
          "if [ \"$part\" = --part ]; then part=${words[4]}; fi\n"
          "if compset -P '--*='; then prev=${IPREFIX%=} cur=$PREFIX; fi\n"
          "if (( CURRENT == 2 )); then\n    _forerun_words",
          out);
    put_verbs(verbs, count, out);
    fputs("\n    return\nfi\n", out);
    put_cases(verbs, count, out);
    fputs("}\n\nif [ \"${funcstack[1]}\" = _forerun ]; then _forerun \"$@\"; else compdef _forerun forerun; fi\n", out);
}

/* ------------------------------------------------------------------------------------------------------------- fish */

/* Prints a text in single quotes. */
static void put_quoted(const char *text, FILE *out) {
    putc('\'', out);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') putc('\\', out);
        putc(*text, out);
    }
    putc('\'', out);
}

/* Prints a condition for fish. The condition is false if the command line already names a part of the bench that
 * refuses the option. */
static void put_refusing_parts(const fr_option_row *row, FILE *out) {
    const char *words = fr_option_table[FR_ARG_BENCH_PART].words, *word;
    size_t length;
    fputs("; and not __fish_seen_subcommand_from", out);
    for (unsigned part = 1; (word = fr_next_word(&words, ' ', &length)); part <<= 1)
        if (!(row->parts & part)) fprintf(out, " %.*s", (int)length, word);
}

static void put_fish_option(const fr_verb *verb, fr_arg arg, FILE *out) {
    const fr_option_row *row = &fr_option_table[arg];
    fr_option_help help = fr_arguments_help(arg);
    const char *names = row->names, *name;
    size_t length;
    fprintf(out, "complete -c forerun -n '__fish_seen_subcommand_from %s", verb->name);
    if (verb->bit == FR_VERB_BENCH && row->parts) put_refusing_parts(row, out);
    putc('\'', out);
    while ((name = fr_next_word(&names, ' ', &length))) {
        size_t dashes = strncmp(name, "--", 2) == 0 ? 2 : 1;
        const char *kind = dashes == 2 ? "-l" : length == 2 ? "-s" : "-o";
        fprintf(out, " %s %.*s", kind, (int)(length - dashes), name + dashes);
    }
    if (row->value) fputs(has_words(row) ? " -x -a '" : " -r", out);
    if (row->value && has_words(row)) {
        put_words(row, out);
        putc('\'', out);
    }
    fputs(" -d ", out);
    put_quoted(help.help, out);
    putc('\n', out);
}

static void print_fish(const fr_verb *verbs, size_t count, FILE *out) {
    fputs("# Printed by `forerun completion fish`.\n"
          "complete -c forerun -f -n __fish_use_subcommand -a help -d 'what a verb does'\n"
          "complete -c forerun -f -n __fish_use_subcommand -l help -d 'what there is'\n"
          "complete -c forerun -f -n __fish_use_subcommand -l version -d 'which version this is'\n"
          "complete -c forerun -f -n '__fish_seen_subcommand_from help' -a '",
          out);
    for (size_t i = 0; i < count; i++)
        if (verbs[i].bit) fprintf(out, " %s", verbs[i].name);
    fputs("'\n", out);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "complete -c forerun -f -n __fish_use_subcommand -a %s -d ", verbs[i].name);
        put_quoted(verbs[i].does, out);
        putc('\n', out);
        const fr_option_row *bare = bare_row(&verbs[i]);
        if (bare) {
            fprintf(out, "complete -c forerun -f -n '__fish_seen_subcommand_from %s' -a '", verbs[i].name);
            put_words(bare, out);
            fputs("'\n", out);
        }
        for (fr_arg arg = 0; arg < FR_ARG_COUNT; arg++) {
            const fr_option_row *row = &fr_option_table[arg];
            if (fr_verb_takes(&verbs[i], row) && !row->manual) put_fish_option(&verbs[i], arg, out);
        }
    }
}

void fr_completion_print(const fr_verb *verbs, size_t count, const char *shell, FILE *out) {
    if (strcmp(shell, "bash") == 0)
        print_bash(verbs, count, out);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(verbs, count, out);
    else
        print_fish(verbs, count, out);
}
