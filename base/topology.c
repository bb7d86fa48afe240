/* Reads the CPU quota, plans threads and partitions work: the parts of topology.h that need no system library.
 *
 * In: a machine description, or the cgroup files of a process. Out: the CPU of each thread, the items that each thread
 * owns, and the number of CPUs that the quota allows. */
#include "base/topology.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"

/* ------------------------------------------------------------------------------------------------------------ quota */

/* Gives quota / period, rounded up; 0 means no limit. A file states "no limit" by a 0 or by text that does not start
 * with a digit ("max", "-1"). */
static uint64_t whole_cpus(const char *quota, const char *period) {
    if (*quota < '0' || *quota > '9' || *period < '0' || *period > '9') return 0;
    unsigned long long time = strtoull(quota, NULL, 10), every = strtoull(period, NULL, 10);
    return time && every ? time / every + (time % every != 0) : 0;
}

/* Reads the quota of cgroup version 2: cpu.max is "QUOTA PERIOD" or "max PERIOD". */
static uint64_t quota_v2(const char *folder) {
    char text[64];
    if (!fr_read_small(folder, "cpu.max", text, sizeof text)) return 0;
    const char *space = strchr(text, ' ');
    return space ? whole_cpus(text, space + 1) : 0;
}

static uint64_t quota_v1(const char *folder) {
    char quota[64], period[64];
    if (!fr_read_small(folder, "cpu.cfs_quota_us", quota, sizeof quota)) return 0;
    if (!fr_read_small(folder, "cpu.cfs_period_us", period, sizeof period)) return 0;
    return whole_cpus(quota, period);
}

int fr_cpu_quota(const char *root) {
    uint64_t cpus = fr_cgroup_least(root, "cpu", quota_v2, quota_v1);
    return cpus > INT_MAX ? INT_MAX : (int)cpus;
}

/* ------------------------------------------------------------------------------------------------------------- plan */

/* Describes a processing unit, and its position in the order in which units get threads. */
typedef struct candidate {
    int cpu, node;
    int sibling; /* number of units of the same core that come before this unit; 0 if this is the core's first unit */
    int ordinal; /* number of this unit among the node's units with the same `sibling` */
    int of;      /* number of the node's units with the same `sibling`, this unit included */
} candidate;

/* Puts the first unit of every core before all siblings. Among units with the same `sibling`, the nodes alternate in
 * proportion to their sizes: unit i of a node with n such units gets the position (i + 1/2) / n. */
static int compare_turns(const void *left, const void *right) {
    const candidate *a = left, *b = right;
    if (a->sibling != b->sibling) return a->sibling - b->sibling;
    int turn = (2 * a->ordinal + 1) * b->of - (2 * b->ordinal + 1) * a->of;
    return turn ? turn : a->node - b->node;
}

/* Fills one candidate for each place, in the order in which the places get threads; returns the number of whole
 * cores. */
static size_t order_places(const fr_machine *machine, bool numa, candidate *list) {
    size_t cores = 0;
    for (size_t i = 0; i < machine->count; i++) {
        const fr_cpu_place *place = &machine->places[i];
        list[i] = (candidate){.cpu = place->cpu, .node = numa ? place->node : 0};
        for (size_t j = 0; j < i; j++) list[i].sibling += machine->places[j].core == place->core;
        cores += list[i].sibling == 0;
    }
    for (size_t i = 0; i < machine->count; i++) {
        for (size_t j = 0; j < machine->count; j++) {
            if (list[j].node != list[i].node || list[j].sibling != list[i].sibling) continue;
            list[i].ordinal += j < i;
            list[i].of++;
        }
    }
    qsort(list, machine->count, sizeof *list, compare_turns);
    return cores;
}

bool fr_pinning_pays(const fr_machine *machine, bool numa) {
    return numa && machine->nodes > 1;
}

void fr_plan_make(const fr_machine *machine, size_t threads, bool pin, bool numa, fr_plan *plan) {
    candidate list[FR_THREADS_MAX];
    size_t cores = order_places(machine, numa, list), quota = (size_t)machine->quota;
    if (!threads) threads = quota && quota < cores ? quota : cores;
    if (threads > FR_THREADS_MAX) threads = FR_THREADS_MAX;
    *plan = (fr_plan){.threads = threads, .nodes = numa ? machine->nodes : 1};
    plan->oversubscribed = threads > machine->count || (quota && threads > quota);

    size_t thread = 0;
    for (int node = 0; node < plan->nodes; node++) {
        for (size_t turn = 0; turn < threads; turn++) {
            const candidate *unit = &list[turn % machine->count];
            if (unit->node != node) continue;
            plan->cpu[thread] = pin ? unit->cpu : -1;
            plan->node[thread++] = node;
        }
    }
}

/* -------------------------------------------------------------------------------------------------------- partition */

/* Gives the item at which unit number `at` begins. If there is no such unit, gives `count`. The product at * unit is
 * not computed then, because it might not fit size_t. */
static size_t unit_begin(size_t at, size_t units, size_t unit, size_t count) {
    return at < units ? at * unit : count;
}

void fr_partition(size_t count, size_t unit, size_t index, size_t parts, size_t *begin, size_t *end) {
    size_t units = count / unit + (count % unit != 0);
    size_t each = units / parts, larger = units % parts;
    size_t first = index * each + (index < larger ? index : larger);
    *begin = unit_begin(first, units, unit, count);
    *end = unit_begin(first + each + (index < larger), units, unit, count);
}
