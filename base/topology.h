/* Finds the cores that this process may use and their NUMA nodes, and plans where each thread runs.
 *
 * In: /sys, as far as the process's affinity mask and CPU quota allow (topology_sys.c). If /sys lacks the facts, hwloc
 * describes the machine (topology_hwloc.c). Builds without hwloc, such as those for arm64, then assume one node
 * (topology_plain.c). Out: a plan, plain data. fr_plan_make is pure: tests give it synthetic machines. */
#ifndef FR_BASE_TOPOLOGY_H
#define FR_BASE_TOPOLOGY_H

#include "forerun.h"

#define FR_THREADS_MAX 1024
#define FR_CPUS_MAX    8192 /* all CPU numbers are below this, which is Linux's own limit */

/* Describes one processing unit that may be used; units of one core need not be adjacent. */
typedef struct fr_cpu_place {
    int cpu;  /* the system's number of the unit */
    int core; /* units of one core have equal numbers */
    int node; /* NUMA node, numbered from 0 without gaps */
} fr_cpu_place;

typedef struct fr_machine {
    fr_cpu_place places[FR_THREADS_MAX];
    size_t count; /* number of units, at least 1 */
    int nodes;    /* number of NUMA nodes, at least 1 */
    int quota;    /* number of CPUs that the cgroup's quota allows, rounded up, at least 1; 0 if there is no quota */
} fr_machine;

typedef struct fr_plan {
    size_t threads;           /* number of threads, at least 1 */
    int cpu[FR_THREADS_MAX];  /* the CPU to which thread t is pinned; -1 if it is not pinned */
    int node[FR_THREADS_MAX]; /* the node of thread t; threads with higher numbers have the same node or a higher one */
    int nodes;                /* number of nodes; some may have no thread */
    bool oversubscribed;      /* there are more threads than units or quota, so threads that wait yield instead of
                               * spinning */
} fr_plan;

/* Reads this machine, restricted to the CPUs that the calling thread may use. */
fr_status fr_machine_read(fr_machine *machine);

/* Gives the number of CPUs that the quotas of this process's cgroup and of the cgroups above it allow, rounded up. It
 * is 0 if there is no limit, or if the limit cannot be read. root: "" for this system, or a folder that holds a made-up
 * /proc and /sys. */
int fr_cpu_quota(const char *root);

/* Returns true if threads should be pinned by default. They should be if memory is placed by NUMA node (`numa`) and the
 * machine has several nodes. On other machines a pinned thread would wait for its core while other cores are idle. */
bool fr_pinning_pays(const fr_machine *machine, bool numa);

/* Plans the threads. threads 0: one per core (not per sibling) that affinity and quota allow. pin false: cpu is -1.
 * numa false: nodes are ignored. Each node gets a number of threads in proportion to its cores. The first units of all
 * cores get threads before their siblings do. If there are more threads than units, the units are used again from the
 * first. At most FR_THREADS_MAX threads are planned. */
void fr_plan_make(const fr_machine *machine, size_t threads, bool pin, bool numa, fr_plan *plan);

/* Gives the items [*begin, *end) of `count` that part `index` of `parts` owns. Parts are contiguous and in order. Each
 * part consists of whole units of `unit` items, and only the last unit may be shorter. The sizes of parts differ by at
 * most one unit. Pure. Weights are divided by this function. So it decides which thread reads a row and touches it
 * first, and thereby the row's NUMA node. */
void fr_partition(size_t count, size_t unit, size_t index, size_t parts, size_t *begin, size_t *end);

#endif
