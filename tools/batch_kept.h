/* The answers that an earlier run of the same batch has left.
 *
 * In: the file of answers, as far as it was written, and the lines that they answer, in the same order. Out: for each
 * line its answer, if that is one that need not be had again: neither an error's, nor one that an interrupt ended, nor
 * the last of the file without its end. */
#ifndef FR_TOOLS_BATCH_KEPT_H
#define FR_TOOLS_BATCH_KEPT_H

#include <sys/types.h>

#include "batch_input.h"

typedef struct fr_batch_kept {
    size_t first;   /* the first lines, so many, are answered in the file's first bytes, which may stay there, */
    off_t bytes;    /* so many */
    char **answers; /* [input->total] of lines behind them, free; NULL: it has to be run */
} fr_batch_kept;

/* A file that isn't there has none. One whose ids aren't those of the lines, or that has more lines, is another
 * batch's. Gives the exit status. */
int fr_batch_kept_read(fr_batch_kept *kept, const char *path, fr_batch_input *input);

#endif
