/* Notes about given options that have no effect, one line for each kind: options of llama.cpp's, sampling options while
 * decoding is greedy, settings of a sampler that is off, and filters that mirostat replaces. */
#ifndef FR_TOOLS_CLI_OPTION_NOTES_H
#define FR_TOOLS_CLI_OPTION_NOTES_H

#include "tools/cli/options.h"

/* Prints the notes; nothing with --quiet. */
void fr_option_notes(const fr_arguments *args);

/* Notes a number of threads far above the machine's processors. This note is also printed after an error about a wrong
 * option. */
void fr_option_note_threads(const fr_arguments *args);

#endif
