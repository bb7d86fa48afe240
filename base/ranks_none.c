/* Implements ranks.h for builds without MPI, in which a process is always alone. */
#include "base/error.h"
#include "base/ranks.h"

fr_status fr_ranks_open(double timeout, fr_ranks **ranks) {
    (void)timeout;
    *ranks = NULL;
    return fr_fail(FR_UNBUILT, "this build runs a model in one process, not as ranks of a job: make RANKS=mpi");
}

void fr_ranks_patience(fr_ranks *ranks, double timeout) {
    (void)ranks;
    (void)timeout;
}

void fr_ranks_deal(fr_ranks *ranks, const uint32_t *parts) {
    (void)ranks;
    (void)parts;
}

void fr_ranks_delay(fr_ranks *ranks, double seconds) {
    (void)ranks;
    (void)seconds;
}

uint64_t fr_ranks_before(const fr_ranks *ranks, size_t rank) {
    (void)ranks;
    return rank;
}

size_t fr_ranks_index(const fr_ranks *ranks) {
    (void)ranks;
    return 0;
}

size_t fr_ranks_count(const fr_ranks *ranks) {
    (void)ranks;
    return 1;
}

size_t fr_ranks_hosts(const fr_ranks *ranks) {
    (void)ranks;
    return 1;
}

void fr_ranks_gather(fr_ranks *ranks, const fr_ranks_rows *rows, size_t count) {
    (void)ranks;
    (void)rows;
    (void)count;
}

void fr_ranks_gather_begin(fr_ranks *ranks, const fr_ranks_rows *rows, size_t count) {
    (void)ranks;
    (void)rows;
    (void)count;
}

void fr_ranks_gather_end(fr_ranks *ranks, const fr_ranks_rows *rows, size_t count) {
    (void)ranks;
    (void)rows;
    (void)count;
}

void fr_ranks_hand_on(fr_ranks *ranks, size_t from, size_t to, const fr_ranks_block *blocks, size_t count) {
    (void)ranks;
    (void)from;
    (void)to;
    (void)blocks;
    (void)count;
}

void fr_ranks_gather_equal(fr_ranks *ranks, void *row, size_t size) {
    (void)ranks;
    (void)row;
    (void)size;
}

void fr_ranks_meet(fr_ranks *ranks) {
    (void)ranks;
}

void fr_ranks_broadcast(fr_ranks *ranks, void *bytes, size_t size) {
    (void)ranks;
    (void)bytes;
    (void)size;
}

void fr_ranks_listen(fr_ranks *ranks, void *bytes, size_t size) {
    (void)ranks;
    (void)bytes;
    (void)size;
}

fr_status fr_ranks_agree(fr_ranks *ranks, const void *bytes, size_t size, const char *what) {
    (void)ranks;
    (void)bytes;
    (void)size;
    (void)what;
    return FR_OK;
}

fr_status fr_ranks_check(const fr_ranks *ranks) {
    (void)ranks;
    return FR_OK;
}

void fr_ranks_enter_place(fr_ranks *ranks, size_t place) {
    (void)ranks;
    (void)place;
}

fr_ranks_traffic fr_ranks_told(const fr_ranks *ranks, size_t place) {
    (void)ranks;
    (void)place;
    return (fr_ranks_traffic){0};
}

void fr_ranks_end_late(fr_ranks *ranks, double seconds, fr_ranks_line_fn *end) {
    (void)ranks;
    (void)seconds;
    (void)end;
}

bool fr_ranks_struck(fr_ranks *ranks, int signal_number, bool pass) {
    (void)ranks;
    (void)signal_number;
    (void)pass;
    return true;
}

int fr_ranks_leave(fr_ranks *ranks, int code, const char *line, fr_ranks_line_fn *say) {
    (void)ranks;
    (void)line;
    (void)say;
    return code;
}
