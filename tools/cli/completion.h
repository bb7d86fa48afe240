/* Prints completion scripts for shells from the tables of verbs and options.
 *
 * In: the tables. Out: a script. bash sources it, zsh finds it as _forerun in its fpath, and fish finds it as
 * forerun.fish in its completions. */
#ifndef FR_TOOLS_CLI_COMPLETION_H
#define FR_TOOLS_CLI_COMPLETION_H

#include "tools/cli/options.h"

/* shell: "bash", "zsh" or "fish". */
void fr_completion_print(const fr_verb *verbs, size_t count, const char *shell, FILE *out);

#endif
