/* Runs the lines of a file in the rounds of one engine, several at once.
 *
 * In: a file's lines, a setting, and two callbacks of the owner, which is the code that uses this struct. Out: the jobs
 * of all lines that the owner needs. A line begins when a slot is free. When it has been run to its end, the owner is
 * called. A line that finds no free page of the KV cache waits for one. If no line finds a page, the last line gives up
 * its pages and begins again later. The struct must be zeroed at first. */
#ifndef FR_TOOLS_JOBS_JOB_PLACES_H
#define FR_TOOLS_JOBS_JOB_PLACES_H

#include "tools/jobs/batch_input.h"

typedef struct fr_job_places {
    fr_job_setting setting;
    fr_batch_input input;
    size_t count;       /* number of slots */
    fr_job *jobs;       /* [count] the jobs by slot; a slot whose job has no setting is free */
    fr_job_line *lines; /* [count] the lines that the jobs run */
    fr_job_line *aside; /* [aside_count] swapped-out lines, which will begin again; the next one is at the end */
    size_t aside_count;
    bool crowded; /* too few pages were free, so no line begins until another line has ended */
    int32_t (*ids)[FR_STEP_MAX];
    fr_round *rounds;
    size_t begun;  /* number of lines that were read */
    size_t tokens; /* number of tokens that all rounds gave */

    void *owner;
    bool (*needs)(void *owner, const fr_job_line *line); /* asks the owner if a line must be run */
    void (*ended)(void *owner, size_t place);            /* tells the owner that a job has ended; the owner reads its
                                                          * results and frees it */
} fr_job_places;

/* Opens the file of -f. Gives the exit status. */
int fr_job_places_read(fr_job_places *places, const fr_arguments *args);

/* Opens the drafter and computes two contexts. If -c was given, both are its value. Otherwise *usual is the default
 * context, and *context is the largest context that any line needs (as generate would choose it), but at least *usual.
 * Lines that can't be run don't count. Gives the exit status. */
int fr_job_places_context(fr_job_places *places, fr_loaded *loaded, int64_t *usual, int64_t *context);

/* fr_job_places_take allocates the slots. fr_job_places_fill begins lines in all free slots. If a line can't be run,
 * its job ends at once. fr_job_places_round runs one round of all lines that have begun. *under_way is the number of
 * these lines. */
void fr_job_places_take(fr_job_places *places);
void fr_job_places_fill(fr_job_places *places);
int fr_job_places_round(fr_job_places *places, size_t *under_way);

/* Prints the error line at the end of a run. failed: the number of lines that failed. Gives the exit status. */
int fr_job_places_failed(const fr_job_places *places, size_t failed);

/* fr_job_places_end ends all lines that are still being run, without calling the owner. fr_job_places_close closes the
 * engine and the file. */
void fr_job_places_end(fr_job_places *places);
void fr_job_places_close(fr_job_places *places);

#endif
