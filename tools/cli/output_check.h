/* Whether a command would write over a file that it reads, its -o and its -m, say, or over another that it writes.
 *
 * In: the checked command line. Out: 0, or exit status 2 after one line, before anything was opened. Two names are one
 * file where device and inode are, so links of both kinds are seen through, or where both are new and of one name in
 * one folder; what is no regular file (a pipe, a device) may be both. */
#ifndef FR_TOOLS_CLI_OUTPUT_CHECK_H
#define FR_TOOLS_CLI_OUTPUT_CHECK_H

#include "tools/cli/options.h"

int fr_output_check_overwrites(const fr_arguments *args);

#endif
