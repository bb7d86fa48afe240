/* Counts what a session does: see stats.h. */
#include "src/engine/session/stats.h"

#include <string.h>

#include "base/clock.h"

void fr_stats_layout(fr_stats *stats, fr_arena *arena, size_t context) {
    *stats = (fr_stats){.capacity = context};
    stats->accepted_lengths = fr_arena_take(arena, context, 1);
}

static void count_depths(fr_stats *stats, size_t drafted, size_t accepted, size_t count) {
    for (size_t d = 0; d < drafted; d++) {
        double *depth = stats->depth[d];
        depth[FR_DEPTH_DRAFTED] += 1;
        depth[FR_DEPTH_COMPARED] += d < count;
        depth[FR_DEPTH_ACCEPTED] += d < accepted;
        depth[FR_DEPTH_REJECTED] += d >= accepted;
    }
}

void fr_stats_round(fr_stats *stats, bool asked, size_t drafted, size_t accepted, size_t count) {
    stats->value[FR_STAT_TARGET_CALLS] += 1;
    stats->value[FR_STAT_DRAFT_CALLS] += asked;
    if (drafted == 0) return;
    stats->value[FR_STAT_DRAFTED] += (double)drafted;
    stats->value[FR_STAT_ACCEPTED] += (double)accepted;
    stats->value[FR_STAT_REJECTED] += (double)(drafted - accepted);
    count_depths(stats, drafted, accepted, count);
    if (stats->rounds < stats->capacity) stats->accepted_lengths[stats->rounds++] = (uint8_t)accepted;
}

void fr_stats_reset(fr_stats *stats) {
    for (size_t i = 0; i < FR_STAT_TARGET_WEIGHT_BYTES; i++) stats->value[i] = 0;
    memset(stats->depth, 0, sizeof stats->depth);
    stats->rounds = 0;
}

void fr_stats_lap(fr_stats *stats, fr_stat total, double *clock) {
    double now = fr_clock();
    stats->value[total] += now - *clock;
    *clock = now;
}
