/* Tests base/topology_hwloc. It must read hwloc's synthetic machines of one, two and four nodes correctly, with and
 * without an affinity mask. Builds without hwloc leave this suite out. */
/* suite: needs=hwloc */
#include "base/topology_hwloc.h"

#include "base/topology_sys.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

/* usable: a list of CPUs such as "0-5,8"; NULL: all CPUs are usable */
static fr_status read_synthetic(const char *description, const char *usable, fr_machine *machine) {
    hwloc_topology_t topology;
    ck_assert_int_eq(hwloc_topology_init(&topology), 0);
    ck_assert_int_eq(hwloc_topology_set_synthetic(topology, description), 0);
    ck_assert_int_eq(hwloc_topology_load(topology), 0);
    hwloc_bitmap_t set = hwloc_bitmap_alloc_full();
    if (usable) hwloc_bitmap_list_sscanf(set, usable);
    fr_status status = fr_machine_from_hwloc(topology, set, machine);
    hwloc_bitmap_free(set);
    hwloc_topology_destroy(topology);
    return status;
}

static const struct {
    const char *description;
    size_t units, cores;
    int nodes;
} whole[] = {
    {"core:1 pu:1", 1, 1, 1},
    {"core:6 pu:2", 12, 6, 1},
    {"numa:2 core:4 pu:2", 16, 8, 2},
    {"numa:4 core:2 pu:1", 8, 8, 4},
    {"pack:2 numa:2 l3:2 core:2 pu:2", 32, 16, 4},
    {"numa:4 pu:3", 12, 12, 4}, /* the machine has no cores, so each PU counts as a core */
};

START_TEST(whole_machines) {
    fr_machine machine;
    fr_plan plan;
    ck_assert_uint_eq(read_synthetic(whole[_i].description, NULL, &machine), FR_OK);
    ck_assert_uint_eq(machine.count, whole[_i].units);
    ck_assert_int_eq(machine.nodes, whole[_i].nodes);
    size_t node_units = whole[_i].units / (size_t)whole[_i].nodes, width = whole[_i].units / whole[_i].cores;
    for (size_t i = 0; i < machine.count; i++) {
        ck_assert_int_eq(machine.places[i].cpu, (int)i);
        ck_assert_int_eq(machine.places[i].node, (int)(i / node_units));
        for (size_t j = 0; j < i; j++) {
            ck_assert((machine.places[j].core == machine.places[i].core) == (j / width == i / width));
        }
    }
    fr_plan_make(&machine, 0, true, true, &plan);
    ck_assert_uint_eq(plan.threads, whole[_i].cores);
    for (size_t t = 0; t < plan.threads; t++) {
        ck_assert_int_eq(plan.cpu[t], (int)(t * width));
        ck_assert_int_eq(plan.node[t], (int)(t * width / node_units));
    }
}
END_TEST

/* In each case `usable` excludes CPUs, so the remaining nodes have different sizes. The struct has the expected number
 * of threads, their CPUs and their nodes. It has them for the default plan, and again for a plan that uses every
 * sibling. */
static const struct {
    const char *description, *usable;
    int nodes;
    size_t threads, all;
    int cpu[8], node[8], cpu_all[12], node_all[12];
} masked[] = {
    /* node 0 keeps the cores {0,1} {2,3} {4,5} {6}, where the numbers are CPUs. Node 1 keeps the core {10,11} */
    {"numa:2 core:4 pu:2",
     "0-6,10-11",
     2,
     5,
     9,
     {0, 2, 4, 6, 10},
     {0, 0, 0, 0, 1},
     {0, 2, 4, 6, 1, 3, 5, 10, 11},
     {0, 0, 0, 0, 0, 0, 0, 1, 1}},
    /* nodes 0 and 2 have no usable CPU, so the remaining nodes are renumbered */
    {"numa:4 core:2 pu:1", "2,6-7", 2, 3, 3, {2, 6, 7}, {0, 1, 1}, {2, 6, 7}, {0, 1, 1}},
    /* each of these cores has only its second PU */
    {"numa:4 core:2 pu:2", "1,5,7,9,13", 4, 5, 5, {1, 5, 7, 9, 13}, {0, 1, 1, 2, 3}, {1, 5, 7, 9, 13}, {0, 1, 1, 2, 3}},
};

START_TEST(inside_a_mask) {
    fr_machine machine;
    fr_plan plan;
    ck_assert_uint_eq(read_synthetic(masked[_i].description, masked[_i].usable, &machine), FR_OK);
    ck_assert_int_eq(machine.nodes, masked[_i].nodes);
    fr_plan_make(&machine, 0, true, true, &plan);
    ck_assert_uint_eq(plan.threads, masked[_i].threads);
    ck_assert_int_eq(memcmp(plan.cpu, masked[_i].cpu, plan.threads * sizeof(int)), 0);
    ck_assert_int_eq(memcmp(plan.node, masked[_i].node, plan.threads * sizeof(int)), 0);
    fr_plan_make(&machine, masked[_i].all, true, true, &plan);
    ck_assert(!plan.oversubscribed);
    ck_assert_int_eq(memcmp(plan.cpu, masked[_i].cpu_all, plan.threads * sizeof(int)), 0);
    ck_assert_int_eq(memcmp(plan.node, masked[_i].node_all, plan.threads * sizeof(int)), 0);
}
END_TEST

START_TEST(nothing_usable) {
    fr_machine machine;
    ck_assert_uint_eq(read_synthetic("numa:2 core:2 pu:1", "17", &machine), FR_MACHINE);
    ck_assert_str_ne(fr_last_error(), "");
}
END_TEST

START_TEST(more_units_than_seats) {
    fr_machine machine;
    ck_assert_uint_eq(read_synthetic("numa:8 core:128 pu:2", NULL, &machine), FR_OK);
    ck_assert_uint_eq(machine.count, FR_THREADS_MAX);
    ck_assert_int_eq(machine.nodes, 4);
}
END_TEST

/* The readers of /sys and of hwloc may number cores and nodes differently. They must agree on which CPUs share a core,
 * and on which CPUs share a node. */
START_TEST(sys_says_what_hwloc_says) {
    static fr_machine by_sys, by_hwloc;
    bool usable[FR_CPUS_MAX];
    hwloc_topology_t topology;
    ck_assert_int_eq(fr_usable_cpus(usable), FR_OK);
    if (!fr_machine_from_sys("", usable, &by_sys)) {
        fr_test_skipped("/sys says nothing of this machine's cores");
        return;
    }
    ck_assert(hwloc_topology_init(&topology) == 0 && hwloc_topology_load(topology) == 0);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (int cpu = 0; cpu < FR_CPUS_MAX; cpu++)
        if (usable[cpu]) hwloc_bitmap_set(set, (unsigned)cpu);
    ck_assert_int_eq(fr_machine_from_hwloc(topology, set, &by_hwloc), FR_OK);
    ck_assert_uint_eq(by_sys.count, by_hwloc.count);
    ck_assert_int_eq(by_sys.nodes, by_hwloc.nodes);
    for (size_t i = 0; i < by_sys.count; i++) {
        const fr_cpu_place *a = &by_sys.places[i], *b = &by_hwloc.places[i];
        ck_assert_int_eq(a->cpu, b->cpu);
        ck_assert_int_eq(a->node, b->node);
        ck_assert(i == 0 || (a->core == a[-1].core) == (b->core == b[-1].core));
    }
    hwloc_bitmap_free(set);
    hwloc_topology_destroy(topology);
}
END_TEST

FR_SUITE("topology_hwloc") {
    TCase *cases = tcase_create("synthetic");
    tcase_add_loop_test(cases, whole_machines, 0, sizeof whole / sizeof *whole);
    tcase_add_loop_test(cases, inside_a_mask, 0, sizeof masked / sizeof *masked);
    tcase_add_test(cases, nothing_usable);
    tcase_add_test(cases, more_units_than_seats);
    tcase_add_test(cases, sys_says_what_hwloc_says);
    suite_add_tcase(suite, cases);
}
