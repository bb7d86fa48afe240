/* Reads the machine from /sys. The result is what hwloc would read there, without hwloc's memory and time, and without
 * the environment variable HWLOC_SYNTHETIC, which can replace what hwloc reads.
 *
 * In: /sys, and the processing units that this process may use. Out: the machine, all but its quota. The units are
 * sorted by node, then by package, last-level cache and core, each of which is identified by its first unit. */
#ifndef FR_BASE_TOPOLOGY_SYS_H
#define FR_BASE_TOPOLOGY_SYS_H

#include "base/topology.h"

/* Fills the machine. usable: [FR_CPUS_MAX]. Returns false if /sys lacks a unit's core. root: "" for this system, or a
 * folder with a made-up /sys. */
bool fr_machine_from_sys(const char *root, const bool *usable, fr_machine *machine);

/* Lists the processing units that the calling thread may use, [FR_CPUS_MAX]. */
fr_status fr_usable_cpus(bool *usable);

#endif
