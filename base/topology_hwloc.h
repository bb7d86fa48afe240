/* The step from hwloc to fr_machine by itself, so that tests can give it synthetic machines.
 *
 * In: a loaded topology and the processing units that may be used. Out: the machine, all but its quota (0). */
#ifndef FR_BASE_TOPOLOGY_HWLOC_H
#define FR_BASE_TOPOLOGY_HWLOC_H

#include <hwloc.h>

#include "base/topology.h"

/* Units beyond the first FR_MAX_THREADS are left out; no unit at all is FR_MACHINE. */
fr_status fr_machine_from_hwloc(hwloc_topology_t topology, hwloc_const_cpuset_t usable, fr_machine *machine);

#endif
