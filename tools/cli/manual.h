/* The manual page, made of what --help prints: the table of verbs and the table of options.
 *
 * Out: roff with the man macros, for `make install`; so the two can't say different things. */
#ifndef FR_TOOLS_CLI_MANUAL_H
#define FR_TOOLS_CLI_MANUAL_H

#include "tools/cli/options.h"

/* about: lines of what the command is and reads, as the overview has them. */
void fr_manual_print(const fr_verb *verbs, size_t count, const char *about, FILE *out);

#endif
