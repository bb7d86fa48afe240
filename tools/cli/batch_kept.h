/* The answers that an earlier run of the same batch has left.
 *
 * In: the file of answers, as far as it was written, and the lines that they answer, in the same order. Out: for each
 * line its answer, if that is one that need not be had again: neither an error's, nor one that an interrupt ended, nor
 * the last of the file without its end.
 *
 * Of OUT a run that goes on can leave only the first bytes where they are. Answers behind them lie in OUT.before until
 * they are in OUT again: as many rows as lines up to the last of them, {"error": "not run yet"} where it has none. */
#ifndef FR_TOOLS_CLI_BATCH_KEPT_H
#define FR_TOOLS_CLI_BATCH_KEPT_H

#include <sys/types.h>

#include "tools/jobs/batch_input.h"

typedef struct fr_batch_kept {
    size_t first;   /* the first lines, so many, are answered in the file's first bytes, which may stay there, */
    off_t bytes;    /* so many */
    char **answers; /* [input->total] of lines behind them, free; NULL: it has to be run */
} fr_batch_kept;

/* A file that isn't there has none, whatever lies beside it. One whose ids aren't those of the lines, or that has more
 * lines, is another batch's. Gives the exit status. */
int fr_batch_kept_read(fr_batch_kept *kept, const char *path, fr_batch_input *input);

/* Writes path.before, or removes it where no answer of `total` lines lies behind the first; before path is cut to its
 * first bytes. Gives the exit status. Takes over the signals that end the command, as every fr_writer does. */
int fr_batch_kept_save(const fr_batch_kept *kept, size_t total, const char *path);

/* Removes path.before, if it is one that was written here. */
void fr_batch_kept_drop(const char *path);

#endif
