/* Measures for how long the calling thread, since it started, could have run but had no CPU.
 *
 * In: the file schedstat, in which the system counts this time. Out: nanoseconds, or -1 if the system does not count. A
 * call takes some microseconds. */
#ifndef FR_BASE_CPU_WAIT_H
#define FR_BASE_CPU_WAIT_H

#include <stdint.h>

int64_t fr_cpu_wait_nanoseconds(void);

#endif
