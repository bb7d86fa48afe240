/* What a session counted: see stats.h. */
#include "src/stats.h"

#include <sys/resource.h>
#include <time.h>

void fr_stats_layout(fr_stats *stats, fr_arena *arena, size_t context) {
    *stats = (fr_stats){.room = context};
    stats->accepted_lengths = fr_arena_take(arena, context, 1);
}

void fr_stats_round(fr_stats *stats, size_t drafted, size_t accepted) {
    stats->value[FR_STAT_TARGET_CALLS] += 1;
    if (drafted == 0) return;
    stats->value[FR_STAT_DRAFT_CALLS] += 1;
    stats->value[FR_STAT_DRAFTED] += (double)drafted;
    stats->value[FR_STAT_ACCEPTED] += (double)accepted;
    stats->value[FR_STAT_REJECTED] += (double)(drafted - accepted);
    if (stats->rounds < stats->room) stats->accepted_lengths[stats->rounds++] = (uint8_t)accepted;
}

void fr_stats_reset(fr_stats *stats) {
    for (size_t i = 0; i < FR_STAT_TARGET_WEIGHT_BYTES; i++) stats->value[i] = 0;
    stats->rounds = 0;
}

double fr_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double fr_peak_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? 1024.0 * (double)usage.ru_maxrss : 0.0;
}
