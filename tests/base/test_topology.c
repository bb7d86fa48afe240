/* Tests base/topology: how work is divided among threads, plans for invented machines, CPU quotas from invented cgroup
 * trees, and the machine on which the test runs. It also tests base/cores, which records the cores that plans have
 * claimed, and base/ranks_cores, which divides cores among ranks. */
/* suite: native */
#include "base/process_registry.h"
#include "base/cores.h"

#include <check.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ranks_cores.h"
#include "base/topology_sys.h"
#include "src/engine/model/model.h"
#include "tests/support/made_root.h"
#include "tests/support/suite.h"

/* -------------------------------------------------------------------------------------------------------- partition */

/* Checks that every item has one owner, and that the owners' ranges are in the order of the owners. The ranges must
 * begin at multiples of `unit`. Their sizes may differ by at most one unit. */
static void check_partition(size_t count, size_t unit, size_t parts) {
    size_t next = 0, least = SIZE_MAX, most = 0;
    for (size_t index = 0; index < parts; index++) {
        size_t begin, end;
        fr_partition(count, unit, index, parts, &begin, &end);
        bool whole = begin % unit == 0 || begin == count;
        ck_assert_msg(begin == next && begin <= end && end <= count && whole, "%zu by %zu, part %zu of %zu: %zu to %zu",
                      count, unit, index, parts, begin, end);
        size_t units = (end - begin) / unit + ((end - begin) % unit != 0);
        if (units < least) least = units;
        if (units > most) most = units;
        next = end;
    }
    ck_assert_uint_eq(next, count);
    ck_assert_uint_le(most - least, 1);
}

START_TEST(partition) {
    static const size_t counts[] = {
        0, 1, 2, 15, 16, 17, 255, 1000, 262144, SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, SIZE_MAX / 2 + 1, 1ul << 31};
    static const size_t units[] = {1, 2, 16, 48, 1000, SIZE_MAX / 2, SIZE_MAX};
    static const size_t parts[] = {1, 2, 3, 7, 16, 64, 1000, FR_THREADS_MAX};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) check_partition(counts[c], units[u], parts[p]);
        }
    }
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------- plan */

/* Builds a machine. Node n has cores[n] cores, and each core has `width` hardware threads. The CPUs are numbered as in
 * Linux: the first hardware thread of every core comes first, and then the other hardware threads (siblings). */
static void build(fr_machine *machine, int nodes, const int *cores, int width, int quota) {
    *machine = (fr_machine){.nodes = nodes, .quota = quota};
    for (int sibling = 0; sibling < width; sibling++) {
        for (int node = 0, core = 0; node < nodes; node++) {
            for (int k = 0; k < cores[node]; k++, core++) {
                int cpu = (int)machine->count;
                machine->places[machine->count++] = (fr_cpu_place){.cpu = cpu, .core = core, .node = node};
            }
        }
    }
}

static size_t threads_on(const fr_plan *plan, int node) {
    size_t count = 0;
    for (size_t t = 0; t < plan->threads; t++) count += plan->node[t] == node;
    return count;
}

static const fr_cpu_place *place_of(const fr_machine *machine, int cpu) {
    for (size_t i = 0; i < machine->count; i++) {
        if (machine->places[i].cpu == cpu) return &machine->places[i];
    }
    return NULL;
}

static size_t cores_of(const fr_machine *machine, const fr_plan *plan) {
    bool taken[FR_THREADS_MAX] = {false};
    size_t count = 0;
    for (size_t t = 0; t < plan->threads; t++) {
        int core = place_of(machine, plan->cpu[t])->core;
        count += !taken[core];
        taken[core] = true;
    }
    return count;
}

/* Checks that nodes ascend, that each CPU belongs to its node, and that no CPU is used twice while another CPU is
 * free. */
static void check_ordered(const fr_machine *machine, const fr_plan *plan) {
    size_t taken[FR_THREADS_MAX] = {0}, rounds = (plan->threads + machine->count - 1) / machine->count;
    for (size_t t = 0; t < plan->threads; t++) {
        ck_assert_int_eq(place_of(machine, plan->cpu[t])->node, plan->node[t]);
        ck_assert(t == 0 || plan->node[t - 1] <= plan->node[t]);
        ck_assert_uint_le(++taken[plan->cpu[t]], rounds);
    }
}

static const struct {
    int nodes, cores[4], width;
} machines[] = {
    {1, {1}, 1},    {1, {6}, 2},          {2, {4, 4}, 2},       {2, {8, 3}, 1},
    {2, {5, 1}, 2}, {4, {2, 2, 2, 2}, 1}, {4, {8, 4, 2, 2}, 2}, {4, {64, 64, 64, 63}, 2},
};

/* Checks plans for every small number of threads and for some larger ones. No CPU may be used twice, and whole cores
 * must come before siblings. The number of threads on a node may differ by at most one from the exact proportion. */
START_TEST(plan_is_proportional) {
    fr_machine machine;
    fr_plan plan;
    build(&machine, machines[_i].nodes, machines[_i].cores, machines[_i].width, 0);
    size_t cores = machine.count / (size_t)machines[_i].width;
    for (size_t threads = 1; threads <= 2 * machine.count && threads <= FR_THREADS_MAX; threads += 1 + threads / 16) {
        fr_plan_make(&machine, threads, true, true, &plan);
        ck_assert_uint_eq(plan.threads, threads);
        ck_assert_int_eq(plan.nodes, machine.nodes);
        ck_assert(plan.oversubscribed == (threads > machine.count));
        check_ordered(&machine, &plan);
        ck_assert_uint_eq(cores_of(&machine, &plan), threads < cores ? threads : cores);
        for (int node = 0; node < machine.nodes; node++) {
            double share = (double)threads * machines[_i].cores[node] / (double)cores;
            ck_assert_double_lt((double)threads_on(&plan, node), share + 1);
            ck_assert_double_gt((double)threads_on(&plan, node), share - 1);
        }
    }
}
END_TEST

START_TEST(plan_of_two_uneven_nodes) {
    fr_machine machine;
    fr_plan plan;
    build(&machine, 2, (int[]){6, 3}, 2, 0); /* node 0: CPUs 0-5, 9-14; node 1: 6-8, 15-17 */
    fr_plan_make(&machine, 3, true, true, &plan);
    ck_assert_int_eq(memcmp(plan.cpu, (int[]){0, 1, 6}, 3 * sizeof(int)), 0);
    ck_assert_int_eq(memcmp(plan.node, (int[]){0, 0, 1}, 3 * sizeof(int)), 0);
    fr_plan_make(&machine, 12, true, true, &plan);
    static const int cpus[] = {0, 1, 2, 3, 4, 5, 9, 10, 6, 7, 8, 15};
    ck_assert_int_eq(memcmp(plan.cpu, cpus, sizeof cpus), 0);
    ck_assert_int_eq(plan.node[7], 0);
    ck_assert_int_eq(plan.node[8], 1);
}
END_TEST

START_TEST(plan_defaults) {
    fr_machine machine;
    fr_plan plan;
    build(&machine, 2, (int[]){4, 4}, 2, 0);
    fr_plan_make(&machine, 0, true, true, &plan);
    ck_assert_uint_eq(plan.threads, 8); /* one thread per core */
    ck_assert(!plan.oversubscribed);

    machine.quota = 3;
    fr_plan_make(&machine, 0, true, true, &plan);
    ck_assert_uint_eq(plan.threads, 3);
    ck_assert(!plan.oversubscribed);
    fr_plan_make(&machine, 4, true, true, &plan);
    ck_assert_uint_eq(plan.threads, 4); /* the plan has all threads that were requested */
    ck_assert(plan.oversubscribed);

    machine.quota = 100;
    fr_plan_make(&machine, 0, true, true, &plan);
    ck_assert_uint_eq(plan.threads, 8);
    fr_plan_make(&machine, SIZE_MAX, true, true, &plan);
    ck_assert_uint_eq(plan.threads, FR_THREADS_MAX);
    ck_assert(plan.oversubscribed);
    ck_assert_uint_eq(threads_on(&plan, 0), FR_THREADS_MAX / 2);
}
END_TEST

START_TEST(plan_without_pins_or_nodes) {
    fr_machine machine;
    fr_plan plan;
    build(&machine, 2, (int[]){2, 2}, 2, 0);
    fr_plan_make(&machine, 9, false, true, &plan);
    for (size_t t = 0; t < 9; t++) ck_assert_int_eq(plan.cpu[t], -1);
    ck_assert_uint_eq(threads_on(&plan, 0), 5);

    fr_plan_make(&machine, 5, true, false, &plan);
    ck_assert_int_eq(plan.nodes, 1);
    ck_assert_uint_eq(threads_on(&plan, 0), 5);
    ck_assert_int_eq(memcmp(plan.cpu, (int[]){0, 1, 2, 3, 4}, 5 * sizeof(int)), 0);
}
END_TEST

static bool pins(const fr_options *options, fr_machine *machine) {
    fr_plan plan;
    const fr_options resolved = fr_options_resolve(options);
    ck_assert_int_eq(fr_plan_from_options(&resolved, machine, &plan), FR_OK);
    return plan.cpu[0] >= 0;
}

START_TEST(several_nodes_are_pinned) {
    fr_machine machine;
    build(&machine, 2, (int[]){2, 2}, 2, 0);
    ck_assert(fr_pinning_pays(&machine, true));
    ck_assert(!fr_pinning_pays(&machine, false));
    build(&machine, 1, (int[]){64}, 2, 0);
    ck_assert(!fr_pinning_pays(&machine, true));

    fr_options *options = fr_options_new();
    ck_assert(pins(NULL, &machine) == (machine.nodes > 1));
    for (int pin = -1; pin < 2; pin++) {
        ck_assert_int_eq(fr_options_set(options, FR_OPT_PIN, pin), FR_OK);
        ck_assert(pins(options, &machine) == (pin < 0 ? machine.nodes > 1 : pin));
    }
    ck_assert_int_eq(fr_options_set(options, FR_OPT_PIN, 2), FR_USAGE);
    fr_options_free(options);
}
END_TEST

/* The system puts a page into the memory of the node whose thread writes it first. So the threads of a node together
 * must own one contiguous range of rows. The length of the range must be proportional to the number of these
 * threads. */
START_TEST(rows_of_a_node_are_one_range) {
    static const size_t row_counts[] = {262144, 1536, 1537, 16, 3};
    const size_t unit = 16;
    fr_machine machine;
    fr_plan plan;
    build(&machine, machines[_i].nodes, machines[_i].cores, machines[_i].width, 0);
    fr_plan_make(&machine, 0, true, true, &plan);
    for (size_t r = 0; r < sizeof row_counts / sizeof *row_counts; r++) {
        size_t rows = row_counts[r], t = 0, next = 0;
        for (int node = 0; node < plan.nodes; node++) {
            size_t first = next, threads = threads_on(&plan, node);
            for (; t < plan.threads && plan.node[t] == node; t++) {
                size_t begin;
                fr_partition(rows, unit, t, plan.threads, &begin, &next);
                ck_assert_uint_ge(begin, first);
            }
            double share = (double)rows * (double)threads / (double)plan.threads;
            ck_assert_double_le((double)(next - first), share + (double)(unit * threads));
            ck_assert_double_ge((double)(next - first), share - (double)(unit * threads));
        }
        ck_assert_uint_eq(t, plan.threads);
        ck_assert_uint_eq(next, rows);
    }
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- claims */

/* Makes and claims a plan of this many threads. */
static fr_plan claim(const fr_machine *machine, size_t threads) {
    fr_plan plan;
    fr_plan_make(machine, threads, true, true, &plan);
    fr_cores_claim(machine, &plan);
    return plan;
}

static bool overlap(const fr_plan *a, const fr_plan *b, const fr_machine *machine) {
    for (size_t i = 0; i < a->threads; i++) {
        for (size_t j = 0; j < b->threads; j++) {
            if (place_of(machine, a->cpu[i])->core == place_of(machine, b->cpu[j])->core) return true;
        }
    }
    return false;
}

/* The first claim leaves its plan as it was made. Each later plan takes whole free cores, as long as there are any. */
START_TEST(claims_take_free_cores) {
    fr_machine machine;
    fr_plan plan, alone;
    build(&machine, 1, (int[]){8}, 2, 0);
    for (size_t threads = 1; threads <= 20; threads++) {
        fr_plan_make(&machine, threads, true, true, &plan);
        alone = claim(&machine, threads);
        ck_assert_mem_eq(plan.cpu, alone.cpu, threads * sizeof *plan.cpu);
        fr_cores_release(&alone);
    }
    fr_plan a = claim(&machine, 3), b = claim(&machine, 1), c = claim(&machine, 4);
    ck_assert(!overlap(&a, &b, &machine) && !overlap(&a, &c, &machine) && !overlap(&b, &c, &machine));
    for (int cpu = 0; cpu < 16; cpu++) ck_assert(!fr_core_is_shared(cpu));
    fr_cores_release(&b);
    plan = claim(&machine, 1);
    ck_assert_int_eq(plan.cpu[0], b.cpu[0]);
    fr_cores_release(&a);
    fr_cores_release(&c);
    fr_cores_release(&plan);
}
END_TEST

/* If no whole core is free, plans take free siblings. If no sibling is free, they take CPUs that other plans have too.
 * The numbers of plans that have a CPU may differ by at most one between CPUs. fr_core_is_shared is true for a CPU that
 * several plans have. */
START_TEST(claims_are_even_where_cores_are_few) {
    fr_machine machine;
    fr_plan plans[9];
    int on[8] = {0};
    build(&machine, 1, (int[]){4}, 2, 0);
    for (int i = 0; i < 9; i++) {
        plans[i] = claim(&machine, 3);
        for (size_t t = 0; t < 3; t++) on[plans[i].cpu[t]]++;
        for (int cpu = 0; cpu < 8; cpu++) {
            int even = 3 * (i + 1) / 8;
            ck_assert(on[cpu] == even || on[cpu] == even + (3 * (i + 1) % 8 > 0));
            ck_assert(fr_core_is_shared(cpu) == (on[cpu] > 1));
        }
    }
    for (int i = 0; i < 9; i++) fr_cores_release(&plans[i]);
    for (int cpu = 0; cpu < 8; cpu++) ck_assert(!fr_core_is_shared(cpu));
    ck_assert(!fr_core_is_shared(-1));
}
END_TEST

/* Thread t of every session must be on the same node. The reason is that the memory of a node holds the weights that
 * its threads wrote first. */
START_TEST(claims_stay_on_their_nodes) {
    fr_machine machine;
    fr_plan plan, claimed[3];
    build(&machine, 2, (int[]){6, 2}, 1, 0);
    fr_plan_make(&machine, 4, true, true, &plan);
    for (int i = 0; i < 3; i++) {
        claimed[i] = claim(&machine, 4);
        for (size_t t = 0; t < 4; t++) ck_assert_int_eq(place_of(&machine, claimed[i].cpu[t])->node, plan.node[t]);
    }
    ck_assert(!overlap(&claimed[0], &claimed[1], &machine));
    for (int i = 0; i < 3; i++) fr_cores_release(&claimed[i]);
}
END_TEST

/* --------------------------------------------------------------------------------------------- the user's processes */

static char record[64];

static void make_record(void) {
    snprintf(record, sizeof record, "/tmp/test_topology_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(record));
    fr_process_registry_use(record);
}

static void remove_record(void) {
    char path[128];
    snprintf(path, sizeof path, "%s/forerun-cores", record);
    unlink(path);
    ck_assert_int_eq(rmdir(record), 0);
}

/* Starts another process. It claims this many cores, reports when it has them, and keeps them until it is killed. */
static pid_t claim_elsewhere(const fr_machine *machine, size_t threads) {
    int ready[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t process = fork();
    if (process == 0) {
        claim(machine, threads);
        (void)!write(ready[1], &byte, 1);
        for (;;) pause();
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return process;
}

static void end_process(pid_t process) {
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
}

static void check_cpus(const fr_plan *plan, const int *cpus) {
    ck_assert_mem_eq(plan->cpu, cpus, plan->threads * sizeof *cpus);
}

/* Each process takes cores that other processes have not taken. When a process is killed, all of its cores become
 * free. */
START_TEST(processes_take_different_cores) {
    fr_machine machine;
    build(&machine, 1, (int[]){6}, 1, 0);
    pid_t first = claim_elsewhere(&machine, 2);
    fr_plan own = claim(&machine, 1);
    check_cpus(&own, (int[]){2});
    pid_t third = claim_elsewhere(&machine, 1);
    fr_plan more = claim(&machine, 2);
    check_cpus(&more, (int[]){4, 5});
    end_process(first);
    fr_plan last = claim(&machine, 2);
    check_cpus(&last, (int[]){0, 1});
    end_process(third);
    fr_cores_release(&own);
    fr_cores_release(&more);
    fr_cores_release(&last);
    last = claim(&machine, 6);
    check_cpus(&last, (int[]){0, 1, 2, 3, 4, 5});
    fr_cores_release(&last);
}
END_TEST

/* A file records the cores that were claimed. If other users may write to its folder, the file is neither read nor
 * written. */
START_TEST(a_record_is_the_users_own) {
    fr_machine machine;
    char path[128];
    build(&machine, 1, (int[]){4}, 1, 0);
    ck_assert_int_eq(chmod(record, 0777), 0);
    pid_t other = claim_elsewhere(&machine, 1);
    fr_plan own = claim(&machine, 1);
    check_cpus(&own, (int[]){0});
    fr_cores_release(&own);
    end_process(other);
    snprintf(path, sizeof path, "%s/forerun-cores", record);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* A plan without pinning names no CPUs, so claiming it records nothing. */
START_TEST(claims_of_unpinned_plans) {
    fr_machine machine;
    fr_plan plan;
    build(&machine, 1, (int[]){2}, 1, 0);
    fr_plan_make(&machine, 2, false, true, &plan);
    fr_cores_claim(&machine, &plan);
    ck_assert_int_eq(plan.cpu[1], -1);
    fr_plan first = claim(&machine, 2);
    ck_assert(!fr_core_is_shared(0) && !fr_core_is_shared(1));
    fr_cores_release(&plan);
    fr_cores_release(&first);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ quota */

#define LONG_NAME "/a12345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
#define LONGER    LONG_NAME LONG_NAME LONG_NAME LONG_NAME LONG_NAME LONG_NAME LONG_NAME LONG_NAME LONG_NAME LONG_NAME
#define V2        "sys/fs/cgroup/"
#define V1        "sys/fs/cgroup/cpu/"

static const struct {
    int quota;
    const char *cgroup; /* content of /proc/self/cgroup */
    struct {
        const char *path, *text;
    } files[4];
} quotas[] = {
    /* cgroup version 2 */
    {0, "0::/\n", {{0}}},
    {0, "0::/\n", {{V2 "cpu.max", "max 100000\n"}}},
    {2, "0::/\n", {{V2 "cpu.max", "200000 100000\n"}}},
    {3, "0::/\n", {{V2 "cpu.max", "200001 100000\n"}}},
    {1, "0::/\n", {{V2 "cpu.max", "1000 100000\n"}}},
    {4, "0::/a/b\n", {{V2 "a/b/cpu.max", "400000 100000\n"}, {V2 "a/cpu.max", "max 100000\n"}}},
    {2, "0::/a/b\n", {{V2 "a/b/cpu.max", "400000 100000\n"}, {V2 "a/cpu.max", "150000 100000\n"}}},
    {3, "0::/a/b", {{V2 "a/b/cpu.max", "max 100000\n"}, {V2 "cpu.max", "300000 100000"}}},
    {5, "0::/gone/from/here\n", {{V2 "cpu.max", "500000 100000\n"}}},
    {0, "0::/a\n", {{V2 "b/cpu.max", "100000 100000\n"}}},
    {6, "0::/../../x\n", {{V2 "cpu.max", "600000 100000\n"}, {"sys/x/cpu.max", "100000 100000\n"}}},
    {0, "0::" LONGER LONGER LONGER LONGER LONGER "\n", {{V2 "cpu.max", "100000 100000\n"}}},
    /* these files contain no valid quota */
    {0, "0::/\n", {{V2 "cpu.max", ""}}},
    {0, "0::/\n", {{V2 "cpu.max", "200000"}}},
    {0, "0::/\n", {{V2 "cpu.max", "200000 "}}},
    {0, "0::/\n", {{V2 "cpu.max", "200000 0\n"}}},
    {0, "0::/\n", {{V2 "cpu.max", "0 100000\n"}}},
    {0, "0::/\n", {{V2 "cpu.max", "-200000 100000\n"}}},
    {0, "0::/\n", {{V2 "cpu.max", "200000 -100000\n"}}},
    {0, "0::/\n", {{V2 "cpu.max", "two 100000\n"}}},
    {0, "0::/\n", {{V2 "cpu.max", "200000 100000 " LONG_NAME}}},
    {INT_MAX, "0::/\n", {{V2 "cpu.max", "99999999999999999999999999 1\n"}}},
    {1, "0::/\n", {{V2 "cpu.max", "1 99999999999999999999999999\n"}}},
    {0, "", {{V2 "cpu.max", "100000 100000\n"}}},
    {0, "nonsense\n0:\n:\n::\n\n0::relative\n", {{V2 "cpu.max", "100000 100000\n"}}},
    {0, NULL, {{V2 "cpu.max", "100000 100000\n"}}},
    /* cgroup version 1 */
    {3, "4:cpu,cpuacct:/a\n", {{V1 "a/cpu.cfs_quota_us", "250000\n"}, {V1 "a/cpu.cfs_period_us", "100000\n"}}},
    {3, "4:cpuacct,cpu:/a\n", {{V1 "a/cpu.cfs_quota_us", "30000\n"}, {V1 "a/cpu.cfs_period_us", "10000\n"}}},
    {7, "4:cpu:/docker/1\n", {{V1 "cpu.cfs_quota_us", "70\n"}, {V1 "cpu.cfs_period_us", "10\n"}}},
    {0, "4:cpu:/a\n", {{V1 "a/cpu.cfs_quota_us", "-1\n"}, {V1 "a/cpu.cfs_period_us", "100000\n"}}},
    {0, "4:cpu:/a\n", {{V1 "a/cpu.cfs_quota_us", "200000\n"}}},
    {0, "4:cpuset:/a\n", {{V1 "a/cpu.cfs_quota_us", "30000\n"}, {V1 "a/cpu.cfs_period_us", "10000\n"}}},
    {0, "4:memory:/a,cpu,\n", {{V1 "a,cpu,/cpu.cfs_quota_us", "30000\n"}, {V1 "a,cpu,/cpu.cfs_period_us", "10000\n"}}},
    /* If both versions of cgroups have a quota, the smaller quota is used. */
    {2,
     "12:pids:/x\n4:cpu,cpuacct:/a\n0::/b\n",
     {{V1 "a/cpu.cfs_quota_us", "20\n"}, {V1 "a/cpu.cfs_period_us", "10\n"}, {V2 "b/cpu.max", "50 10\n"}}},
};

START_TEST(quota) {
    if (quotas[_i].cgroup) fr_made_root_put("proc/self/cgroup", quotas[_i].cgroup);
    for (size_t f = 0; f < 4 && quotas[_i].files[f].path; f++) {
        fr_made_root_put(quotas[_i].files[f].path, quotas[_i].files[f].text);
    }
    ck_assert_int_eq(fr_cpu_quota(fr_made_root), quotas[_i].quota);
}
END_TEST

/* In place of the quota file there is a folder, a pipe to which nobody writes, or a link to itself. */
START_TEST(quota_in_odd_files) {
    char path[128];
    fr_made_root_put("proc/self/cgroup", "0::/a/b\n");
    fr_made_root_put(V2 "a/b/none", "");
    fr_made_root_put(V2 "cpu.max", "20 10");
    snprintf(path, sizeof path, "%s/%s", fr_made_root, V2 "a/cpu.max");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/%s", fr_made_root, V2 "a/b/cpu.max");
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(fr_cpu_quota(fr_made_root), 2);
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_eq(symlink("cpu.max", path), 0);
    ck_assert_int_eq(fr_cpu_quota(fr_made_root), 2);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------- /sys */

/* Makes two sockets with two last-level caches each. The CPUs are numbered as in Linux: the first hardware thread of
 * every core comes first, and then the siblings. */
static void make_sockets(bool nodes) {
    for (int cpu = 0; cpu < 16; cpu++) {
        char path[128], list[32];
        int core = cpu % 8, first = core / 4 * 4, pair = core / 2 * 2;
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        snprintf(list, sizeof list, "%d,%d\n", core, core + 8);
        fr_made_root_put(path, list);
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/topology/core_siblings_list", cpu);
        snprintf(list, sizeof list, "%d-%d,%d-%d\n", first, first + 3, first + 8, first + 11);
        fr_made_root_put(path, list);
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/cache/index3/shared_cpu_list", cpu);
        snprintf(list, sizeof list, "%d-%d,%d-%d\n", pair, pair + 1, pair + 8, pair + 9);
        fr_made_root_put(path, list);
    }
    if (!nodes) return;
    fr_made_root_put("sys/devices/system/node/online", "0-1,4\n");
    fr_made_root_put("sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
    fr_made_root_put("sys/devices/system/node/node1/cpulist", "4-7,12-15\n");
    fr_made_root_put("sys/devices/system/node/node4/cpulist", "\n"); /* a node that has memory but no CPU */
}

static void allow(bool *usable, int first, int last) {
    for (int cpu = first; cpu <= last; cpu++) usable[cpu] = true;
}

START_TEST(two_sockets) {
    static const int cpus[] = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};
    bool usable[FR_CPUS_MAX] = {false};
    fr_machine machine;
    make_sockets(_i == 0);
    allow(usable, 0, 15);
    ck_assert(fr_machine_from_sys(fr_made_root, usable, &machine));
    ck_assert_uint_eq(machine.count, 16);
    ck_assert_int_eq(machine.nodes, _i == 0 ? 2 : 1);
    for (size_t i = 0; i < 16; i++) {
        ck_assert_int_eq(machine.places[i].cpu, cpus[i]);
        ck_assert_int_eq(machine.places[i].core, cpus[i] % 8);
        ck_assert_int_eq(machine.places[i].node, _i == 0 ? (int)i / 8 : 0);
    }
}
END_TEST

START_TEST(a_part_of_two_sockets) {
    bool usable[FR_CPUS_MAX] = {false};
    fr_machine machine;
    make_sockets(true);
    allow(usable, 6, 6);
    allow(usable, 12, 14);
    ck_assert(fr_machine_from_sys(fr_made_root, usable, &machine));
    ck_assert_uint_eq(machine.count, 4);
    ck_assert_int_eq(machine.nodes, 1);
    ck_assert_int_eq(machine.places[3].core, machine.places[2].core);
    ck_assert_int_eq(machine.places[3].cpu, 14);
    usable[16] = true; /* /sys has no entry for this CPU */
    ck_assert(!fr_machine_from_sys(fr_made_root, usable, &machine));
    fr_made_root_put("sys/devices/system/cpu/cpu16/topology/thread_siblings_list", "sixteen\n");
    ck_assert(!fr_machine_from_sys(fr_made_root, usable, &machine));
    fr_made_root_put("sys/devices/system/cpu/cpu16/topology/thread_siblings_list", "99999999999999999999\n");
    ck_assert(!fr_machine_from_sys(fr_made_root, usable, &machine));
    ck_assert(!fr_machine_from_sys(fr_made_root, (bool[FR_CPUS_MAX]){false}, &machine));
}
END_TEST

/* ----------------------------------------------------------------------------------------------------- this machine */

START_TEST(this_machine) {
    fr_machine machine;
    fr_plan plan;
    ck_assert_uint_eq(fr_machine_read(&machine), FR_OK);
    ck_assert_uint_ge(machine.count, 1);
    ck_assert_int_ge(machine.nodes, 1);
    ck_assert_int_ge(machine.quota, 0);
    cpu_set_t usable[FR_CPUS_MAX / CPU_SETSIZE];
    ck_assert_int_eq(sched_getaffinity(0, sizeof usable, usable), 0);
    ck_assert_uint_eq(machine.count, (size_t)CPU_COUNT_S(sizeof usable, usable));
    for (size_t i = 0; i < machine.count; i++) {
        ck_assert(CPU_ISSET_S((size_t)machine.places[i].cpu, sizeof usable, usable));
        ck_assert_int_lt(machine.places[i].node, machine.nodes);
    }
    fr_plan_make(&machine, 0, true, true, &plan);
    ck_assert_uint_ge(plan.threads, 1);
    ck_assert(!plan.oversubscribed);
}
END_TEST

/* Some environment variables make hwloc read another machine. They must be ignored. */
START_TEST(the_environment_makes_no_machine) {
    fr_machine machine, again;
    ck_assert_uint_eq(fr_machine_read(&machine), FR_OK);
    setenv("HWLOC_SYNTHETIC", "numa:2 core:32 pu:1", 1);
    ck_assert_uint_eq(fr_machine_read(&again), FR_OK);
    ck_assert_uint_eq(again.count, machine.count);
    ck_assert_int_eq(memcmp(again.places, machine.places, machine.count * sizeof *machine.places), 0);
}
END_TEST

/* If the affinity mask has a single CPU, the machine must consist of that CPU only. The test tries this with up to four
 * CPUs. */
START_TEST(affinity_is_the_machine) {
    fr_machine all, one;
    cpu_set_t before[FR_CPUS_MAX / CPU_SETSIZE];
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, before), 0);
    ck_assert_uint_eq(fr_machine_read(&all), FR_OK);
    for (size_t i = 0; i < all.count && i < 4; i++) {
        cpu_set_t mask;
        CPU_ZERO(&mask);
        CPU_SET((size_t)all.places[i].cpu, &mask);
        if (all.places[i].cpu >= CPU_SETSIZE) break;
        ck_assert_int_eq(sched_setaffinity(0, sizeof mask, &mask), 0);
        ck_assert_uint_eq(fr_machine_read(&one), FR_OK);
        ck_assert_uint_eq(one.count, 1);
        ck_assert_int_eq(one.places[0].cpu, all.places[i].cpu);
        ck_assert_int_eq(one.places[0].node, 0);
        ck_assert_int_eq(one.nodes, 1);
    }
    ck_assert_int_eq(sched_setaffinity(0, sizeof before, before), 0);
}
END_TEST

static void use_no_record(void) {
    fr_process_registry_use("");
}

/* ------------------------------------------------------------------------------------------------------------ ranks */

/* Counts the ranks to which the CPUs of a core belong. All CPUs of a core must belong to the same ranks. */
static size_t ranks_of_core(const fr_machine *machine, bool taken[][FR_THREADS_MAX], size_t ranks, int core) {
    size_t count = 0;
    for (size_t rank = 0; rank < ranks; rank++) {
        size_t units = 0, own = 0;
        for (size_t i = 0; i < machine->count; i++) {
            units += machine->places[i].core == core;
            own += machine->places[i].core == core && taken[rank][i];
        }
        ck_assert_msg(own == 0 || own == units, "rank %zu has %zu of %zu units of core %d", rank, own, units, core);
        count += own > 0;
    }
    return count;
}

START_TEST(ranks_part_cores) {
    static const size_t counts[] = {2, 3, 7, 8, 20};
    static bool taken[20][FR_THREADS_MAX];
    size_t ranks = counts[_i];
    fr_machine machine;
    build(&machine, 2, (const int[]){5, 3}, 2, 0);
    for (size_t rank = 0; rank < ranks; rank++) {
        size_t units = 0;
        fr_ranks_cores(&machine, rank, ranks, taken[rank]);
        for (size_t i = 0; i < machine.count; i++) units += taken[rank][i];
        ck_assert_uint_ge(units, 2 * (8 / ranks > 0 ? 8 / ranks : 1));
        ck_assert_uint_le(units, 2 * ((8 + ranks - 1) / ranks));
    }
    for (int core = 0; core < 8; core++) {
        size_t owners = ranks_of_core(&machine, taken, ranks, core);
        ck_assert_uint_ge(owners, ranks <= 8 ? 1 : ranks / 8);
        ck_assert_uint_le(owners, (ranks + 7) / 8);
    }
}
END_TEST

FR_SUITE("topology") {
    TCase *pure = tcase_create("pure"), *files = tcase_create("files"), *here = tcase_create("here");
    TCase *beside = tcase_create("beside");
    tcase_add_checked_fixture(pure, use_no_record, NULL);
    tcase_add_checked_fixture(beside, make_record, remove_record);
    tcase_add_test(beside, processes_take_different_cores);
    tcase_add_test(beside, a_record_is_the_users_own);
    tcase_add_test(pure, partition);
    tcase_add_loop_test(pure, plan_is_proportional, 0, sizeof machines / sizeof *machines);
    tcase_add_test(pure, plan_of_two_uneven_nodes);
    tcase_add_test(pure, plan_defaults);
    tcase_add_test(pure, plan_without_pins_or_nodes);
    tcase_add_test(pure, several_nodes_are_pinned);
    tcase_add_loop_test(pure, rows_of_a_node_are_one_range, 0, sizeof machines / sizeof *machines);
    tcase_add_test(pure, claims_take_free_cores);
    tcase_add_test(pure, claims_are_even_where_cores_are_few);
    tcase_add_test(pure, claims_stay_on_their_nodes);
    tcase_add_test(pure, claims_of_unpinned_plans);
    tcase_add_loop_test(pure, ranks_part_cores, 0, 5);
    tcase_set_timeout(pure, 60);
    tcase_add_checked_fixture(files, fr_made_root_open, fr_made_root_close);
    tcase_add_loop_test(files, quota, 0, sizeof quotas / sizeof *quotas);
    tcase_add_test(files, quota_in_odd_files);
    tcase_add_loop_test(files, two_sockets, 0, 2);
    tcase_add_test(files, a_part_of_two_sockets);
    tcase_add_test(here, this_machine);
    tcase_add_test(here, the_environment_makes_no_machine);
    tcase_add_test(here, affinity_is_the_machine);
    suite_add_tcase(suite, pure);
    suite_add_tcase(suite, files);
    suite_add_tcase(suite, here);
    suite_add_tcase(suite, beside);
}
