/* Converts hwloc's topology to an fr_machine. The conversion is a separate function so that tests can give it synthetic
 * machines.
 *
 * In: a loaded topology and the processing units that may be used. Out: the machine, all but its quota, which is 0. */
#ifndef FR_BASE_TOPOLOGY_HWLOC_H
#define FR_BASE_TOPOLOGY_HWLOC_H

#include <hwloc.h>

#include "base/topology.h"

/* Leaves out units beyond the first FR_THREADS_MAX. Fails with FR_MACHINE if there is no unit at all. */
fr_status fr_machine_from_hwloc(hwloc_topology_t topology, hwloc_const_cpuset_t usable, fr_machine *machine);

#endif
