/* Refuses a command that would write over a file that it reads (the same -o and -m, for example), or over another file
 * that it writes.
 *
 * In: the checked command line. Out: 0, or exit status 2 after one line, before anything was opened. Two names stand
 * for the same file if device and inode are equal, which also finds hard and symbolic links, or if neither file exists
 * and both have the same name in the same folder. A path that is no regular file (a pipe, a device) may be both read
 * and written. */
#ifndef FR_TOOLS_CLI_OUTPUT_CHECK_H
#define FR_TOOLS_CLI_OUTPUT_CHECK_H

#include "tools/cli/options.h"

int fr_output_check_overwrites(const fr_arguments *args);

#endif
