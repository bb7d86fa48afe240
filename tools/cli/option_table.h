/* The table of the command's options: options.c parses by it, and help and the manual page are printed from it.
 *
 * In: nothing. Out: a row for each option, by fr_arg (options.h). */
#ifndef FR_TOOLS_CLI_OPTION_TABLE_H
#define FR_TOOLS_CLI_OPTION_TABLE_H

#include "forerun_lab.h"
#include "tools/cli/options.h"

/* The parts of bench, as bits: an option has those of the parts that take it. */
enum {
    FR_PART_MACHINE = 1,
    FR_PART_KERNELS = 2,
    FR_PART_MODEL = 4,
    FR_PART_NEIGHBOURS = 8,
    FR_PART_GRAMMAR = 16,
    FR_PART_RANKS = 32
};

typedef enum fr_kind {
    FR_KIND_TEXT,    /* anything; a flag when the row names no value */
    FR_KIND_NUMBER,  /* a whole number in [low, high] */
    FR_KIND_REAL,    /* a number in [low, high] */
    FR_KIND_WORD,    /* one of words */
    FR_KIND_LIST,    /* comma list of words */
    FR_KIND_NUMBERS, /* comma list of whole numbers and stretches of them in [low, high] */
    FR_KIND_IDS,     /* comma list of token ids */
} fr_kind;

/* The way in which a row sets the library's option that it names. */
typedef enum fr_set_to {
    FR_SET_NOTHING, /* the row names no option, or other code sets it */
    FR_SET_GIVEN,   /* the option is set to the given value */
    FR_SET_ON,      /* the option is set to 1 */
    FR_SET_OFF,     /* the option is set to 0 */
} fr_set_to;

typedef struct fr_option_row {
    const char *names; /* all names; help shows the first ones, the most common one first */
    const char *value; /* name of the value in help; NULL for a flag */
    fr_kind kind;
    unsigned verbs; /* verbs that take the option */
    unsigned parts; /* parts of bench that take it; 0: all */
    bool again;     /* it may be given several times, and every one counts */
    bool draws;     /* it has an effect only if tokens are drawn */
    bool replaced;  /* it has no effect beside mirostat */
    bool switches;  /* a flag that may be followed by on, off or auto */
    bool manual;    /* the manual page has it, help leaves it out */
    fr_option sets; /* the library's option that it sets */
    fr_set_to to;   /* the value to which it sets that option */
    /* both 0 in a row that sets the library's option to the given value: that option's limits hold */
    int64_t low, high;
    const char *words;    /* words that are built */
    fr_lab_words of;      /* a table of the library's words, which replace {} in the help text */
    fr_lab_words also;    /* a second table of the library's words, which the help text does not list */
    bool any_case;        /* words may be written in capital or small letters */
    const char *special;  /* a word that may stand for a number; the number is then -1 */
    const char *unbuilt;  /* words, for any kind, that are known but not built yet */
    int64_t unbuilt_from; /* numbers from here on are known but not built; 0: all are built */
    const char *help;
    const char *more; /* further text for the manual page only */
} fr_option_row;

extern const fr_option_row fr_option_table[FR_ARG_COUNT];

/* Returns true if a verb takes an option. */
bool fr_verb_takes(const fr_verb *verb, const fr_option_row *row);

/* Adds the words of one of the library's tables to a list, with blanks between them. */
void fr_add_words(fr_lab_words of, char *list, size_t size);

/* Gives all built words of a row, with blanks between them. */
void fr_option_row_words(const fr_option_row *row, char *words, size_t size);

/* Gives the range of a row's numbers, whole or real. */
fr_lab_range fr_option_row_range(const fr_option_row *row);

/* Reads the value of an option. text: NULL if it has none. Gives 0, or the exit status after an error line. */
int fr_option_take(fr_arguments *args, fr_arg arg, const char *name, const char *text);

#endif
