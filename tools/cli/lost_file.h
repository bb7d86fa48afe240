/* A file that gets shorter while its bytes are used, or whose disk fails: the system sends SIGBUS.
 *
 * In: that signal. Out: where the library has the file mapped, a line that names it and exit status 1, with no file
 * left half written. Any other SIGBUS is as without this. */
#ifndef FR_TOOLS_CLI_LOST_FILE_H
#define FR_TOOLS_CLI_LOST_FILE_H

void fr_lost_file_watch(void);

#endif
