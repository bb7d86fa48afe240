/* Replaces names of models that other programs use, ORG/NAME:QUANT, by paths.
 *
 * In: the command line. Out: the same with paths, and the name of -m, kept for output that shows it. */
#ifndef FR_TOOLS_CLI_NAMED_H
#define FR_TOOLS_CLI_NAMED_H

#include "tools/cli/options.h"

/* Replaces the values of -m, -md and --mmproj. Gives the exit status. */
int fr_named_resolve(fr_arguments *args);

#endif
