/* Reads the answers that an earlier run of the same batch has left.
 *
 * In: the file of answers, OUT, which may be incomplete, and the lines of the batch in the same order. Out: each
 * line's answer if it can be kept. An error, an answer that an interrupt cut off, and an incomplete last line are not
 * kept.
 *
 * The next run keeps the answers in OUT up to the first line without an answer, and continues after them. Later
 * answers are saved in OUT.before until they are in OUT again. OUT.before has a line for each line of the batch up to
 * the last one with a saved answer. A line of the batch without a saved answer has {"error": "not run yet"} there. */
#ifndef FR_TOOLS_CLI_BATCH_KEPT_H
#define FR_TOOLS_CLI_BATCH_KEPT_H

#include <sys/types.h>

#include "tools/jobs/batch_input.h"

typedef struct fr_batch_kept {
    size_t first; /* number of lines of the batch before the first one without an answer; the answers to these lines
                   * stay in OUT */
    off_t bytes;  /* number of bytes at the beginning of OUT that the answers to the first `first` lines take */
    /* [input->total] for each line of the batch its saved answer, to be freed. NULL: the line must be run, or it is one
     * of the `first` lines above */
    char **answers;
} fr_batch_kept;

/* Reads the answers in `path` (OUT) and in OUT.before. If OUT is missing, no answers are kept, even if OUT.before
 * exists. A file belongs to another batch if its ids are not those of `input`, or if it has more lines than `input`.
 * Such a file is refused. Gives the exit status. */
int fr_batch_kept_read(fr_batch_kept *kept, const char *path, fr_batch_input *input);

/* Writes the saved answers to path.before. If there are no saved answers, removes that file. `total` is the number of
 * lines of the batch. Call this function before the part of `path` that has these answers is cut off. Gives the exit
 * status. Like any fr_writer it sets handlers for the signals that end the command. */
int fr_batch_kept_save(const fr_batch_kept *kept, size_t total, const char *path);

/* Removes path.before if forerun wrote it. */
void fr_batch_kept_drop(const char *path);

#endif
