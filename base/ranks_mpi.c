/* Ranks of an MPI job: see ranks.h.
 *
 * A gather is a message from each rank to each other one, sent and received without blocking and polled: MPI's own
 * collectives would wait forever for a rank that has gone. While it polls, rank 0 also looks for what a failing rank
 * says (TAG_LAST_WORDS). Messages between two ranks keep their order, so one tag serves all others.
 *
 *      rows     [own columns] -> packed ->  to every rank      packed columns of every other rank -> rows
 *      bytes    rank 0 -> every rank
 *
 * A process that ends joins a barrier of its own (`ends`): where all get there, MPI is finished as it should be; else
 * the job is aborted, by rank 0 if it lives. */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/ranks.h"

enum {
    TAG_ROWS = 1,
    TAG_LAST_WORDS = 2,
    LINE = 400,    /* bytes of a rank's last words */
    SPINS = 2000,  /* polls before a waiting rank lets others run in between */
    LOOKS = 64,    /* polls between two looks at the clock and at last words */
};

/* How long rank 0 waits for the others at the end, and they for it, where somebody has failed: it shall be the one that
 * ends the job, as it has said why. */
#define FIRST_GRACE 2.0
#define OTHERS_GRACE 5.0
#define OTHERS_PATIENCE 4 /* timeouts, where nobody has: rank 0 may have much to write */

struct fr_ranks {
    MPI_Comm rows, ends;
    int index, count;
    double timeout;
    fr_failure failure; /* FR_OK: none */
    uint8_t *buffer;    /* own columns packed, then those of each other rank */
    size_t size;
    MPI_Request requests[2 * FR_MAX_RANKS];
    fr_ranks_traffic sent;
};

/* ---------------------------------------------------------------------------------------------------------- joining */

static fr_status refuse(const char *what) {
    return fr_fail(FR_MACHINE, "MPI: %s", what);
}

static fr_status join(fr_ranks *r) {
    if (MPI_Comm_dup(MPI_COMM_WORLD, &r->rows) || MPI_Comm_dup(MPI_COMM_WORLD, &r->ends))
        return refuse("no communicator");
    MPI_Comm_set_errhandler(r->rows, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(r->ends, MPI_ERRORS_RETURN);
    MPI_Comm_rank(r->rows, &r->index);
    MPI_Comm_size(r->rows, &r->count);
    if (r->count > FR_MAX_RANKS) return fr_fail(FR_MACHINE, "%d ranks: at most %d", r->count, FR_MAX_RANKS);
    return FR_OK;
}

fr_status fr_ranks_open(double timeout, fr_ranks **ranks) {
    int provided = 0, started = 0;
    *ranks = NULL;
    MPI_Initialized(&started);
    if (started) return refuse("this process is in a job already");
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided)) return refuse("it can't be started");
    if (provided < MPI_THREAD_SERIALIZED) return refuse("its library can't be called by threads");
    fr_ranks *r = calloc(1, sizeof *r);
    if (!r) return fr_fail_memory("ranks", sizeof *r);
    r->timeout = timeout;
    fr_status status = join(r);
    *ranks = r; /* failed or not, it is left as it was joined */
    return status;
}

void fr_ranks_patience(fr_ranks *r, double timeout) {
    if (r) r->timeout = timeout;
}

size_t fr_ranks_index(const fr_ranks *ranks) {
    return ranks ? (size_t)ranks->index : 0;
}

size_t fr_ranks_count(const fr_ranks *ranks) {
    return ranks ? (size_t)ranks->count : 1;
}

fr_status fr_ranks_check(const fr_ranks *ranks) {
    return ranks ? fr_failure_raise(&ranks->failure) : FR_OK;
}

fr_ranks_traffic fr_ranks_told(const fr_ranks *ranks) {
    return ranks ? ranks->sent : (fr_ranks_traffic){0};
}

/* ---------------------------------------------------------------------------------------------------------- waiting */

static void fail(fr_ranks *r, fr_status status) {
    if (r->failure.status == FR_OK) r->failure = fr_failure_keep(status);
}

/* What a failing rank has said, if one has: a line of LINE bytes at most. */
static bool take_last_words(fr_ranks *r, int *from, char *line) {
    int there = 0;
    MPI_Status status;
    if (r->index || MPI_Iprobe(MPI_ANY_SOURCE, TAG_LAST_WORDS, r->ends, &there, &status) || !there) return false;
    *from = status.MPI_SOURCE;
    memset(line, 0, LINE);
    return MPI_Recv(line, LINE - 1, MPI_BYTE, *from, TAG_LAST_WORDS, r->ends, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

/* The ranks with a request that is not done, the first of them. */
static int silent_rank(fr_ranks *r, int count, const int *peers) {
    for (int i = 0; i < count; i++) {
        int done = 0;
        if (r->requests[i] != MPI_REQUEST_NULL) MPI_Test(&r->requests[i], &done, MPI_STATUS_IGNORE);
        if (r->requests[i] != MPI_REQUEST_NULL && !done) return peers[i];
    }
    return -1;
}

/* Whether to go on waiting. */
static bool look_around(fr_ranks *r, int count, const int *peers, double start) {
    int from;
    char line[LINE];
    if (take_last_words(r, &from, line)) {
        fail(r, fr_fail(FR_MACHINE, "rank %d: %s", from, line));
    } else if (fr_clock() - start > r->timeout) {
        int silent = silent_rank(r, count, peers);
        if (silent >= 0) fail(r, fr_fail(FR_MACHINE, "rank %d is silent for %g s", silent, r->timeout));
    }
    return r->failure.status == FR_OK;
}

/* Until all requests are done, or the job has failed. */
static void await(fr_ranks *r, int count, const int *peers) {
    double start = fr_clock();
    for (unsigned polls = 1;; polls++) {
        int done = 0;
        if (MPI_Testall(count, r->requests, &done, MPI_STATUSES_IGNORE))
            fail(r, fr_fail(FR_MACHINE, "rank %d: messages between ranks fail", r->index));
        if (done || r->failure.status != FR_OK) break;
        if (polls % LOOKS == 0 && !look_around(r, count, peers, start)) break;
        if (polls > SPINS) sched_yield();
    }
    r->sent.seconds += fr_clock() - start;
}

/* ---------------------------------------------------------------------------------------------------------- sending */

static bool reserve(fr_ranks *r, size_t size) {
    if (size <= r->size) return true;
    uint8_t *larger = realloc(r->buffer, size);
    if (!larger) {
        fail(r, fr_fail_memory("rows of ranks", size));
        return false;
    }
    r->buffer = larger;
    r->size = size;
    return true;
}

static size_t columns_of(const fr_ranks_rows *rows, size_t count, int rank) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += rows[i].rows * (rows[i].bounds[rank + 1] - rows[i].bounds[rank]);
    return bytes;
}

/* One rank's columns between rows and a message. */
static void copy_columns(const fr_ranks_rows *rows, size_t count, int rank, uint8_t *message, bool pack) {
    for (size_t i = 0; i < count; i++) {
        size_t begin = rows[i].bounds[rank], size = rows[i].bounds[rank + 1] - begin;
        for (size_t r = 0; r < rows[i].rows; r++, message += size) {
            uint8_t *row = rows[i].at + r * rows[i].stride + begin;
            memcpy(pack ? message : row, pack ? row : message, size);
        }
    }
}

static int post_send(fr_ranks *r, int requests, int *peers, int peer, const uint8_t *bytes, size_t size) {
    MPI_Isend(bytes, (int)size, MPI_BYTE, peer, TAG_ROWS, r->rows, &r->requests[requests]);
    r->sent.messages++;
    r->sent.bytes += size;
    peers[requests] = peer;
    return requests + 1;
}

static int post_receive(fr_ranks *r, int requests, int *peers, int peer, uint8_t *bytes, size_t size) {
    MPI_Irecv(bytes, (int)size, MPI_BYTE, peer, TAG_ROWS, r->rows, &r->requests[requests]);
    peers[requests] = peer;
    return requests + 1;
}

void fr_ranks_gather(fr_ranks *r, const fr_ranks_rows *rows, size_t count) {
    int peers[2 * FR_MAX_RANKS], requests = 0;
    size_t at[FR_MAX_RANKS + 1], own = columns_of(rows, count, r->index);
    if (r->failure.status != FR_OK) return;
    at[0] = own;
    for (int i = 0; i < r->count; i++) at[i + 1] = at[i] + (i == r->index ? 0 : columns_of(rows, count, i));
    if (at[r->count] > INT32_MAX) {
        fail(r, fr_fail(FR_MACHINE, "rows of %zu bytes are too long for one message", at[r->count]));
        return;
    }
    if (!reserve(r, at[r->count])) return;
    copy_columns(rows, count, r->index, r->buffer, true);
    for (int i = 0; i < r->count; i++)
        if (at[i + 1] > at[i]) requests = post_receive(r, requests, peers, i, r->buffer + at[i], at[i + 1] - at[i]);
    for (int i = 1; i < r->count && own; i++)
        requests = post_send(r, requests, peers, (r->index + i) % r->count, r->buffer, own);
    await(r, requests, peers);
    if (r->failure.status != FR_OK) return;
    for (int i = 0; i < r->count; i++)
        if (at[i + 1] > at[i]) copy_columns(rows, count, i, r->buffer + at[i], false);
}

void fr_ranks_broadcast(fr_ranks *r, void *bytes, size_t size) {
    int peers[2 * FR_MAX_RANKS], requests = 0;
    if (!r || r->failure.status != FR_OK || size == 0) return;
    if (size > INT32_MAX) {
        fail(r, fr_fail(FR_MACHINE, "%zu bytes are too many for one message", size));
        return;
    }
    if (r->index) requests = post_receive(r, requests, peers, 0, bytes, size);
    for (int i = 1; i < r->count && r->index == 0; i++) requests = post_send(r, requests, peers, i, bytes, size);
    await(r, requests, peers);
}

fr_status fr_ranks_agree(fr_ranks *r, const void *bytes, size_t size, const char *what) {
    uint8_t first[256];
    if (!r) return FR_OK;
    if (size > sizeof first) return fr_fail(FR_USAGE, "%s: %zu bytes are too many to compare", what, size);
    memcpy(first, bytes, size);
    fr_ranks_broadcast(r, first, size);
    if (r->failure.status == FR_OK && memcmp(first, bytes, size) != 0)
        fail(r, fr_fail(FR_MACHINE, "%s is not rank 0's", what));
    return fr_ranks_check(r);
}

/* ---------------------------------------------------------------------------------------------------------- leaving */

/* Whether all others have come to their end within that time. */
static bool all_end(fr_ranks *r, double seconds) {
    MPI_Request barrier;
    int done = 0;
    double start = fr_clock();
    if (MPI_Ibarrier(r->ends, &barrier)) return false;
    while (MPI_Test(&barrier, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done && fr_clock() - start < seconds)
        sched_yield();
    return done;
}

int fr_ranks_leave(fr_ranks *r, int code, const char *line, char *said, size_t size) {
    int from;
    char words[LINE];
    if (size) said[0] = '\0';
    if (!r) return code;
    MPI_Request sent = MPI_REQUEST_NULL;
    if (code && r->index) MPI_Isend(line, (int)strnlen(line, LINE - 1), MPI_BYTE, 0, TAG_LAST_WORDS, r->ends, &sent);
    double grace = r->index ? OTHERS_GRACE : FIRST_GRACE;
    double patience = r->index ? OTHERS_PATIENCE * r->timeout : r->timeout;
    bool together = all_end(r, code ? grace : patience);
    while (take_last_words(r, &from, words)) {
        if (code == 0 && size && !said[0]) snprintf(said, size, "rank %d: %s", from, words);
        if (code == 0) code = 1;
    }
    if (together) MPI_Finalize();
    else MPI_Abort(MPI_COMM_WORLD, code ? code : 1);
    return code;
}
