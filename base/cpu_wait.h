/* Measures how long the calling thread could have run but had no CPU, since it was started.
 *
 * In: the system's account of it (schedstat). Out: nanoseconds, or -1 if the system keeps none. Takes some
 * microseconds. */
#ifndef FR_BASE_CPU_WAIT_H
#define FR_BASE_CPU_WAIT_H

#include <stdint.h>

int64_t fr_cpu_wait_nanoseconds(void);

#endif
