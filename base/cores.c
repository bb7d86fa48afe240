/* The account of cores.h: a count a CPU, changed under a lock, read by waiting threads without one. */
#include "base/cores.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic int pinned[FR_MAX_CPUS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int count_at(int cpu) {
    return atomic_load_explicit(&pinned[cpu], memory_order_relaxed);
}

static void enter(int cpu, int change) {
    if (cpu >= 0) atomic_fetch_add_explicit(&pinned[cpu], change, memory_order_relaxed);
}

bool fr_core_is_shared(int cpu) {
    return cpu >= 0 && count_at(cpu) > 1;
}

/* For each place how many threads its core has; false when none has any. */
static bool count_cores(const fr_machine *machine, int *on_core) {
    bool any = false;
    for (size_t i = 0; i < machine->count; i++) {
        on_core[i] = 0;
        for (size_t j = 0; j < machine->count; j++) {
            if (machine->places[j].core == machine->places[i].core) on_core[i] += count_at(machine->places[j].cpu);
        }
        any |= on_core[i] > 0;
    }
    return any;
}

/* The place of the node that has fewest threads on its core, then on itself; the first of equals. */
static size_t find_place(const fr_machine *machine, int node, bool nodes, const int *on_core) {
    size_t best = machine->count;
    for (size_t i = 0; i < machine->count; i++) {
        const fr_cpu_place *place = &machine->places[i];
        if (nodes && place->node != node) continue;
        if (best == machine->count || on_core[i] < on_core[best] ||
            (on_core[i] == on_core[best] && count_at(place->cpu) < count_at(machine->places[best].cpu))) {
            best = i;
        }
    }
    return best;
}

static void take_place(const fr_machine *machine, size_t taken, int *on_core) {
    enter(machine->places[taken].cpu, 1);
    for (size_t i = 0; i < machine->count; i++) on_core[i] += machine->places[i].core == machine->places[taken].core;
}

static void choose(const fr_machine *machine, fr_plan *plan, int *on_core) {
    for (size_t t = 0; t < plan->threads; t++) {
        size_t place = find_place(machine, plan->node[t], plan->nodes > 1, on_core);
        plan->cpu[t] = machine->places[place].cpu;
        take_place(machine, place, on_core);
    }
}

void fr_cores_claim(const fr_machine *machine, fr_plan *plan) {
    int on_core[FR_MAX_THREADS];
    if (plan->cpu[0] < 0) return;
    pthread_mutex_lock(&lock);
    if (count_cores(machine, on_core)) choose(machine, plan, on_core);
    else for (size_t t = 0; t < plan->threads; t++) enter(plan->cpu[t], 1);
    pthread_mutex_unlock(&lock);
}

void fr_cores_release(const fr_plan *plan) {
    pthread_mutex_lock(&lock);
    for (size_t t = 0; t < plan->threads; t++) enter(plan->cpu[t], -1);
    pthread_mutex_unlock(&lock);
}
