/* Gives the seconds of a monotonic clock. */
#ifndef FR_TOOLS_SERVE_SECONDS_H
#define FR_TOOLS_SERVE_SECONDS_H

#include <time.h>

static inline double fr_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
