/* Lines of a file under way: several at once, in the rounds of one engine.
 *
 * In: a file's lines, a setting, and who owns them. Out: each line that the owner needs begun once there is a place for
 * it and run to its end, which the owner is told; a line that finds no page waits for one, and where none of all under
 * way finds one the last gives up its own and begins again later. Places are zeroed to begin with. */
#ifndef FR_TOOLS_JOBS_JOB_PLACES_H
#define FR_TOOLS_JOBS_JOB_PLACES_H

#include "tools/jobs/batch_input.h"

typedef struct fr_job_places {
    fr_job_setting setting;
    fr_batch_input input;
    size_t count;       /* of places */
    fr_job *jobs;       /* [count] without a setting: the place is free */
    fr_job_line *lines; /* [count] theirs */
    fr_job_line *aside; /* [aside_count] lines that were begun and must begin again, the first of them last */
    size_t aside_count;
    bool crowded; /* there were not pages enough for all: none begins before one has ended */
    int32_t (*ids)[FR_STEP_MAX];
    fr_round *rounds;
    size_t begun;  /* lines that were read */
    size_t tokens; /* that rounds gave */

    void *owner;
    bool (*needs)(void *owner, const fr_job_line *line); /* false: it is passed by */
    void (*ended)(void *owner, size_t place);            /* takes what the job has, and ends it */
} fr_job_places;

/* Opens the file of -f. An exit status. */
int fr_job_places_read(fr_job_places *places, const fr_arguments *args);

/* The drafter, and the context that an engine needs: what the line that needs most does, as generate would give it, or
 * *usual. Lines that can't be run ask for none. An exit status. */
int fr_job_places_context(fr_job_places *places, fr_loaded *loaded, int64_t *usual, int64_t *context);

/* Room for them; lines for all that are free, those that can't be run end at once; one round of all that are under way,
 * and how many they were. */
void fr_job_places_take(fr_job_places *places);
void fr_job_places_fill(fr_job_places *places);
int fr_job_places_round(fr_job_places *places, size_t *under_way);

/* What is said at the end where so many lines could not be run: an exit status. */
int fr_job_places_failed(const fr_job_places *places, size_t failed);

/* Ends what is still under way, without the owner; then the engine and the file. */
void fr_job_places_end(fr_job_places *places);
void fr_job_places_close(fr_job_places *places);

#endif
