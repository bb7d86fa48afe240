/* How much memory there is for this process: what the machine has left, within its control groups' limits.
 *
 * In: /proc/meminfo, the limits of both versions of control groups and what of them is taken. Out: bytes. Files'
 * pages count as free: the system gives them to whoever needs memory. */
#ifndef FR_BASE_MEMORY_H
#define FR_BASE_MEMORY_H

#include "forerun.h"

/* root: "" for this system, or a folder that holds a made-up /proc and /sys. UINT64_MAX: nothing says. */
uint64_t fr_memory_available(const char *root);

#endif
