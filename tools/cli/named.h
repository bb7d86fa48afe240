/* Replaces names of models that other programs use, such as ORG/NAME:TYPE, by paths.
 *
 * In: the command line. Out: the command line with paths instead of names; and the name that was given to -m, which
 * some output shows. */
#ifndef FR_TOOLS_CLI_NAMED_H
#define FR_TOOLS_CLI_NAMED_H

#include "tools/cli/options.h"

/* Replaces the values of -m, -md and --mmproj. Gives the exit status. */
int fr_named_resolve(fr_arguments *args);

#endif
