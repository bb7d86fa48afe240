/* Replaces names of models by paths. The names are those that other programs use, such as ORG/NAME:TYPE.
 *
 * In: the command line. Out: the command line with paths in place of the names. The name that was given to -m is kept,
 * because some output shows it. */
#ifndef FR_TOOLS_CLI_NAMED_H
#define FR_TOOLS_CLI_NAMED_H

#include "tools/cli/options.h"

/* Replaces the values of -m, -md and --mmproj by paths. Gives the exit status. */
int fr_named_resolve(fr_arguments *args);

#endif
