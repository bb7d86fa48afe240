/* Opens the adapters (LoRA) and control vectors that a command line names, and makes sessions use them.
 *
 * In: --lora FILE[=SCALE] and --lora-scaled FILE:SCALE, which may be given several times, and may list several files
 * with commas between them; --lora-init-without-apply; --control-vector FILE and --control-vector-scaled FILE:SCALE in
 * the same way.
 * Out: the opened adapters and vectors with their scales, in the order of the command line. */
#ifndef FR_TOOLS_CLI_ADAPTERS_H
#define FR_TOOLS_CLI_ADAPTERS_H

#include "forerun.h"
#include "tools/cli/options.h"

enum { FR_LOADED_ADAPTERS_MAX = 64 };

typedef struct fr_loaded_adapters {
    size_t count;
    fr_adapter *opened[FR_LOADED_ADAPTERS_MAX];
    char *path[FR_LOADED_ADAPTERS_MAX];
    double scale[FR_LOADED_ADAPTERS_MAX]; /* 0: the adapter is opened, but only a request to serve can use it */
    size_t vectors;                       /* number of control vectors; every session uses all of them */
    fr_adapter *vector[FR_ADAPTERS_MAX];
    char *vector_path[FR_ADAPTERS_MAX];
    double vector_scale[FR_ADAPTERS_MAX];
} fr_loaded_adapters;

/* Counts the adapters and control vectors that are in use. An adapter or vector is in use if its scale is not 0.
 * scales: the adapters' scales. */
size_t fr_adapters_count_used(const fr_loaded_adapters *adapters, const double *scales);

/* Checks the values of the options before a model is opened. Gives the exit status. */
int fr_adapters_check(const fr_arguments *args);

/* Reads the paths and scales of the command line, without opening a file. Gives the exit status. */
int fr_adapters_read(fr_loaded_adapters *adapters, const fr_arguments *args);

/* Opens the adapters of the command line. Gives the exit status. */
int fr_adapters_open(fr_loaded_adapters *adapters, const fr_model *model, const fr_arguments *args);
void fr_adapters_close(fr_loaded_adapters *adapters);

/* Makes a session use the control vectors and the adapters. scales: the adapters' scales; NULL: the scales of the
 * command line. */
fr_status fr_adapters_use(const fr_loaded_adapters *adapters, const double *scales, fr_session *session);

#endif
