/* Lists options of llama.cpp's programs that forerun does not have under the same name.
 *
 * In: a name. Out: either the option is accepted with a note, because it means nothing to forerun, or it is refused
 * with the name of forerun's own option for it. Options that both have under the same name are in option_table.c. */
#ifndef FR_TOOLS_CLI_FOREIGN_OPTIONS_H
#define FR_TOOLS_CLI_FOREIGN_OPTIONS_H

#include <stdio.h>

#include "tools/cli/options.h"

typedef enum fr_foreign_kind {
    FR_FOREIGN_FLAG,
    FR_FOREIGN_VALUE,
    FR_FOREIGN_SWITCH, /* may be followed by on, off, auto, 0 or 1, or by a list of these */
} fr_foreign_kind;

typedef struct fr_foreign_option {
    const char *names;
    fr_foreign_kind kind;
    unsigned taken;   /* verbs that accept it with a note; all others refuse it */
    const char *says; /* forerun's own option for the same purpose; NULL: forerun needs no such option */
} fr_foreign_option;

/* Finds the row of a name, which may be followed by "=VALUE". If several rows have the name, the one for this verb is
 * found first. NULL: there is none. */
const fr_foreign_option *fr_foreign_find(const fr_verb *verb, const char *name);

/* Print the table: the first in Markdown, the second as a part of the manual page. */
void fr_foreign_print(FILE *out);
void fr_foreign_print_manual(FILE *out);

#endif
