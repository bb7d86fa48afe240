/* One line on standard error while weights are read, rewritten in place and erased at the end. Only for people:
 * nothing is written where standard error is no terminal. */
#ifndef FR_TOOLS_PROGRESS_H
#define FR_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fr_progress {
    const char *doing; /* "loading" */
    bool on;
    int percent; /* what the line says, -1 when there is none */
} fr_progress;

fr_progress fr_progress_begin(const char *doing, bool quiet);

/* An fr_progress_fn; context is the fr_progress. */
void fr_progress_show(void *context, uint64_t done, uint64_t total);
void fr_progress_end(fr_progress *progress);

#endif
