/* Handles SIGBUS. The system sends it if a file gets shorter while it is mapped, or if the file's disk fails.
 *
 * In: that signal. Out: if the address belongs to a file that the library has mapped, an error line with the file's
 * name and exit status 1; no output file is left incomplete. Any other SIGBUS has its usual effect. */
#ifndef FR_TOOLS_CLI_LOST_FILE_H
#define FR_TOOLS_CLI_LOST_FILE_H

void fr_lost_file_watch(void);

#endif
