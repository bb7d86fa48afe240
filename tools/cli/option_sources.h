/* Reads options of serve that are not on the command line: from a configuration file and from the environment.
 *
 * In: the arguments of the command line. Out: values of options that the command line does not give. There are four
 * sources: the command line, the file of --config (or FORERUN_CONFIG), variables FORERUN_NAME, and variables of
 * llama.cpp's server (LLAMA_ARG_NAME, LLAMA_API_KEY). The first source in this order that has an option gives its
 * value. A note lists the variables of llama.cpp's server that are used. Other verbs read neither the file nor the
 * variables. */
#ifndef FR_TOOLS_CLI_OPTION_SOURCES_H
#define FR_TOOLS_CLI_OPTION_SOURCES_H

#include "tools/cli/options.h"

/* Returns 0. After an error line, which names the file and line or the variable, it returns the exit status. */
int fr_option_sources_read(fr_arguments *args);

#endif
