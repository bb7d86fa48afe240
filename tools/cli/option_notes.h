/* Notes options that were given but have no effect, one line for each kind. The kinds are options that only llama.cpp
 * has, sampling options while decoding is greedy, settings of a sampler that is switched off, and samplers that
 * mirostat replaces. */
#ifndef FR_TOOLS_CLI_OPTION_NOTES_H
#define FR_TOOLS_CLI_OPTION_NOTES_H

#include "tools/cli/options.h"

/* Prints the notes. With --quiet it prints nothing. */
void fr_option_notes(const fr_arguments *args);

/* Notes a number of threads far above the number of processors. This note is printed even if another option is
 * wrong. */
void fr_option_note_threads(const fr_arguments *args);

#endif
