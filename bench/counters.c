/* Reads counters by perf_event_open(2) (counters.h). */
#include "bench/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

/* Gives the perf event that counts the reads that miss a cache. */
static fr_bench_event read_misses(uint64_t cache) {
    uint64_t config = cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
    return (fr_bench_event){PERF_TYPE_HW_CACHE, config};
}

/* Gives the processor's own event for misses of the L2 cache, for which perf has no common name: L2_RQSTS.MISS of
 * Intel's cores, "L2 cache misses from L1" of AMD's Zen, L2D_CACHE_REFILL of the Arm architecture. */
static fr_bench_event l2_misses(void) {
#ifdef __x86_64__
    unsigned most, b, c, d;
    if (__get_cpuid(0, &most, &b, &c, &d) && b == signature_INTEL_ebx) return (fr_bench_event){PERF_TYPE_RAW, 0x3f24};
    return (fr_bench_event){PERF_TYPE_RAW, 0x0964};
#else
    return (fr_bench_event){PERF_TYPE_RAW, 0x17};
#endif
}

void fr_bench_events(fr_bench_event events[FR_BENCH_COUNTERS]) {
    events[FR_BENCH_CYCLES] = (fr_bench_event){PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES};
    events[FR_BENCH_INSTRUCTIONS] = (fr_bench_event){PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS};
    events[FR_BENCH_L1_MISSES] = read_misses(PERF_COUNT_HW_CACHE_L1D);
    events[FR_BENCH_L2_MISSES] = l2_misses();
    events[FR_BENCH_LLC_MISSES] = read_misses(PERF_COUNT_HW_CACHE_LL);
}

int fr_bench_counting_open(fr_bench_counting *counting, const fr_bench_event events[FR_BENCH_COUNTERS]) {
    int reason = 0;
    for (int i = 0; i < FR_BENCH_COUNTERS; i++) {
        struct perf_event_attr attr = {.type = events[i].type,
                                       .size = sizeof attr,
                                       .config = events[i].config,
                                       .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
                                       .disabled = 1,
                                       .exclude_kernel = 1,
                                       .exclude_hv = 1};
        counting->files[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (i == 0 && counting->files[i] < 0) reason = errno;
    }
    return reason;
}

void fr_bench_counting_close(fr_bench_counting *counting) {
    for (int i = 0; i < FR_BENCH_COUNTERS; i++) {
        if (counting->files[i] >= 0) close(counting->files[i]);
        counting->files[i] = -1;
    }
}

void fr_bench_counting_start(const fr_bench_counting *counting) {
    for (int i = 0; i < FR_BENCH_COUNTERS; i++) {
        if (counting->files[i] < 0) continue;
        ioctl(counting->files[i], PERF_EVENT_IOC_RESET, 0);
        ioctl(counting->files[i], PERF_EVENT_IOC_ENABLE, 0);
    }
}

/* Reads the counters. A count is scaled by the time for which counting was requested, divided by the time in which the
 * counter ran. PERF_EVENT_IOC_RESET clears the counts but leaves these times, so their ratio covers all the time since
 * the counter was opened. */
void fr_bench_counting_stop(const fr_bench_counting *counting, double counts[FR_BENCH_COUNTERS]) {
    for (int i = 0; i < FR_BENCH_COUNTERS; i++)
        if (counting->files[i] >= 0) ioctl(counting->files[i], PERF_EVENT_IOC_DISABLE, 0);
    for (int i = 0; i < FR_BENCH_COUNTERS; i++) {
        /* The system gives three numbers: the count, the nanoseconds for which counting was requested, and the
         * nanoseconds in which the counter really ran. */
        uint64_t got[3];
        bool told = counting->files[i] >= 0 && read(counting->files[i], got, sizeof got) == sizeof got && got[2] > 0;
        counts[i] = told ? (double)got[0] * (double)got[1] / (double)got[2] : NAN;
    }
}
