/* Prints the manual page from the same tables as --help: that of verbs and that of options.
 *
 * Out: roff with the man macros, for `make install`. As both use the same tables, they can't differ. */
#ifndef FR_TOOLS_CLI_MANUAL_H
#define FR_TOOLS_CLI_MANUAL_H

#include "tools/cli/options.h"

/* Prints the page. about: lines from the overview, about the command and its models. */
void fr_manual_print(const fr_verb *verbs, size_t count, const char *about, FILE *out);

#endif
