/* Reads the machine from /sys: see topology_sys.h. */
#include "base/topology_sys.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/error.h"

/* Describes a processing unit by its CPU number. The other members name the core, cache, package and node that the unit
 * belongs to, each by the number of its first CPU. */
typedef struct unit {
    int cpu, core, cache, package, node;
} unit;

#define NO_CPU (-1)
#define CPUS   "%s/sys/devices/system/cpu/cpu%d/%s"
#define NODES  "%s/sys/devices/system/node"

/* Reads the next range of a list such as "0-3,8" and moves the list past it; returns false at the end of the list. */
static bool next_range(const char **list, int *first, int *last) {
    char *end;
    long low = strtol(*list, &end, 10), high = low;
    if (end == *list || low < 0) return false;
    if (*end == '-') high = strtol(end + 1, &end, 10);
    if (high < low || high >= FR_CPUS_MAX) return false;
    *first = (int)low;
    *last = (int)high;
    *list = *end == ',' ? end + 1 : end;
    return true;
}

/* Gives the first CPU of a list, or NO_CPU if the list is empty. */
static int first_of(const char *root, int cpu, const char *folder, const char *name) {
    char path[4200], list[4096];
    int first, last;
    const char *at = list;
    snprintf(path, sizeof path, CPUS, root, cpu, folder);
    return fr_read_small(path, name, list, sizeof list) && next_range(&at, &first, &last) ? first : NO_CPU;
}

/* Stores for each CPU the first CPU of its node. If Linux lists no nodes, stores 0 for all CPUs. */
static void read_nodes(const char *root, int *node_of) {
    char folder[4200], path[4300], nodes[1024], list[4096];
    int from, to, first, last;
    snprintf(folder, sizeof folder, NODES, root);
    if (!fr_read_small(folder, "online", nodes, sizeof nodes)) return;
    for (const char *n = nodes; next_range(&n, &from, &to);)
        for (int node = from; node <= to; node++) {
            int lowest = NO_CPU;
            snprintf(path, sizeof path, "%s/node%d", folder, node);
            if (!fr_read_small(path, "cpulist", list, sizeof list)) continue;
            for (const char *c = list; next_range(&c, &first, &last);)
                for (int cpu = first; cpu <= last; cpu++) node_of[cpu] = lowest = lowest < 0 ? first : lowest;
        }
}

static bool read_unit(const char *root, int cpu, int node, unit *read) {
    int core = first_of(root, cpu, "topology", "thread_siblings_list");
    *read = (unit){.cpu = cpu,
                   .core = core,
                   .cache = first_of(root, cpu, "cache/index3", "shared_cpu_list"),
                   .package = first_of(root, cpu, "topology", "core_siblings_list"),
                   .node = node};
    return core != NO_CPU;
}

static int compare(const void *left, const void *right) {
    const unit *a = left, *b = right;
    const int differences[] = {a->node - b->node, a->package - b->package, a->cache - b->cache, a->core - b->core};
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        if (differences[i]) return differences[i];
    return a->cpu - b->cpu;
}

/* Fills the machine from sorted units, and numbers the nodes in order of appearance. */
static void take(const unit *units, size_t count, fr_machine *machine) {
    *machine = (fr_machine){0};
    for (size_t i = 0; i < count && machine->count < FR_THREADS_MAX; i++) {
        machine->nodes += i == 0 || units[i].node != units[i - 1].node;
        machine->places[machine->count++] =
            (fr_cpu_place){.cpu = units[i].cpu, .core = units[i].core, .node = machine->nodes - 1};
    }
}

bool fr_machine_from_sys(const char *root, const bool *usable, fr_machine *machine) {
    unit *units = malloc(FR_CPUS_MAX * sizeof *units);
    int *node_of = calloc(FR_CPUS_MAX, sizeof *node_of);
    bool told = units && node_of;
    size_t count = 0;
    if (told) read_nodes(root, node_of);
    for (int cpu = 0; cpu < FR_CPUS_MAX && told; cpu++)
        if (usable[cpu]) told = read_unit(root, cpu, node_of[cpu], &units[count++]);
    if (told) {
        qsort(units, count, sizeof *units, compare);
        take(units, count, machine);
    }
    free(units);
    free(node_of);
    return told && count > 0;
}

fr_status fr_usable_cpus(bool *usable) {
    cpu_set_t mask[FR_CPUS_MAX / CPU_SETSIZE];
    if (sched_getaffinity(0, sizeof mask, mask))
        return fr_fail(FR_MACHINE, "can't read which CPUs this process may use: %m");
    for (int cpu = 0; cpu < FR_CPUS_MAX; cpu++) usable[cpu] = CPU_ISSET_S(cpu, sizeof mask, mask);
    return FR_OK;
}
