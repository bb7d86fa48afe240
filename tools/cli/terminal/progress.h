/* Shows one line of progress on standard error while weights are read or a text is scored. The line is rewritten in
 * place and erased at the end. If standard error is not a terminal, nothing is written. */
#ifndef FR_TOOLS_CLI_TERMINAL_PROGRESS_H
#define FR_TOOLS_CLI_TERMINAL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fr_progress {
    const char *doing; /* what is being done, such as "loading" */
    bool on;
    int percent; /* the percentage that is shown; -1: nothing is shown */
} fr_progress;

fr_progress fr_progress_begin(const char *doing, bool quiet);

/* Shows the progress (an fr_progress_fn whose context is the fr_progress). The result always means that the work goes
 * on. */
bool fr_progress_show(void *context, uint64_t done, uint64_t total);

/* Shows the progress as a percentage of `things`, such as "scoring  12% of 40 chunks". so_far: an interim result that
 * is shown at the end of the line; "": none. */
void fr_progress_count(fr_progress *progress, uint64_t done, uint64_t total, const char *things, const char *so_far);
void fr_progress_end(fr_progress *progress);

#endif
