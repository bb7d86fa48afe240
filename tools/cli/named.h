/* Models that the command line names as other programs do, ORG/NAME:QUANT, in place of paths.
 *
 * In: the command line. Out: the same with paths, and the name of -m kept for who shows it. */
#ifndef FR_TOOLS_CLI_NAMED_H
#define FR_TOOLS_CLI_NAMED_H

#include "tools/cli/options.h"

/* -m, -md and --mmproj. Gives the exit status. */
int fr_named_resolve(fr_arguments *args);

#endif
