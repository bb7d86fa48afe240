/* Counts what a session does.
 *
 * In: rounds as they happen. Out: the figures of fr_stat. No call allocates memory, because the accepted lengths
 * already have room for as many rounds as the context has positions. */
#ifndef FR_SRC_ENGINE_SESSION_STATS_H
#define FR_SRC_ENGINE_SESSION_STATS_H

#include "base/arena.h"

typedef struct fr_stats {
    double value[FR_STAT_COUNT];
    double depth[FR_STEP_MAX - 1][FR_DEPTH_COUNT];
    uint8_t *accepted_lengths; /* [capacity] accepted drafts of each forward that verified drafts */
    size_t rounds, capacity;
} fr_stats;

void fr_stats_layout(fr_stats *stats, fr_arena *arena, size_t context);

/* Counts a forward that verified `drafted` drafts, of which `accepted` were accepted, and that gave `count` ids. asked:
 * true if drafts were asked for, even if none were made. Accepted drafts after an end of sequence are not counted,
 * because the text ends before them. */
void fr_stats_round(fr_stats *stats, bool asked, size_t drafted, size_t accepted, size_t count);

/* Adds the seconds since *clock to a total, and moves *clock to now. */
void fr_stats_lap(fr_stats *stats, fr_stat total, double *clock);

/* Sets counts and times back to 0; memory figures stay. */
void fr_stats_reset(fr_stats *stats);

#endif
