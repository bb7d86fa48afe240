/* Divides cores among ranks: see ranks_cores.h. */
#include "base/ranks_cores.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/topology_sys.h"

/* Numbers the cores in the order of their first places (processing units), and stores the core number of each place.
 * Returns the number of cores. */
static size_t number_cores(const fr_machine *machine, size_t *core_of) {
    size_t cores = 0;
    for (size_t i = 0; i < machine->count; i++) {
        size_t before = 0;
        while (before < i && machine->places[before].core != machine->places[i].core) before++;
        core_of[i] = before < i ? core_of[before] : cores++;
    }
    return cores;
}

void fr_ranks_cores(const fr_machine *machine, size_t index, size_t ranks, bool *taken) {
    size_t core_of[FR_THREADS_MAX], cores = number_cores(machine, core_of), begin, end;
    fr_partition(cores, 1, index, ranks, &begin, &end);
    if (cores < ranks) {
        begin = index * cores / ranks;
        end = begin + 1;
    }
    for (size_t i = 0; i < machine->count; i++) taken[i] = core_of[i] >= begin && core_of[i] < end;
}

void fr_ranks_take_cores(size_t index, size_t ranks) {
    static fr_machine machine;
    static bool taken[FR_THREADS_MAX];
    cpu_set_t mask[FR_CPUS_MAX / CPU_SETSIZE];
    if (fr_machine_read(&machine) != FR_OK) return;
    fr_ranks_cores(&machine, index, ranks, taken);
    memset(mask, 0, sizeof mask);
    for (size_t i = 0; i < machine.count; i++)
        if (taken[i]) CPU_SET_S((size_t)machine.places[i].cpu, sizeof mask, mask);
    sched_setaffinity(0, sizeof mask, mask);
}

/* Hashes the machine's boot id, which differs between machines and between starts, because two machines may have the
 * same name. Returns 0 if it can't be read. */
static uint64_t hash_start(void) {
    char id[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    size_t length = file ? fread(id, 1, sizeof id, file) : 0;
    if (file) fclose(file);
    return fr_hash(0, id, length);
}

uint64_t fr_ranks_machine_key(const char *host) {
    return fr_hash(hash_start(), host, strlen(host));
}

uint64_t fr_ranks_cores_key(uint64_t machine) {
    static bool usable[FR_CPUS_MAX];
    if (fr_usable_cpus(usable) != FR_OK) memset(usable, 0, sizeof usable);
    return fr_hash(machine, usable, sizeof usable);
}
