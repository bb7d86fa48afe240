/* The parts of topology.h that need no system library: the CPU quota, the plan, the partition.
 *
 * In: a machine description, or the cgroup files of a process. Out: which thread runs where, which items it owns, how
 * many CPUs the quota allows. Nothing here trusts a file: what is not a quota is no limit. */
#include "src/base/topology.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------------------------------ quota */

/* All of a small file as text. False when it can't be read or does not fit. Never waits, whatever the path names. */
static bool read_text(const char *path, char *text, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return false;
    size_t length = 0;
    ssize_t got = 1;
    while (got > 0 && length < size - 1) {
        got = read(file, text + length, size - 1 - length);
        if (got > 0) length += (size_t)got;
    }
    close(file);
    text[length] = '\0';
    return got == 0;
}

static bool read_text_in(const char *folder, const char *name, char *text, size_t size) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path && read_text(path, text, size);
}

/* quota / period rounded up. Anything that does not start with a digit ("max", "-1") is no limit, as is zero. */
static int whole_cpus(const char *quota, const char *period) {
    if (*quota < '0' || *quota > '9' || *period < '0' || *period > '9') return 0;
    unsigned long long time = strtoull(quota, NULL, 10), every = strtoull(period, NULL, 10);
    if (!time || !every) return 0;
    unsigned long long cpus = time / every + (time % every != 0);
    return cpus > INT_MAX ? INT_MAX : (int)cpus;
}

/* cgroup v2: cpu.max is "QUOTA PERIOD" or "max PERIOD". */
static int quota_v2(const char *folder) {
    char text[64];
    if (!read_text_in(folder, "cpu.max", text, sizeof text)) return 0;
    const char *space = strchr(text, ' ');
    return space ? whole_cpus(text, space + 1) : 0;
}

static int quota_v1(const char *folder) {
    char quota[64], period[64];
    if (!read_text_in(folder, "cpu.cfs_quota_us", quota, sizeof quota)) return 0;
    if (!read_text_in(folder, "cpu.cfs_period_us", period, sizeof period)) return 0;
    return whole_cpus(quota, period);
}

static int tighter(int a, int b) {
    return !a || (b && b < a) ? b : a;
}

/* The tightest quota from the mount's folder `path` up to the mount itself. A container's path often does not exist
 * inside it, while the mount is the container's own group: missing folders are passed over. */
static int walk_up(const char *root, const char *mount, const char *path, int (*quota_of)(const char *folder)) {
    char folder[PATH_MAX];
    if (strstr(path, "/..")) path = "";
    int top = snprintf(folder, sizeof folder, "%s%s", root, mount);
    if (top < 0 || (size_t)top + strlen(path) >= sizeof folder) return 0;
    memcpy(folder + top, path, strlen(path) + 1);
    int quota = quota_of(folder);
    while (folder[top]) {
        *strrchr(folder + top, '/') = '\0';
        quota = tighter(quota, quota_of(folder));
    }
    return quota;
}

/* One line of /proc/self/cgroup: "0::PATH" (v2), or "ID:CONTROLLER,CONTROLLER:PATH" (v1). */
static int quota_of_line(const char *root, char *line) {
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path || path[1] != '/') return 0;
    *controllers = *path = ',';
    if (path == controllers + 1) return walk_up(root, "/sys/fs/cgroup", path + 1, quota_v2);
    const char *cpu = strstr(controllers, ",cpu,");
    return cpu && cpu < path ? walk_up(root, "/sys/fs/cgroup/cpu", path + 1, quota_v1) : 0;
}

int fr_cpu_quota(const char *root) {
    char text[32768], *rest = text, *line;
    if (!read_text_in(root, "proc/self/cgroup", text, sizeof text)) return 0;
    int quota = 0;
    while ((line = strsep(&rest, "\n"))) quota = tighter(quota, quota_of_line(root, line));
    return quota;
}

/* ------------------------------------------------------------------------------------------------------------- plan */

/* A processing unit, and when it is its turn to get a thread. */
typedef struct candidate {
    int cpu, node;
    int sibling;  /* units of its core that come before it: 0 is a whole core */
    int ordinal;  /* its number among the units of its node with the same `sibling` ... */
    int of;       /* ... and how many those are */
} candidate;

/* Whole cores before siblings. Among them, unit i of a node's n has its turn at (i + 1/2) / n: the first k turns hold
 * each node's share in proportion, for every k. */
static int compare_turns(const void *left, const void *right) {
    const candidate *a = left, *b = right;
    if (a->sibling != b->sibling) return a->sibling - b->sibling;
    int turn = (2 * a->ordinal + 1) * b->of - (2 * b->ordinal + 1) * a->of;
    return turn ? turn : a->node - b->node;
}

/* Fills one candidate for each place, in order of their turns; returns the number of whole cores. */
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

void fr_plan_make(const fr_machine *machine, size_t threads, bool pin, bool numa, fr_plan *plan) {
    candidate list[FR_MAX_THREADS];
    size_t cores = order_places(machine, numa, list), quota = (size_t)machine->quota;
    if (!threads) threads = quota && quota < cores ? quota : cores;
    if (threads > FR_MAX_THREADS) threads = FR_MAX_THREADS;
    *plan = (fr_plan){.threads = threads, .nodes = numa ? machine->nodes : 1};
    plan->oversubscribed = threads > machine->count || (quota && threads > quota);

    size_t seat = 0;
    for (int node = 0; node < plan->nodes; node++) {
        for (size_t turn = 0; turn < threads; turn++) {
            const candidate *unit = &list[turn % machine->count];
            if (unit->node != node) continue;
            plan->cpu[seat] = pin ? unit->cpu : -1;
            plan->node[seat++] = node;
        }
    }
}

/* -------------------------------------------------------------------------------------------------------- partition */

/* The item at which unit number `at` begins. The last unit's end may be no size_t: it is the end of the items. */
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
