/* Finds how much memory this process can still use: the machine's available memory, within the limits of the process's
 * control groups.
 *
 * In: /proc/meminfo, the limits of both versions of control groups, and how much of them is used. Out: bytes. Pages
 * that cache files count as free, because the system reclaims them when memory is needed. */
#ifndef FR_BASE_MEMORY_H
#define FR_BASE_MEMORY_H

#include "forerun.h"

/* Gives the bytes of memory that are available, or UINT64_MAX if no file states them. root: "" for this system, or a
 * folder with a made-up /proc and /sys. */
uint64_t fr_memory_available(const char *root);

#endif
