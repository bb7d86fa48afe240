/* Reads the answers that an earlier run of the same batch has left.
 *
 * In: the file of answers, as far as it was written, and the lines that they answer, in the same order. Out: for each
 * line its answer if it can be kept. An error, an answer that an interrupt cut off, and an incomplete last line are
 * not kept.
 *
 * The next run can leave only the first answers of OUT in place, up to the first gap. The answers after the gap are
 * saved in OUT.before until they are in OUT again: OUT.before has a row for each line up to the last of these answers,
 * {"error": "not run yet"} for a line without an answer. */
#ifndef FR_TOOLS_CLI_BATCH_KEPT_H
#define FR_TOOLS_CLI_BATCH_KEPT_H

#include <sys/types.h>

#include "tools/jobs/batch_input.h"

typedef struct fr_batch_kept {
    size_t first;   /* number of leading lines whose answers may stay in the file */
    off_t bytes;    /* number of the file's first bytes that these answers take */
    char **answers; /* [input->total] answers of the lines after these, to be freed; NULL: the line must be run */
} fr_batch_kept;

/* Reads the answers. If the file is missing there are none, even if OUT.before exists. A file with other ids, or with
 * more rows than lines, belongs to another batch and is refused. Gives the exit status. */
int fr_batch_kept_read(fr_batch_kept *kept, const char *path, fr_batch_input *input);

/* Writes path.before, or removes it if no answer of the `total` lines follows the first gap. Call it before path is
 * cut to its first bytes. Gives the exit status. It handles the signals that end the command, as every fr_writer
 * does. */
int fr_batch_kept_save(const fr_batch_kept *kept, size_t total, const char *path);

/* Removes path.before if forerun wrote it. */
void fr_batch_kept_drop(const char *path);

#endif
