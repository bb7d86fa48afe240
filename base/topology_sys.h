/* The machine as the kernel tells it in /sys: what hwloc would read there, without its memory, its time and what its
 * environment (HWLOC_SYNTHETIC) may say instead.
 *
 * In: which processing units this process may use, /sys. Out: the machine, all but its quota, units in the order of
 * nodes, packages, last-level caches and cores, each by its first unit. */
#ifndef FR_BASE_TOPOLOGY_SYS_H
#define FR_BASE_TOPOLOGY_SYS_H

#include "base/topology.h"

/* usable: [FR_MAX_CPUS]. False where /sys lacks a unit's core. root: "" for this system, or a folder with a made-up
 * /sys. */
bool fr_machine_from_sys(const char *root, const bool *usable, fr_machine *machine);

/* The processing units that the calling thread may use, [FR_MAX_CPUS]. */
fr_status fr_usable_cpus(bool *usable);

#endif
