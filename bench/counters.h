/* Reads the processor's own counters by perf_event_open(2), if the system and the machine provide them.
 *
 * In: a list of events. Out: how often each event happened in a thread between start and stop. Events in the operating
 * system's own code are not counted. If the machine does not have an event, its count is NaN. If several events use the
 * same counter by turns, their counts are extrapolated to the whole time. */
#ifndef FR_BENCH_COUNTERS_H
#define FR_BENCH_COUNTERS_H

#include <stdint.h>

typedef enum fr_bench_counter {
    FR_BENCH_CYCLES,
    FR_BENCH_INSTRUCTIONS,
    FR_BENCH_L1_MISSES,  /* read misses of the level 1 data cache */
    FR_BENCH_L2_MISSES,  /* read misses of the level 2 cache; known only for some processors, because perf has no common
                          * event for them */
    FR_BENCH_LLC_MISSES, /* read misses of the last level of caches */
    FR_BENCH_COUNTERS
} fr_bench_counter;

/* Describes an event in the form that perf_event_open takes. */
typedef struct fr_bench_event {
    uint32_t type;
    uint64_t config;
} fr_bench_event;

/* Gives the events that are counted, with this processor's numbers for them. */
void fr_bench_events(fr_bench_event events[FR_BENCH_COUNTERS]);

typedef struct fr_bench_counting {
    int files[FR_BENCH_COUNTERS]; /* descriptors of the counters; -1 if the event can't be counted */
} fr_bench_counting;

/* Opens the counters of the calling thread. Gives 0, or the reason (an errno) why the first event can't be counted. */
int fr_bench_counting_open(fr_bench_counting *counting, const fr_bench_event events[FR_BENCH_COUNTERS]);
void fr_bench_counting_close(fr_bench_counting *counting);

void fr_bench_counting_start(const fr_bench_counting *counting);
void fr_bench_counting_stop(const fr_bench_counting *counting, double counts[FR_BENCH_COUNTERS]);

#endif
