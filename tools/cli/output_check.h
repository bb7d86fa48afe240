/* Refuses a command that would overwrite a file that it reads, for example if -o and -m name the same file. It also
 * refuses a command that would write two outputs to the same file.
 *
 * In: the checked command line. Out: 0, or exit status 2 after one line, before anything was opened. Two existing names
 * are the same file if their device and inode are equal, so hard and symbolic links are found too. If neither file
 * exists, two names are the same file if they have the same last component in the same folder. A path that is no
 * regular file (a pipe, a device) may be both read and written. */
#ifndef FR_TOOLS_CLI_OUTPUT_CHECK_H
#define FR_TOOLS_CLI_OUTPUT_CHECK_H

#include "tools/cli/options.h"

int fr_output_check_overwrites(const fr_arguments *args);

#endif
