/* Decides how many threads of a team take part while other programs want the same cores.
 *
 * In: the kind of each job (jobs of one kind take about equally long), its time, and how long its threads waited for a
 * core while they had work. Out: the number of threads for the next job. A barrier waits for the last thread, so one
 * thread that gets half a core halves the speed of all threads. Without that thread the others are often faster. Trials
 * decide: if threads wait for a core, one is parked for a while, and it stays parked if the same jobs then take less
 * time. A parked thread is tried again at increasing intervals. If no thread waits for a core, none is parked. Pure: it
 * reads no clock. */
#ifndef FR_BASE_TEAM_SIZE_H
#define FR_BASE_TEAM_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_TEAM_SIZE_KINDS 32 /* kinds that are remembered at a time */

/* Describes a kind of job. */
typedef struct fr_team_size_kind {
    uint64_t kind;
    double usual;   /* average nanoseconds of a job of this kind with `settled` threads */
    uint64_t times; /* count of jobs of this kind that were seen; 0: the entry is empty */
    uint64_t used;  /* value of `jobs` at the last job of this kind */
} fr_team_size_kind;

/* Says when the next trial in one direction may begin. The directions are fewer threads and more threads. `until` is
 * the earliest time of the next trial. The trial after that one is put off by at least `period`. */
typedef struct fr_team_size_patience {
    int64_t until, period;
} fr_team_size_patience;

typedef struct fr_team_size {
    size_t threads; /* threads of the team */
    size_t settled; /* number of threads that take part between trials */
    size_t taking;  /* number of threads that take part now */
    fr_team_size_kind kinds[FR_TEAM_SIZE_KINDS];
    uint64_t jobs;
    double watched, in_line; /* watched: time of the recent watched jobs; in_line: time for which their threads waited
                              * for a core */
    double expected, actual; /* time of the trial's jobs: the time that is expected with `settled` threads, and the
                              * measured time */
    size_t tried;            /* number of jobs in the trial */
    uint64_t first;          /* value of `jobs` when the trial began */
    int64_t began;           /* time when the trial began */
    int64_t ended;           /* time when the last job ended */
    fr_team_size_patience fewer, more;
    double share;  /* share of the time that threads waited for a core before the trial; a trial can gain at most this
                    * share */
    size_t stride; /* factor for the number of threads that are parked at once; it grows after trials that parked too
                    * few */
} fr_team_size;

void fr_team_size_open(fr_team_size *team_size, size_t threads);

/* Returns the number of threads for a job that begins now, 1 to threads. */
size_t fr_team_size_choose(fr_team_size *team_size, int64_t now);

/* Reports that this job is done. in_line: time that all its threads together waited for a core; negative if it was not
 * measured. */
void fr_team_size_learn(fr_team_size *team_size, uint64_t kind, int64_t now, int64_t took, int64_t in_line);

#endif
