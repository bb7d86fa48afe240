/* Prints the manual page from the tables of verbs and options. --help uses the same tables, so that the two agree.
 *
 * Out: roff with the man macros, for `make install`. */
#ifndef FR_TOOLS_CLI_MANUAL_H
#define FR_TOOLS_CLI_MANUAL_H

#include "tools/cli/options.h"

/* Prints the page. about: the overview's lines about the command and its models. */
void fr_manual_print(const fr_verb *verbs, size_t count, const char *about, FILE *out);

#endif
