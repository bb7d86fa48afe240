/* A rank of a job: see ranks.h.
 *
 * Every rank runs the same command with the same arguments. Standard output of ranks but the first is dropped; their
 * standard error is kept, as rank 0 is told its last line where one of them fails. */
#include "ranks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "forerun_lab_ranks.h"
#include "output.h"
#include "verbs.h"

enum { SILENT_SECONDS = 30, LINE = 400 };

static int kept = -1; /* standard error of a rank that nobody sees */

/* By what OpenMPI's mpirun, Slurm's srun --mpi=pmix, and other programs that start such jobs, say of them. */
static bool has_company(void) {
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const char *size = getenv(sizes[i]);
        if (size && strtol(size, NULL, 10) > 1) return true;
    }
    const char *tasks = getenv("PMIX_RANK") ? getenv("SLURM_STEP_NUM_TASKS") : NULL;
    return tasks && strtol(tasks, NULL, 10) > 1;
}

/* The last line of what was kept, without the command's name in front. */
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

/* What a process does that exits, wherever: the job learns how. */
static void leave(int code, void *nothing) {
    (void)nothing;
    char line[LINE] = "", said[LINE] = "";
    fflush(NULL);
    if (kept >= 0) read_last_line(line);
    int all = fr_ranks_part(code, line, said, sizeof(said));
    if (*said) fr_bad_input("%s", said);
    if (all != code) _exit(all);
}

static int hide(void) {
    int nowhere = open("/dev/null", O_WRONLY);
    kept = memfd_create("forerun-rank", 0);
    if (nowhere < 0 || kept < 0) return fr_bad_input("rank %zu has no place for what it would print", fr_rank());
    dup2(nowhere, STDOUT_FILENO);
    dup2(kept, STDERR_FILENO);
    close(nowhere);
    return 0;
}

int fr_ranks_enter(void) {
    if (!has_company()) return 0;
    int code = fr_exit_status(fr_ranks_join(SILENT_SECONDS));
    if (code) return code;
    on_exit(leave, NULL);
    return fr_rank() > 0 ? hide() : 0;
}

int fr_ranks_check_arguments(const fr_verb *verb, fr_arguments *args) {
    static const unsigned runs = FR_VERB_GENERATE | FR_VERB_LOGITS | FR_VERB_VERIFY | FR_VERB_BATCH |
                                 FR_VERB_BENCH;
    static const fr_arg written[] = {FR_ARG_OUT_FILE, FR_ARG_TRACE, FR_ARG_BENCH_PLOT};
    if (fr_rank_count() == 1) return 0;
    if (args->given[FR_ARG_RANK_TIMEOUT]) fr_lab_ranks_timeout((int)args->number[FR_ARG_RANK_TIMEOUT]);
    if (!(verb->bit & runs)) return fr_wrong_usage("%s does not run as several ranks", verb->name);
    if (args->given[FR_ARG_PROMPT_CACHE] || args->given[FR_ARG_RESUME])
        return fr_wrong_usage("--prompt-cache and --resume are not for several ranks");
    if (args->given[FR_ARG_FILE] && strcmp(args->text[FR_ARG_FILE], "-") == 0)
        return fr_wrong_usage("-f -: ranks have no standard input in common, give a file");
    for (size_t i = 0; i < sizeof(written) / sizeof(*written) && fr_rank() > 0; i++)
        if (args->given[written[i]] && verb->bit != FR_VERB_BENCH) args->text[written[i]] = "/dev/null";
    return 0;
}
