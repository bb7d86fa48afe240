/* Reads the lines of a batch's file.
 *
 * In: a path; "-" means standard input. Out: the lines that are not blank, each with its number in the file. A byte
 * order mark before the first line is skipped. */
#ifndef FR_TOOLS_JOBS_BATCH_INPUT_H
#define FR_TOOLS_JOBS_BATCH_INPUT_H

#include "tools/jobs/job.h"

typedef struct fr_batch_input {
    fr_prompt file; /* the bytes of the file */
    const char *name;
    size_t at, row, number; /* how much was read so far. at: number of bytes; row: number of lines; number: number of
                             * lines that are not blank */
    size_t total;           /* number of lines in the file that are not blank */
} fr_batch_input;

/* Opens the file and counts its lines. Gives the exit status. */
int fr_batch_input_open(fr_batch_input *input, const char *path);

/* fr_batch_input_next gives the next line that is not blank. It returns false if there is no further line.
 * fr_batch_input_rewind goes back to the first line. */
bool fr_batch_input_next(fr_batch_input *input, fr_job_line *line);
void fr_batch_input_rewind(fr_batch_input *input);

void fr_batch_input_close(fr_batch_input *input);

#endif
