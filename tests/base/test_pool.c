/* Tests base/pool. Every thread must run each job once, no thread may pass a barrier early, sleeping threads must wake
 * up, and the calling thread must keep its own settings. */
/* suite: threads alone native */
#include "base/pool.h"

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>

#include "tests/support/suite.h"

#define DEFAULT_CONTROL 0x1F80u
/* results that are denormals become zero, rounding is down, and operands that are denormals count as zero */
#define ODD_CONTROL     (0x1F80u | 0x8000u | 0x2000u | 0x0040u)
static uint64_t control(void) {
    return _mm_getcsr() & ~0x3Fu; /* without the exception flags */
}
static void set_control(uint64_t word) {
    _mm_setcsr((unsigned)word);
}
#elif defined(__aarch64__)
#define DEFAULT_CONTROL 0u
#define ODD_CONTROL     (1u << 24 | 2u << 22) /* flush to zero, round down */
static uint64_t control(void) {
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word;
}
static void set_control(uint64_t word) {
    __asm__ volatile("msr fpcr, %0" : : "r"(word));
}
#endif

/* ------------------------------------------------------------------------------------------------------------ plans */

static fr_machine here;

static void read_machine(void) {
    ck_assert_uint_eq(fr_machine_read(&here), FR_OK);
}

static fr_pool *open_pool(size_t threads, bool pin) {
    fr_plan plan;
    fr_pool *pool;
    fr_plan_make(&here, threads, pin, true, &plan);
    ck_assert_uint_eq(fr_pool_open(&plan, &pool), FR_OK);
    ck_assert_ptr_nonnull(pool);
    return pool;
}

static size_t living_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(tasks);
    size_t count = 0;
    while (readdir(tasks)) count++;
    closedir(tasks);
    return count;
}

static void nap(long microseconds) {
    nanosleep(&(struct timespec){0, 1000 * microseconds}, NULL);
}

/* Checks that at most this many threads are left. After a thread was joined, the system may still list it for a moment,
 * so the function waits for up to five seconds. */
static void check_threads_left(size_t most) {
    for (int tries = 0; tries < 1000 && living_threads() > most; tries++) nap(5000);
    ck_assert_uint_le(living_threads(), most);
}

/* Counts the threads of this process. It first opens and closes a pool, because a sanitizer may start a thread of its
 * own with the first pool. */
static size_t threads_before(void) {
    fr_pool_close(open_pool(2, false));
    return living_threads();
}

static const size_t team_sizes[] = {1, 2, 3, 4, 5, 8, 17, 64};

/* ------------------------------------------------------------------------------------------------------ single runs */

typedef struct roll {
    int runs[FR_THREADS_MAX];
    size_t count[FR_THREADS_MAX];
    bool alone[FR_THREADS_MAX];
    pthread_t first;
} roll;

static void answer(void *context, const fr_team *team) {
    roll *call = context;
    call->runs[team->index]++;
    call->count[team->index] = team->count;
    call->alone[team->index] = team->pool == NULL;
    if (team->index == 0) call->first = pthread_self();
}

START_TEST(everyone_runs_once) {
    size_t threads = team_sizes[_i / 2];
    fr_pool *pool = open_pool(threads, _i % 2);
    roll call = {0};
    for (int run = 1; run <= 50; run++) {
        fr_pool_run(pool, answer, &call);
        for (size_t t = 0; t < FR_THREADS_MAX; t++) ck_assert_int_eq(call.runs[t], t < threads ? run : 0);
    }
    for (size_t t = 0; t < threads; t++) {
        ck_assert_uint_eq(call.count[t], threads);
        ck_assert(call.alone[t] == (threads == 1));
    }
    ck_assert(pthread_equal(call.first, pthread_self()));
    fr_pool_close(pool);
}
END_TEST

static void sync_alone(void *context, const fr_team *team) {
    for (int i = 0; i < 3; i++) fr_team_sync(team);
    ++*(int *)context;
}

START_TEST(one_thread_starts_none) {
    size_t before = living_threads();
    int runs = 0;
    fr_pool *pool = open_pool(1, true);
    fr_pool_run(pool, sync_alone, &runs);
    ck_assert_uint_eq(living_threads(), before);
    ck_assert_int_eq(runs, 1);
    fr_pool_close(pool);
}
END_TEST

/* The C library puts a process's thread-local variables on each thread's stack. The rest of the stack must still have
 * the 250 KB that kernels need, however large these variables are. */
static _Thread_local volatile char of_the_process[800 << 10];

static void go_deep(void *context, const fr_team *team) {
    volatile char frame[300 << 10];
    for (size_t at = 0; at < sizeof frame; at += 1024) frame[at] = (char)team->index;
    for (size_t at = 0; at < sizeof of_the_process; at += 1024) of_the_process[at] = (char)team->index;
    ((size_t *)context)[team->index] = (size_t)frame[1024] + (size_t)of_the_process[1024];
}

START_TEST(threads_have_room_for_kernels) {
    size_t seen[3] = {9, 9, 9};
    fr_pool *pool = open_pool(3, false);
    fr_pool_run(pool, go_deep, seen);
    for (size_t t = 0; t < 3; t++) ck_assert_uint_eq(seen[t], 2 * t);
    fr_pool_close(pool);
}
END_TEST

/* ---------------------------------------------------------------------------------------------- part of the threads */

#define SOME_TEAM 17

typedef struct numbers {
    uint32_t state;
    size_t most, last;
} numbers;

static size_t draw_number(void *context) {
    numbers *n = context;
    n->state = n->state * 1664525u + 1013904223u;
    return n->last = 1 + (n->state >> 16) % n->most;
}

typedef struct shares {
    /* number of times that item i was incremented; a different thread owns the item in each round */
    int owner[1000];
    /* for each thread, the number of items that had not been incremented exactly once in a round */
    int wrong[SOME_TEAM];
    int ran[SOME_TEAM];
    size_t count[SOME_TEAM];
} shares;

/* Runs three rounds. In each round a thread increments its own items, waits at a barrier, and then checks the items of
 * all threads. */
static void count_up(void *context, const fr_team *team) {
    shares *s = context;
    size_t begin, end;
    s->ran[team->index]++;
    s->count[team->index] = team->count;
    for (int round = 0; round < 3; round++) {
        int before = s->owner[0];
        fr_team_sync(team);
        fr_partition(1000, 1, (team->index + (size_t)round) % team->count, team->count, &begin, &end);
        for (; begin < end; begin++) s->owner[begin]++;
        fr_team_sync(team);
        for (size_t i = 0; i < 1000; i++) s->wrong[team->index] += s->owner[i] != before + 1;
    }
}

/* Each run takes the first n threads of the pool. n is random and does not depend on the run before. Every seventh run
 * takes all threads. Naps between runs let the threads fall asleep. */
START_TEST(some_take_part) {
    size_t threads = (size_t[]){2, 3, 5, SOME_TEAM}[_i / 2];
    static shares s;
    numbers n = {.state = 1, .most = threads};
    fr_pool *pool = open_pool(threads, _i % 2);
    fr_pool_choose(pool, draw_number, &n);
    int whole = 0, with_all = 0;
    for (int run = 0; run < 400; run++) {
        int before[SOME_TEAM];
        memcpy(before, s.ran, sizeof before);
        if (run % 7 == 0)
            n.last = threads, fr_pool_run(pool, count_up, &s);
        else
            fr_pool_run_some(pool, &s, 1, count_up, &s);
        for (size_t t = 0; t < threads; t++) {
            ck_assert_int_eq(s.ran[t], before[t] + (t < n.last));
            if (t < n.last) ck_assert_uint_eq(s.count[t], n.last);
        }
        whole += n.last == threads;
        with_all += s.ran[threads - 1] == whole;
        if (run % 20 == 0) nap(500);
    }
    fr_pool_close(pool);
    ck_assert_int_eq(with_all, 400);
    for (size_t t = 0; t < threads; t++) ck_assert_int_eq(s.wrong[t], 0);
    for (size_t i = 0; i < 1000; i++) ck_assert_int_eq(s.owner[i], 3 * 400);
}
END_TEST

/* If threads of the pool wait long for a core, they are parked, which means that they take no part in the next runs.
 * This test runs alone and is short, so usually no thread is parked. On a busy machine some may be parked. Then the
 * remaining threads complete the run. */
START_TEST(the_chosen_threads_take_part) {
    static shares s;
    fr_pool *pool = open_pool(3, false);
    for (int run = 0; run < 2000; run++) fr_pool_run_some(pool, &s, 1, count_up, &s);
    fr_pool_close(pool);
    ck_assert_int_eq(s.ran[0], 2000);
    ck_assert_int_ge(s.ran[1], 1);
    for (size_t i = 0; i < 1000; i++) ck_assert_int_eq(s.owner[i], 3 * 2000);
}
END_TEST

/* With threads on two nodes, every run takes all threads. Each thread multiplies the rows of weights that are in its
 * own node's memory, so no thread can be left out. */
START_TEST(nodes_take_part_whole) {
    fr_plan plan;
    fr_pool *pool;
    static shares s;
    fr_plan_make(&here, 4, false, false, &plan);
    plan.nodes = 2;
    plan.node[2] = plan.node[3] = 1;
    ck_assert_uint_eq(fr_pool_open(&plan, &pool), FR_OK);
    fr_pool_choose(pool, draw_number, &(numbers){.most = 4});
    for (int run = 0; run < 200; run++) fr_pool_run_some(pool, &s, 1, count_up, &s);
    fr_pool_close(pool);
    for (size_t t = 0; t < 4; t++) ck_assert_int_eq(s.ran[t], 200);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- barriers */

#define BARRIER_TEAM 8

typedef struct relay {
    int rounds;
    int nap_every; /* in each round one thread naps. After this many rounds the next thread takes its
                                     * place; 0: no thread naps */
    /* plain variables instead of atomic ones, so that only the barrier orders the accesses */
    int slots[2][BARRIER_TEAM][16];
    int early[BARRIER_TEAM]; /* for each thread, the number of slots that it read before they were written */
} relay;

/* Writes the thread's own slot, waits at a barrier, and reads the slots of all threads. Odd and even rounds have
 * different slots. So the next write of a fast thread does not disturb the reads of a slow thread. */
static void run_relay(void *context, const fr_team *team) {
    relay *race = context;
    for (int round = 1; round <= race->rounds; round++) {
        if (race->nap_every && (size_t)(round / race->nap_every) % team->count == team->index) {
            nap(300);
        }
        race->slots[round % 2][team->index][0] = round;
        fr_team_sync(team);
        for (size_t t = 0; t < team->count; t++) race->early[team->index] += race->slots[round % 2][t][0] != round;
    }
}

static void check_relay(size_t threads, bool pin, int rounds, int nap_every) {
    static relay race;
    race = (relay){.rounds = rounds, .nap_every = nap_every};
    fr_pool *pool = open_pool(threads, pin);
    fr_pool_run(pool, run_relay, &race);
    fr_pool_close(pool);
    for (size_t t = 0; t < threads; t++) ck_assert_int_eq(race.early[t], 0);
    for (size_t t = 0; t < threads; t++) ck_assert_int_eq(race.slots[rounds % 2][t][0], rounds);
}

static const size_t relay_sizes[] = {1, 2, 3, 4, 8};

START_TEST(nobody_is_early) {
    check_relay(relay_sizes[_i], true, 100000, 0);
}
END_TEST

START_TEST(nobody_is_early_unpinned) {
    check_relay(relay_sizes[_i], false, 10000, 0);
}
END_TEST

/* One thread naps longer than the other threads spin at the barrier, so the other threads fall asleep there. */
START_TEST(sleepers_wake) {
    check_relay(relay_sizes[_i], true, 400, 1);
}
END_TEST

/* Between the runs the threads sometimes fall asleep and sometimes wait only briefly. */
START_TEST(workers_wake_for_a_run) {
    fr_pool *pool = open_pool(relay_sizes[_i], true);
    roll call = {0};
    for (int run = 1; run <= 300; run++) {
        if (run % 3 == 0) nap(run);
        fr_pool_run(pool, answer, &call);
        for (size_t t = 0; t < relay_sizes[_i]; t++) ck_assert_int_eq(call.runs[t], run);
    }
    fr_pool_close(pool);
}
END_TEST

static void sync_thrice(void *context, const fr_team *team) {
    int *sums = context;
    for (int i = 0; i < 3; i++) fr_team_sync(team);
    sums[team->index]++;
}

START_TEST(largest_team) {
    static int sums[FR_THREADS_MAX];
    fr_pool *pool = open_pool(FR_THREADS_MAX, true);
    for (int run = 0; run < 2; run++) fr_pool_run(pool, sync_thrice, sums);
    fr_pool_close(pool);
    for (size_t t = 0; t < FR_THREADS_MAX; t++) ck_assert_int_eq(sums[t], 2);
}
END_TEST

/* ---------------------------------------------------------------------------------------------- opening and closing */

START_TEST(open_and_close) {
    size_t before = threads_before();
    for (int i = 0; i < 1000; i++) {
        roll call = {0};
        fr_pool *pool = open_pool(2 + (size_t)i % 4, i % 2);
        if (i % 3) fr_pool_run(pool, answer, &call);
        if (i % 3) ck_assert_int_eq(call.runs[1], 1);
        fr_pool_close(pool);
    }
    fr_pool_close(NULL);
    check_threads_left(before);
}
END_TEST

/* One thread, either the last or the first, is bound to a CPU that no machine has. Opening the pool must then fail, and
 * all threads that were started must end. */
START_TEST(failed_open_leaves_nothing) {
    size_t before = threads_before();
    for (size_t threads = 2; threads < 40; threads += 3) {
        for (size_t bad = 1; bad<threads; bad += threads - 1> 1 ? threads - 2 : 1) {
            fr_plan plan;
            fr_pool *pool = (fr_pool *)&plan;
            fr_plan_make(&here, threads, false, true, &plan);
            plan.cpu[bad] = FR_CPUS_MAX - 1;
            ck_assert_uint_eq(fr_pool_open(&plan, &pool), FR_MACHINE);
            ck_assert_ptr_null(pool);
            ck_assert_ptr_nonnull(strstr(fr_last_error(), "CPU 8191"));
        }
    }
    check_threads_left(before);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------- callers */

typedef struct caller {
    fr_pool *pool;
    roll call;
    bool was_first;
} caller;

static void *call_once(void *argument) {
    caller *self = argument;
    fr_pool_run(self->pool, answer, &self->call);
    self->was_first = pthread_equal(self->call.first, pthread_self());
    return NULL;
}

START_TEST(callers_take_turns) {
    caller self = {.pool = open_pool(3, true)};
    for (int turn = 1; turn <= 30; turn++) {
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, call_once, &self), 0);
        pthread_join(thread, NULL);
        ck_assert(self.was_first);
        for (size_t t = 0; t < 3; t++) ck_assert_int_eq(self.call.runs[t], turn);
    }
    fr_pool_close(self.pool);
}
END_TEST

static void note_control(void *context, const fr_team *team) {
    uint64_t *words = context;
    words[team->index] = control();
}

/* A new thread inherits the floating-point control word of the thread that starts it. So the test opens and runs a pool
 * in a thread with ODD_CONTROL. The pool's threads must nevertheless have the default word. */
START_TEST(floating_point_environment) {
    size_t threads = team_sizes[_i];
    uint64_t words[FR_THREADS_MAX] = {0};
    set_control(ODD_CONTROL);
    fr_pool *pool = open_pool(threads, true);
    ck_assert_uint_eq(control(), ODD_CONTROL);
    for (int run = 0; run < 3; run++) {
        memset(words, 0xFF, sizeof words);
        fr_pool_run(pool, note_control, words);
        ck_assert_uint_eq(control(), ODD_CONTROL);
        for (size_t t = 0; t < threads; t++) ck_assert_uint_eq(words[t], DEFAULT_CONTROL);
    }
    fr_pool_close(pool);
    ck_assert_uint_eq(control(), ODD_CONTROL);
    set_control(DEFAULT_CONTROL);
}
END_TEST

/* -------------------------------------------------------------------------------------------------- cores and nodes */

static void note_cpu(void *context, const fr_team *team) {
    int *cpus = context;
    cpus[team->index] = sched_getcpu();
}

/* Before the runs, the calling thread is bound to the machine's last CPU. After each run it must be bound to that CPU
 * again. */
START_TEST(threads_are_where_the_plan_says) {
    size_t threads = _i ? here.count : 1;
    int cpus[FR_THREADS_MAX], last = here.places[here.count - 1].cpu;
    fr_plan plan;
    fr_pool *pool;
    fr_plan_make(&here, threads, true, true, &plan);
    ck_assert_uint_eq(fr_pool_open(&plan, &pool), FR_OK);

    cpu_set_t before[FR_CPUS_MAX / CPU_SETSIZE], bound, after;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, before), 0);
    CPU_ZERO(&bound);
    CPU_SET((size_t)last, &bound);
    ck_assert_int_eq(sched_setaffinity(0, sizeof bound, &bound), 0);
    for (int run = 0; run < 20; run++) {
        fr_pool_run(pool, note_cpu, cpus);
        for (size_t t = 0; t < threads; t++) ck_assert_int_eq(cpus[t], plan.cpu[t]);
        ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
        ck_assert(CPU_EQUAL(&bound, &after));
        ck_assert_int_eq(sched_getcpu(), last);
    }
    fr_pool_close(pool);
    ck_assert_int_eq(sched_setaffinity(0, sizeof before, before), 0);
}
END_TEST

static volatile int living;

/* Two other programs keep the CPUs busy, and a team must make progress nevertheless. If threads yielded the CPU at each
 * barrier, each yield would give the other programs a time slice of 3 ms. Here this would add up to minutes. */
START_TEST(busy_neighbours_leave_turns) {
    pid_t neighbours[2];
    for (size_t i = 0; i < 2; i++) {
        neighbours[i] = fork();
        ck_assert_int_ge(neighbours[i], 0);
        while (neighbours[i] == 0) (void)living; /* the child loops until it is killed */
    }
    check_relay(2, false, 150000, 0);
    check_relay(8, true, 15000, 0);
    for (size_t i = 0; i < 2; i++) {
        kill(neighbours[i], SIGKILL);
        waitpid(neighbours[i], NULL, 0);
    }
}
END_TEST

static TCase *add_case(Suite *suite, const char *name, double timeout) {
    TCase *cases = tcase_create(name);
    tcase_set_timeout(cases, timeout);
    tcase_add_checked_fixture(cases, read_machine, NULL);
    suite_add_tcase(suite, cases);
    return cases;
}

FR_SUITE("pool") {
    enum { TEAMS = sizeof team_sizes / sizeof *team_sizes, RELAYS = sizeof relay_sizes / sizeof *relay_sizes };
    TCase *runs = add_case(suite, "runs", 60), *barriers = add_case(suite, "barriers", 300);
    TCase *life = add_case(suite, "life", 120), *callers = add_case(suite, "callers", 60);
    TCase *beside = add_case(suite, "beside", 20);
    tcase_add_loop_test(runs, everyone_runs_once, 0, 2 * TEAMS);
    tcase_add_test(runs, one_thread_starts_none);
    tcase_add_test(runs, threads_have_room_for_kernels);
    tcase_add_loop_test(runs, some_take_part, 0, 8);
    tcase_add_test(runs, the_chosen_threads_take_part);
    tcase_add_test(runs, nodes_take_part_whole);
    tcase_add_loop_test(runs, workers_wake_for_a_run, 0, RELAYS);
    tcase_add_loop_test(barriers, nobody_is_early, 0, RELAYS);
    tcase_add_loop_test(barriers, nobody_is_early_unpinned, 0, RELAYS);
    tcase_add_loop_test(barriers, sleepers_wake, 0, RELAYS);
    tcase_add_test(barriers, largest_team);
    tcase_add_test(beside, busy_neighbours_leave_turns);
    tcase_add_test(life, open_and_close);
    tcase_add_test(life, failed_open_leaves_nothing);
    tcase_add_test(callers, callers_take_turns);
    tcase_add_loop_test(callers, floating_point_environment, 0, TEAMS);
    tcase_add_loop_test(callers, threads_are_where_the_plan_says, 0, 2);
}
