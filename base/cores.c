/* Counts the pinned threads of each CPU (cores.h). Counts change under a lock; waiting threads read them without the
 * lock. */
#include "base/cores.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/process_registry.h"

static _Atomic int pinned[FR_CPUS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int count_at(int cpu) {
    return atomic_load_explicit(&pinned[cpu], memory_order_relaxed);
}

static void enter(int cpu, int change) {
    if (cpu < 0) return;
    int before = atomic_fetch_add_explicit(&pinned[cpu], change, memory_order_relaxed);
    if (before == 0)
        fr_process_registry_take(cpu);
    else if (before + change == 0)
        fr_process_registry_drop(cpu);
}

bool fr_core_is_shared(int cpu) {
    return cpu >= 0 && count_at(cpu) > 1;
}

/* Counts the pinned threads of each place (processing unit) and of each core. If another process uses a CPU, it counts
 * as one thread there. */
typedef struct counts {
    int on_cpu[FR_THREADS_MAX], on_core[FR_THREADS_MAX];
} counts;

/* Returns false if no thread is pinned to any place. */
static bool count_cores(const fr_machine *machine, counts *c) {
    bool any = false;
    for (size_t i = 0; i < machine->count; i++) {
        int cpu = machine->places[i].cpu;
        c->on_cpu[i] = count_at(cpu) + fr_process_registry_has(cpu);
        any |= c->on_cpu[i] > 0;
    }
    for (size_t i = 0; i < machine->count; i++) {
        c->on_core[i] = 0;
        for (size_t j = 0; j < machine->count; j++)
            if (machine->places[j].core == machine->places[i].core) c->on_core[i] += c->on_cpu[j];
    }
    return any;
}

/* Finds a place on the node for one more thread: the place whose core has the fewest pinned threads. If cores are
 * equal, the place with the fewest threads of its own is chosen, and if places are equal too, the first one. */
static size_t find_place(const fr_machine *machine, int node, bool nodes, const counts *c) {
    size_t best = machine->count;
    for (size_t i = 0; i < machine->count; i++) {
        const fr_cpu_place *place = &machine->places[i];
        if (nodes && place->node != node) continue;
        if (best == machine->count || c->on_core[i] < c->on_core[best] ||
            (c->on_core[i] == c->on_core[best] && c->on_cpu[i] < c->on_cpu[best])) {
            best = i;
        }
    }
    return best;
}

static void take_place(const fr_machine *machine, size_t taken, counts *c) {
    enter(machine->places[taken].cpu, 1);
    c->on_cpu[taken]++;
    for (size_t i = 0; i < machine->count; i++) c->on_core[i] += machine->places[i].core == machine->places[taken].core;
}

static void choose(const fr_machine *machine, fr_plan *plan, counts *c) {
    for (size_t t = 0; t < plan->threads; t++) {
        size_t place = find_place(machine, plan->node[t], plan->nodes > 1, c);
        plan->cpu[t] = machine->places[place].cpu;
        take_place(machine, place, c);
    }
}

void fr_cores_claim(const fr_machine *machine, fr_plan *plan) {
    counts c;
    if (plan->cpu[0] < 0) return;
    pthread_mutex_lock(&lock);
    fr_process_registry_begin();
    if (count_cores(machine, &c))
        choose(machine, plan, &c);
    else
        for (size_t t = 0; t < plan->threads; t++) enter(plan->cpu[t], 1);
    fr_process_registry_end();
    pthread_mutex_unlock(&lock);
}

void fr_cores_release(const fr_plan *plan) {
    pthread_mutex_lock(&lock);
    for (size_t t = 0; t < plan->threads; t++) enter(plan->cpu[t], -1);
    pthread_mutex_unlock(&lock);
}
