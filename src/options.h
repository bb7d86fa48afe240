/* Settings as the library reads them.
 *
 * In: fr_options_set calls, each checked for range. Out: plain values, defaults filled in; -1 where the default depends
 * on the model or the machine. */
#ifndef FR_SRC_OPTIONS_H
#define FR_SRC_OPTIONS_H

#include "src/log.h"

struct fr_options {
    int64_t value[FR_OPT_COUNT];
    char isa[16]; /* "" for the best here */
    fr_progress_fn *progress;
    void *progress_context;
    fr_log log;
};

/* The options, or the defaults where options is NULL. */
fr_options fr_options_resolve(const fr_options *options);

#endif
