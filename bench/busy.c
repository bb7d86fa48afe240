/* Measures the CPU time of other programs (busy.h). */
#include "bench/busy.h"

#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SHORTEST 0.3 /* the shortest time, in seconds, over which a share can be measured */

static double seconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Gives the seconds that all CPUs together have worked. They are the sum of the first line of /proc/stat, without idle
 * and waiting time. The numbers of that line are ticks of user, nice, system, idle, waiting for input, interrupts, soft
 * interrupts, and stolen time. */
static double all_seconds(void) {
    enum { COLUMNS = 8, IDLE = 3, WAITING = 4 };
    unsigned long long ticks[COLUMNS], sum = 0;
    FILE *file = fopen("/proc/stat", "r");
    int read = file ? fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0], &ticks[1], &ticks[2],
                             &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7])
                    : 0;
    if (file) fclose(file);
    if (read != COLUMNS) return NAN;
    for (int i = 0; i < COLUMNS; i++)
        if (i != IDLE && i != WAITING) sum += ticks[i];
    return (double)sum / (double)sysconf(_SC_CLK_TCK);
}

fr_bench_busy fr_bench_busy_now(void) {
    return (fr_bench_busy){
        .all = all_seconds(), .own = seconds_of(CLOCK_PROCESS_CPUTIME_ID), .clock = seconds_of(CLOCK_MONOTONIC)};
}

double fr_bench_busy_others(const fr_bench_busy *since) {
    fr_bench_busy now = fr_bench_busy_now();
    double passed = now.clock - since->clock, others = (now.all - since->all) - (now.own - since->own);
    if (passed < SHORTEST || isnan(others)) return NAN;
    return 100 * fmax(0, others) / (passed * (double)sysconf(_SC_NPROCESSORS_ONLN));
}
