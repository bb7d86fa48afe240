/* Starts other programs that run during a measurement (busy_processes.h). */
#include "bench/busy_processes.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

/* Forks. *pid becomes 0 in the child, and the child's id in the parent. The child ends when its parent does, even if
 * the parent is killed. */
static fr_status make_process(fr_bench_busy_processes *busy, pid_t *pid) {
    pid_t parent = getpid();
    *pid = busy->count < FR_BENCH_BUSY_PROCESSES_MAX ? fork() : (errno = EAGAIN, -1);
    if (*pid < 0) return fr_fail(FR_MACHINE, "can't make a process: %s", strerror(errno));
    if (*pid) {
        busy->at[busy->count++] = *pid;
        return FR_OK;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    return FR_OK;
}

static void compute_for_ever(void) {
    for (volatile unsigned n = 0;; n++) {}
}

fr_status fr_bench_busy_processes_add_loops(fr_bench_busy_processes *busy, size_t count) {
    for (size_t i = 0; i < count; i++) {
        pid_t pid;
        FR_TRY(make_process(busy, &pid));
        if (pid == 0) compute_for_ever();
    }
    return FR_OK;
}

/* Decodes without end, in the child. Writes a byte to `ready` once decoding has begun. Exits if the child can't
 * decode. */
static void decode_for_ever(const char *path, const fr_options *options, int ready) {
    fr_bench_decoder decoder = {.session = NULL};
    fr_status status = fr_model_open(path, options, &decoder.model);
    if (status == FR_OK) status = fr_bench_decoder_begin(&decoder, options);
    if (status == FR_OK) status = fr_bench_decoder_step(&decoder);
    if (status != FR_OK || write(ready, "", 1) != 1) _exit(1);
    while (fr_bench_decoder_step(&decoder) == FR_OK) {}
    _exit(1);
}

fr_status fr_bench_busy_processes_add_decoder(fr_bench_busy_processes *busy, const char *model,
                                              const fr_options *options) {
    int ends[2];
    char byte;
    pid_t pid;
    if (pipe(ends)) return fr_fail(FR_MACHINE, "no pipe: %s", strerror(errno));
    fr_status status = make_process(busy, &pid);
    if (status == FR_OK && pid == 0) decode_for_ever(model, options, ends[1]);
    close(ends[1]);
    if (status == FR_OK && read(ends[0], &byte, 1) != 1)
        status = fr_fail(FR_MACHINE, "%s: another program could not decode with it at the same time", model);
    close(ends[0]);
    return status;
}

void fr_bench_busy_processes_end(fr_bench_busy_processes *busy) {
    for (size_t i = 0; i < busy->count; i++) kill(busy->at[i], SIGKILL);
    for (size_t i = 0; i < busy->count; i++) waitpid(busy->at[i], NULL, 0);
    busy->count = 0;
}

/* --------------------------------------------------------------------------------------------------------- decoding */

static const int32_t prompt[] = {1, 2, 3, 4, 5, 6, 7, 8};
enum { PROMPT = sizeof prompt / sizeof *prompt };

fr_status fr_bench_decoder_begin(fr_bench_decoder *decoder, const fr_options *options) {
    fr_session_close(decoder->session);
    decoder->session = NULL;
    FR_TRY(fr_session_open(decoder->model, NULL, options, &decoder->session));
    return fr_session_prompt(decoder->session, prompt, PROMPT);
}

fr_status fr_bench_decoder_step(fr_bench_decoder *decoder) {
    int32_t id;
    size_t count, accepted;
    FR_TRY(fr_session_step(decoder->session, &id, 1, &count, &accepted));
    if (count) return FR_OK;
    fr_session_reset(decoder->session);
    return fr_session_prompt(decoder->session, prompt, PROMPT);
}

void fr_bench_decoder_end(fr_bench_decoder *decoder) {
    fr_session_close(decoder->session);
    fr_model_close(decoder->model);
    *decoder = (fr_bench_decoder){.session = NULL};
}
