/* The table of the command's options. options.c parses the command line by this table, and help and the manual page are
 * printed from it.
 *
 * Out: a row for each option, at the index of its fr_arg (options.h). */
#ifndef FR_TOOLS_CLI_OPTION_TABLE_H
#define FR_TOOLS_CLI_OPTION_TABLE_H

#include "forerun_lab.h"
#include "tools/cli/options.h"

/* The parts of bench, as bits. A row of the table has the bits of the parts that take its option. */
enum {
    FR_PART_MACHINE = 1,
    FR_PART_KERNELS = 2,
    FR_PART_MODEL = 4,
    FR_PART_NEIGHBOURS = 8,
    FR_PART_GRAMMAR = 16,
    FR_PART_RANKS = 32
};

typedef enum fr_kind {
    FR_KIND_TEXT,   /* any text; if the row names no value, the option is a flag */
    FR_KIND_NUMBER, /* a whole number in [low, high] */
    FR_KIND_REAL,   /* a number in [low, high] */
    FR_KIND_WORD,   /* one of the option's words */
    FR_KIND_LIST,   /* a list of words, separated by commas */
    /* a list of whole numbers from `low` to `high`, separated by commas; 1..8 means all numbers from 1 to 8 */
    FR_KIND_NUMBERS,
    FR_KIND_IDS, /* a list of token ids, separated by commas */
} fr_kind;

/* Says to which value a row sets the library's option that it names. */
typedef enum fr_set_to {
    FR_SET_NOTHING, /* the row names no option of the library, or other code sets the option that it names */
    FR_SET_GIVEN,   /* the option is set to the given value */
    FR_SET_ON,      /* the option is set to 1 */
    FR_SET_OFF,     /* the option is set to 0 */
} fr_set_to;

typedef struct fr_option_row {
    const char *names; /* all names of the option. The first one is the most common name, which help shows first */
    const char *value; /* name of the value in the help text; NULL: the option is a flag */
    fr_kind kind;
    unsigned verbs; /* verbs that take the option */
    unsigned parts; /* the parts of bench that take the option; 0: all parts */
    bool again;     /* the option may be given several times, and every value is used */
    bool draws;     /* the option has an effect only if tokens are drawn at random */
    bool replaced;  /* the option has no effect if mirostat is on */
    bool switches;  /* a flag that may be followed by on, off or auto */
    bool manual;    /* the manual page lists the option, but --help does not */
    fr_option sets; /* the library's option that this option sets */
    fr_set_to to;   /* what the row sets the library's option to */
    /* The limits of a number. If the row sets a library's option to the given value, both may be 0. Then the limits of
     * the library's option are used. */
    int64_t low, high;
    const char *words; /* the words that the option takes */
    fr_lab_words of;   /* the library's table of the words that the option takes; in the help text, {} is replaced by
                        * these words */
    /* a second table of words in the library. The option takes these words too, but the help text does not list them */
    fr_lab_words also;
    bool any_case;        /* words may be written in capital or small letters */
    const char *special;  /* a word that may be given instead of a number; its value is -1 */
    const char *unbuilt;  /* words that are known but not implemented; the error line names them */
    int64_t unbuilt_from; /* numbers from this one on are known but not implemented; 0: all numbers are implemented */
    const char *help;
    const char *more; /* further text for the manual page only */
} fr_option_row;

extern const fr_option_row fr_option_table[FR_ARG_COUNT];

/* Returns true if a verb takes an option. */
bool fr_verb_takes(const fr_verb *verb, const fr_option_row *row);

/* Adds the words of a table of the library to a list, separated by blanks. */
void fr_add_words(fr_lab_words of, char *list, size_t size);

/* Lists all words that an option takes, separated by blanks. */
void fr_option_row_words(const fr_option_row *row, char *words, size_t size);

/* Gives the limits of an option's numbers. */
fr_lab_range fr_option_row_range(const fr_option_row *row);

/* Says what follows an option's name. */
typedef enum fr_option_form {
    FR_FORM_UNKNOWN, /* neither forerun nor llama.cpp has such an option */
    FR_FORM_FLAG,
    FR_FORM_SWITCH, /* a flag that may be followed by on, off or auto */
    FR_FORM_VALUE,  /* a value follows. Options that only other verbs take are counted here too */
} fr_option_form;

/* Gives the form of an option of a verb, or of an option of llama.cpp. name: the option's name with its dashes. */
fr_option_form fr_option_form_of(const fr_verb *verb, const char *name);

/* Reads an option from one word: "--name", or "--name=value" if it has a value. An option that an earlier source has
 * given (args->settled) is skipped. The arguments point into the word, so it must live as long as they do. Gives 0, or
 * the exit status after an error line. */
int fr_option_take_word(fr_arguments *args, char *word);

/* Reads an option's value from its text. text: NULL if the option has no value. Gives 0, or the exit status after an
 * error line. */
int fr_option_take(fr_arguments *args, fr_arg arg, const char *name, const char *text);

#endif
