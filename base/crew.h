/* How many threads of a team take part, where other programs want the same cores.
 *
 * In: of each job its kind (what is done alike takes alike long), how long it took, and how long threads of it that had
 * work stood in line for a core. Out: how many shall take part in the next one. A barrier waits for the last thread, so
 * one that gets half a core halves them all; without it the others are often faster. Whether they are is tried: where
 * threads stand in line, one is parked for a while, and stays so if the same jobs then take less time; a parked one is
 * tried again after periods that grow. Where no thread stands in line none is ever parked. Pure: it knows no clock. */
#ifndef FR_BASE_CREW_H
#define FR_BASE_CREW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_CREW_KINDS 32 /* that are known at a time */

/* Times are in nanoseconds. */
typedef struct fr_crew_kind {
    uint64_t kind;
    double usual;   /* its time with the number that takes part between trials */
    uint64_t times; /* that it was seen; 0: no kind */
    uint64_t used;  /* when it came last, counted in jobs */
} fr_crew_kind;

/* Trials of one direction: the next one begins no earlier. */
typedef struct fr_crew_patience {
    int64_t until, period;
} fr_crew_patience;

typedef struct fr_crew {
    size_t seats;   /* threads of the team */
    size_t settled; /* how many take part between trials */
    size_t taking;  /* how many take part now */
    fr_crew_kind kinds[FR_CREW_KINDS];
    uint64_t jobs;
    double watched, in_line; /* time of jobs that were watched, of late, and what threads of them stood in line */
    double expected, actual; /* time of the trial's jobs: with `settled`, and as it is */
    size_t tried;            /* how many those are */
    uint64_t first;          /* jobs before the trial */
    int64_t began;           /* the trial */
    int64_t ended;           /* the last job */
    fr_crew_patience fewer, more;
    double share; /* in line, of the time before the trial: more than that can't be gained */
    size_t stride; /* how many times as many are parked at once, after trials that found too few */
} fr_crew;

void fr_crew_open(fr_crew *crew, size_t seats);

/* How many take part in a job that begins now, 1 to seats. */
size_t fr_crew_taking(fr_crew *crew, int64_t now);

/* That job is done. in_line: of all its threads together; below 0: not watched. */
void fr_crew_ran(fr_crew *crew, uint64_t kind, int64_t now, int64_t took, int64_t in_line);

#endif
