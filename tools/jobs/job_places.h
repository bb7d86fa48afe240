/* Runs the lines of a file in the rounds of one engine, several at once.
 *
 * In: a file's lines, a setting, and the owner of the lines. Out: each line that the owner needs is begun when a slot
 * is free and run to its end, and then the owner is called. A line that finds no page waits for one. If no line finds
 * a page, the last one gives up its pages and begins again later. The struct is zeroed at first. */
#ifndef FR_TOOLS_JOBS_JOB_PLACES_H
#define FR_TOOLS_JOBS_JOB_PLACES_H

#include "tools/jobs/batch_input.h"

typedef struct fr_job_places {
    fr_job_setting setting;
    fr_batch_input input;
    size_t count;       /* number of slots */
    fr_job *jobs;       /* [count] by slot; a job without a setting: the slot is free */
    fr_job_line *lines; /* [count] the lines of these jobs */
    fr_job_line *aside; /* [aside_count] lines that were swapped out and must begin again; the next one is the last */
    size_t aside_count;
    bool crowded; /* pages were short, so no line begins before another one has ended */
    int32_t (*ids)[FR_STEP_MAX];
    fr_round *rounds;
    size_t begun;  /* lines that were read */
    size_t tokens; /* tokens that the rounds gave */

    void *owner;
    bool (*needs)(void *owner, const fr_job_line *line); /* false: the line is skipped */
    void (*ended)(void *owner, size_t place);            /* takes the results of a job, and ends it */
} fr_job_places;

/* Opens the file of -f. Gives the exit status. */
int fr_job_places_read(fr_job_places *places, const fr_arguments *args);

/* Opens the drafter and gives two contexts. *usual: -c or, without it, the default. *context: the one for the engine,
 * which is *usual with -c; otherwise it is the largest that a line needs, as generate would choose it, but at least
 * *usual. Lines that can't be run do not count. Gives the exit status. */
int fr_job_places_context(fr_job_places *places, fr_loaded *loaded, int64_t *usual, int64_t *context);

/* The first makes room for the lines. The second begins lines in all free slots; lines that can't be run end at once.
 * The third runs one round of all lines that have begun, and gives their number. */
void fr_job_places_take(fr_job_places *places);
void fr_job_places_fill(fr_job_places *places);
int fr_job_places_round(fr_job_places *places, size_t *under_way);

/* Prints the error line at the end of a run in which this many lines failed. Gives the exit status. */
int fr_job_places_failed(const fr_job_places *places, size_t failed);

/* The first ends the lines that are being run, without a call of the owner; the second closes the engine and the
 * file. */
void fr_job_places_end(fr_job_places *places);
void fr_job_places_close(fr_job_places *places);

#endif
