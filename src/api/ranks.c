/* The job of processes that this one is in, of which there is one at most: fr_ranks_... of forerun.h.
 *
 * In: a job as the system started it. Out: its ranks, for models that are opened. */
#include "src/api/ranks.h"

#include "base/error.h"
#include "forerun_lab_ranks.h"

static fr_ranks *job; /* set once, before there are threads */
static bool joined;

fr_ranks *fr_job(void) {
    return fr_ranks_count(job) > 1 ? job : NULL;
}

fr_status fr_ranks_join(int timeout_seconds) {
    if (timeout_seconds < 1) return fr_fail(FR_USAGE, "fr_ranks_join: %d seconds are no time", timeout_seconds);
    if (joined) return fr_fail(FR_USAGE, "fr_ranks_join: this process has joined its job already");
    joined = true;
    return fr_ranks_open(timeout_seconds, &job);
}

void fr_lab_ranks_timeout(int seconds) {
    fr_ranks_patience(job, seconds);
}

void fr_lab_ranks_sent(uint64_t *messages, uint64_t *bytes, double *seconds) {
    fr_ranks_traffic told = fr_ranks_told(job);
    *messages = told.messages;
    *bytes = told.bytes;
    *seconds = told.seconds;
}

size_t fr_rank(void) {
    return fr_ranks_index(job);
}

size_t fr_rank_count(void) {
    return fr_ranks_count(job);
}

int fr_ranks_part(int code, const char *line, char *said, size_t size) {
    fr_ranks *left = job;
    job = NULL;
    return fr_ranks_leave(left, code, line ? line : "", said, size);
}
