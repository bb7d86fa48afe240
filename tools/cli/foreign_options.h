/* Lists options of llama.cpp's programs that forerun does not have under the same name.
 *
 * In: a name. Out: the option's row, which says what forerun does with it. An option that means nothing to forerun is
 * accepted with a note. Any other option is refused, and the error line names forerun's own option if there is one.
 * Options that both programs have under the same name are in option_table.c. */
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
    unsigned taken; /* verbs that accept the option with a note; all other verbs refuse it */
    /* forerun's own option for the same purpose; NULL: there is none, because forerun needs no such option */
    const char *says;
} fr_foreign_option;

/* Finds the row of a name. The name may be followed by "=VALUE". If several rows have the name, the row for this verb
 * is preferred. NULL: no row has the name. */
const fr_foreign_option *fr_foreign_find(const fr_verb *verb, const char *name);

/* These functions print the table. fr_foreign_print prints it in Markdown. fr_foreign_print_manual prints it as a part
 * of the manual page. */
void fr_foreign_print(FILE *out);
void fr_foreign_print_manual(FILE *out);

#endif
