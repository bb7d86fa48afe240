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

/* The value to which a row sets the library's option that it names. */
typedef enum fr_set_to {
    FR_SET_NOTHING, /* none is named, or not by the row alone */
    FR_SET_GIVEN,   /* the value that is given */
    FR_SET_ON,      /* 1 */
    FR_SET_OFF,     /* 0 */
} fr_set_to;

typedef struct fr_option_row {
    const char *names; /* all names; help shows the first ones, the plainest of all in front */
    const char *value; /* what help calls the value, NULL for a flag */
    fr_kind kind;
    unsigned verbs;       /* that take it */
    unsigned parts;       /* of bench, which take it; 0: all */
    bool again;           /* it may be given several times, and each counts */
    bool draws;           /* it has an effect only if tokens are drawn */
    bool switches;        /* a flag that may be followed by on, off or auto */
    bool manual;          /* the manual page has it, help leaves it out */
    fr_option sets;       /* of the library's options, */
    fr_set_to to;         /* unless it is nothing */
    int64_t low, high;    /* both 0 in a row that sets an option to what is given: that option's */
    const char *words;    /* words that are built, */
    fr_lab_words of;      /* the library's of this table, which stand in help for {}, */
    fr_lab_words also;    /* and of this one, which don't */
    bool any_case;        /* of those words and the unbuilt ones */
    const char *special;  /* a word beside the numbers; it leaves the number -1 */
    const char *unbuilt;  /* words that are known, for any kind, but not built yet */
    int64_t unbuilt_from; /* numbers from here on are neither; 0: all are */
    const char *help;
    const char *more; /* for the manual page alone */
} fr_option_row;

extern const fr_option_row fr_option_table[FR_ARG_COUNT];

/* Returns true if a verb takes an option. */
bool fr_verb_takes(const fr_verb *verb, const fr_option_row *row);

/* Adds the library's words of a table to a list, with blanks between. */
void fr_add_words(fr_lab_words of, char *list, size_t size);

/* Gives all built words of a row, with blanks between. */
void fr_option_row_words(const fr_option_row *row, char *words, size_t size);

/* Gives the range of a row's numbers, whole or real. */
fr_lab_range fr_option_row_range(const fr_option_row *row);

/* Reads an option's value, or none. Gives 0, or the exit status after an error line. */
int fr_option_take(fr_arguments *args, fr_arg arg, const char *name, const char *text);

#endif
