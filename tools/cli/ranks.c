/* Runs the command as a rank of a job (ranks.h).
 *
 * Every rank runs the same command with the same arguments, but only the output of rank 0 is shown. Standard output of
 * the other ranks is dropped, and their standard error goes to a file in memory. If such a rank fails, rank 0 prints
 * the last line of that rank's file. */
#include "tools/cli/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/rank_shares.h"
#include "forerun_lab_ranks.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/option_table.h"
#include "tools/cli/output.h"
#include "tools/cli/verbs.h"

/* SILENT_SECONDS: a rank that was silent for this many seconds counts as gone. LINE: the most bytes of an error line,
 * including the NUL at its end. */
enum { SILENT_SECONDS = 30, LINE = 400 };
/* Milliseconds that a failing process waits before it ends. Meanwhile it holds a name that only one process of its
 * machine can hold (first_to_say). So other processes that fail during this time print no line. */
enum { LOOK_MS = 300 };

/* Seconds that rank 0 has to notice a failure while it computes a long prompt. This time must be short. When a rank has
 * died, the program that started the job kills the other ranks one second later. */
#define LATE_SECONDS 0.5

/* the file in memory that holds this rank's standard error; -1: the standard error is shown */
static int kept = -1;
static int seen = STDERR_FILENO; /* the standard error that the user sees */
static int exit_code = 1;        /* the status that main returns. Until main returns it is 1, because a process that
                                  * exits earlier has failed */
static void (*before_end)(void *context);
static void *before_end_context;

/* Returns true if the environment says that there are several ranks. OpenMPI's mpirun, Slurm's srun --mpi=pmix and
 * other programs that start such jobs set these variables. */
static bool has_other_ranks(void) {
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const char *size = getenv(sizes[i]);
        if (size && strtol(size, NULL, 10) > 1) return true;
    }
    const char *tasks = getenv("PMIX_RANK") ? getenv("SLURM_STEP_NUM_TASKS") : NULL;
    return tasks && strtol(tasks, NULL, 10) > 1;
}

/* Reads the last line of the file `kept`, without the command's name at its beginning. */
static void read_last_line(char *line) {
    static const char name[] = "forerun: ";
    char bytes[2 * LINE] = "";
    off_t end = lseek(kept, 0, SEEK_END), from = end > (off_t)sizeof(bytes) - 1 ? end - (off_t)sizeof(bytes) + 1 : 0;
    ssize_t got = pread(kept, bytes, sizeof(bytes) - 1, from);
    while (got > 0 && bytes[got - 1] == '\n') bytes[--got] = '\0';
    const char *at = strrchr(bytes, '\n');
    at = at ? at + 1 : bytes;
    if (strncmp(at, name, sizeof(name) - 1) == 0) at += sizeof(name) - 1;
    memccpy(line, at, '\0', LINE - 1);
}

/* Writes a line without allocating or locking, because a signal handler may call it. */
static void write_words(const char *line) {
    static const char name[] = "forerun: ";
    char words[LINE + sizeof(name)];
    size_t length = sizeof(name) - 1;
    memcpy(words, name, length);
    for (; *line && length < sizeof(words) - 1; line++) words[length++] = *line;
    words[length++] = '\n';
    if (write(seen, words, length) < 0) _exit(1);
}

/* ---------------------------------------------------------------------------------------------- joining and leaving */

/* Returns true in the first process of the job on this machine that wants to print a line. To find out whether it is
 * the first one, the process binds a socket to a name that only one living process can have. Further calls in the same
 * process return false, because this or another process has already printed the line. */
static bool first_to_say(void) {
    static atomic_flag asked = ATOMIC_FLAG_INIT;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (atomic_flag_test_and_set(&asked)) return false;
    const char *job = getenv("PMIX_NAMESPACE");
    if (!job) job = getenv("SLURM_JOB_ID");
    size_t length = 1;
    for (const char *part = "forerun-ranks-"; *part; part++) name.sun_path[length++] = *part;
    for (; job && *job && length < sizeof(name.sun_path); job++) name.sun_path[length++] = *job;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    int one = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return one >= 0 && bind(one, (struct sockaddr *)&name, size) == 0;
}

/* Ends a rank if a signal comes while ranks join or leave the job. At that time no rank knows which rank has failed.
 * The program that started the ranks ends all of them by this signal. */
static void end_unknown(int signal_number) {
    if (!fr_lab_ranks_struck(signal_number)) return;
    if (first_to_say()) {
        write_words("a rank was ended from outside before all had joined the job, or while they left it");
        poll(NULL, 0, LOOK_MS);
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void watch_for_unknown(struct sigaction *before) {
    struct sigaction action = {.sa_handler = end_unknown, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGTERM, NULL, before);
    if (before->sa_handler != SIG_IGN) sigaction(SIGTERM, &action, NULL);
}

/* Prints the error line that the job could not be formed. All ranks find this out at the same time, so only the first
 * one prints the line. */
static int fail_to_join(fr_status status) {
    int code = first_to_say() ? fr_exit_status(status) : 1;
    poll(NULL, 0, LOOK_MS);
    return code;
}

/* --------------------------------------------------------------------------------------------------------- failures */

/* Prints the error line of a failed rank. Rank 0 always prints it. Any other rank prints it only if no process of this
 * machine has printed a line yet. */
static void say(const char *line) {
    if (fr_rank() == 0 || first_to_say()) write_words(line);
}

/* Ends this process after another rank has failed, even while this process computes. The function runs in the thread
 * that watches the other ranks. */
static void end_late(const char *line) {
    if (before_end) before_end(before_end_context);
    fr_writer_remove();
    if (line && (kept >= 0 || !fr_has_failed())) say(line);
    _exit(1);
}

void fr_ranks_before_end(void (*act)(void *context), void *context) {
    before_end_context = context;
    before_end = act;
}

static bool struck(int signal_number) {
    return fr_lab_ranks_struck(signal_number);
}

/* Runs whenever the process exits, and sends its exit status to the other ranks. */
static void leave(void) {
    char line[LINE] = "";
    struct sigaction before;
    fflush(NULL);
    if (kept >= 0) read_last_line(line);
    watch_for_unknown(&before);
    int all = fr_ranks_part(exit_code, line, say);
    if (all != exit_code) _exit(all);
}

int fr_ranks_leave_with(int code) {
    return exit_code = code;
}

static int hide(void) {
    int nowhere = open("/dev/null", O_WRONLY);
    kept = memfd_create("forerun-rank", MFD_CLOEXEC);
    seen = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (nowhere < 0 || kept < 0 || seen < 0)
        return fr_bad_input("rank %zu can't open a place for its output: %m", fr_rank());
    dup2(nowhere, STDOUT_FILENO);
    dup2(kept, STDERR_FILENO);
    close(nowhere);
    return 0;
}

/* Keeps OpenMPI from loading libraries for networks if all ranks are on one machine, because these libraries take
 * memory in each rank. The variables have the names that OpenMPI 4 and 5 read. Values that the user has set stay. */
static void leave_networks_out(void) {
    static const char *const without[][2] = {
        {"OMPI_MCA_pml", "^ucx,cm"}, {"OMPI_MCA_btl", "^openib,ofi,uct,usnic"}, {"OMPI_MCA_osc", "^ucx"}};
    const char *all = getenv("OMPI_COMM_WORLD_SIZE"), *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    if (!all || !here || strcmp(all, here) != 0) return;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) setenv(without[i][0], without[i][1], 0);
}

/* Returns true if the user has told mpirun how to bind ranks to cores. The variables have the names that OpenMPI 4
 * uses. */
static bool binding_was_chosen(void) {
    static const char *const names[] = {"OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_hwloc_base_cpu_set",
                                        "OMPI_MCA_rmaps_base_cpus_per_rank", "OMPI_MCA_orte_rankfile"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i])) return true;
    const char *mapping = getenv("OMPI_MCA_rmaps_base_mapping_policy");
    if (!mapping) return false;
    return strcasestr(mapping, "PE=") || (strncmp(mapping, "slot", 4) != 0 && strncmp(mapping, "node", 4) != 0);
}

/* Removes mpirun's default binding of ranks to cores. If there are two ranks, mpirun binds each rank to one core. If
 * there are more, it binds each rank to one socket. A rank that is alone on its machine would then leave all other
 * cores idle. Without the binding, a rank may use all cores of the process that started it. Ranks on the same machine
 * divide these cores. */
static void undo_binding(void) {
    cpu_set_t usable[8];
    if (!getenv("OMPI_MCA_orte_bound_at_launch") || binding_was_chosen()) return;
    if (sched_getaffinity(getppid(), sizeof usable, usable) == 0) sched_setaffinity(0, sizeof usable, usable);
}

int fr_ranks_enter(void) {
    struct sigaction before;
    if (!has_other_ranks()) return 0;
    leave_networks_out();
    undo_binding();
    watch_for_unknown(&before);
    fr_status status = fr_ranks_join(SILENT_SECONDS);
    if (status != FR_OK) return fail_to_join(status);
    sigaction(SIGTERM, &before, NULL);
    fr_lab_ranks_end_late(LATE_SECONDS, end_late);
    fr_signal_ask(struck);
    atexit(leave);
    return fr_rank() > 0 ? hide() : 0;
}

/* Divides the model among the ranks, by rows or by layers. The option --rank-split chooses the way; without it the
 * faster way is chosen. Ranks on different machines get shares according to their measured speed. On a single machine
 * nothing is measured. */
static int split(const fr_arguments *args) {
    static const char *const words[] = {"auto", "rows", "layers"};
    uint32_t parts[FR_LAB_MOST_RANKS];
    fr_bench_rank_speed speed = {0};
    size_t how = FR_LAB_SPLIT_AUTO;
    while (args->given[FR_ARG_RANK_SPLIT] && strcmp(args->text[FR_ARG_RANK_SPLIT], words[how]) != 0) how++;
    bool deals = !args->given[FR_ARG_RANK_SHARES], asks = how == FR_LAB_SPLIT_AUTO;
    if (fr_lab_ranks_hosts() > 1 && (deals || asks)) {
        size_t threads = args->given[FR_ARG_THREADS] ? (size_t)args->number[FR_ARG_THREADS] : 0;
        speed = fr_bench_rank_shares(threads, parts);
        int code = deals ? fr_exit_status(fr_lab_ranks_deal(parts, fr_rank_count())) : 0;
        if (code) return code;
    }
    return fr_exit_status(fr_lab_ranks_split((fr_lab_split)how, speed.latency, speed.bandwidth));
}

/* Sets the ranks' shares from the option's list, such as "3,1". */
static int deal(const char *list) {
    uint32_t parts[FR_LAB_MOST_RANKS];
    size_t count = 0;
    for (const char *at = list; count < FR_LAB_MOST_RANKS; at++) {
        char *end;
        errno = 0;
        unsigned long part = strtoul(at, &end, 10);
        if (*at < '0' || *at > '9' || errno || part > UINT32_MAX || (*end && *end != ','))
            return fr_wrong_usage("--rank-shares %s: whole numbers, a comma between them", list);
        parts[count++] = (uint32_t)part;
        if (!*end) return fr_exit_status(fr_lab_ranks_deal(parts, count));
        at = end;
    }
    return fr_wrong_usage("--rank-shares: at most %d", FR_LAB_MOST_RANKS);
}

int fr_ranks_check_arguments(const fr_verb *verb, fr_arguments *args) {
    static const unsigned runs =
        FR_VERB_GENERATE | FR_VERB_LOGITS | FR_VERB_VERIFY | FR_VERB_BATCH | FR_VERB_BENCH | FR_VERB_SERVE;
    static const fr_arg alone[] = {FR_ARG_PROMPT_CACHE, FR_ARG_RESUME, FR_ARG_MODELS, FR_ARG_SLOT_SAVE_PATH};
    static const fr_arg written[] = {FR_ARG_OUT_FILE, FR_ARG_TRACE, FR_ARG_BENCH_PLOT};
    if (args->given[FR_ARG_RANK_SHARES] && (verb->bit & runs)) {
        int code = deal(args->text[FR_ARG_RANK_SHARES]);
        if (code) return code;
    }
    if (fr_rank_count() == 1) return 0;
    if (args->given[FR_ARG_RANK_TIMEOUT]) fr_lab_ranks_timeout((int)args->number[FR_ARG_RANK_TIMEOUT]);
    if (args->given[FR_ARG_RANK_DELAY]) fr_lab_ranks_delay((double)args->number[FR_ARG_RANK_DELAY] / 1e6);
    if (!(verb->bit & runs)) return fr_wrong_usage("%s does not run as several ranks", verb->name);
    for (size_t i = 0; i < sizeof(alone) / sizeof(*alone); i++) {
        const char *names = fr_option_table[alone[i]].names;
        if (args->given[alone[i]])
            return fr_wrong_usage("%.*s is not for several ranks", (int)strcspn(names, " "), names);
    }
    if (args->given[FR_ARG_FILE] && strcmp(args->text[FR_ARG_FILE], "-") == 0)
        return fr_wrong_usage("-f -: ranks have no standard input in common, give a file");
    for (size_t i = 0; i < sizeof(written) / sizeof(*written) && fr_rank() > 0; i++)
        if (args->given[written[i]] && verb->bit != FR_VERB_BENCH) args->text[written[i]] = "/dev/null";
    return split(args);
}
