/* Connects the ranks of an MPI job: see ranks.h.
 *
 * In a gather each rank sends a message to every other rank. Sending and receiving do not block, and each rank polls
 * until all its messages are done: MPI's own collectives would wait forever for a rank that has gone. While a rank
 * polls, it also checks what its watching thread has heard of the others (ranks_watch.h). Messages between two ranks
 * keep their order, so all messages use one tag.
 *
 *      rows     [own columns] -> packed ->  to every rank      packed columns of every other rank -> rows
 *      bytes    rank 0 -> every rank
 *
 * A process that ends tells the other ranks. If all of them end, MPI is finalized. Otherwise the job is aborted. Rank 0
 * aborts it if rank 0 is still running. */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/ranks.h"
#include "base/ranks_cores.h"
#include "base/ranks_watch.h"

enum {
    TAG_ROWS = 1,
    SPINS = 20,      /* polls before a waiting rank yields, because the rank that it waits for may need the core */
    BY_SIGNAL = 128, /* the exit status after an end by a signal is 128 plus the signal's number, as in shells */
    LOOKS = 64,      /* polls between two checks of the clock and of the other ranks */
};

/* LISTEN_BUSY and LISTEN_WHILE are seconds since a rank began to listen. Up to LISTEN_BUSY the rank only yields its
 * core, as it does between rounds. Then, up to LISTEN_WHILE, the rank sleeps for short times, and after that for
 * longer ones. */
#define LISTEN_BUSY  0.002
#define LISTEN_WHILE 1.0

/* FIRST_GRACE: seconds that rank 0 waits for the other ranks at the end of a failed job. OTHERS_GRACE: seconds that
 * the other ranks wait for rank 0, which should end the job, because it has printed the reason. */
#define FIRST_GRACE  2.0
#define OTHERS_GRACE 5.0

/* Number of timeouts that the other ranks wait for rank 0 at the end of a job in which no rank has failed: rank 0 may
 * still have much to write. */
#define OTHERS_PATIENCE 4

struct fr_ranks {
    MPI_Comm rows;
    fr_watch *watch;
    int index, count, hosts;
    uint32_t before[FR_RANKS_MAX + 1]; /* before[r]: the sum of the shares of all ranks below r */
    double timeout;
    uint8_t *buffer; /* this rank's own columns, followed by those of each other rank */
    size_t size;     /* bytes of the buffer */
    MPI_Request requests[2 * FR_RANKS_MAX];
    double delay; /* seconds that each message is delayed */
    /* Describes the gather that has begun: the rank of each request, the number of requests, the offset of each rank's
     * columns in the buffer, and the time when the gather began. */
    int peers[2 * FR_RANKS_MAX], posted;
    size_t at[FR_RANKS_MAX + 1];
    double begun;
    bool patient; /* calls wait without a timeout as long as the other ranks show signs of life */
    size_t place; /* index into `sent`: the part of the forward whose traffic is counted now */
    fr_ranks_traffic sent[FR_RANKS_PLACES];
};

/* ---------------------------------------------------------------------------------------------------------- joining */

static fr_status refuse(const char *what) {
    return fr_fail(FR_MACHINE, "MPI: %s", what);
}

/* Holds the facts about a rank that it sends to all others when it joins. */
typedef struct card {
    char host[FR_WATCH_HOST];
    uint64_t machine, cores; /* machine: key that is equal for ranks on one machine; cores: key that is equal for ranks
                              * on the same cores (ranks_cores.h) */
} card;

static int count_machines(const card *cards, int count) {
    int machines = 0;
    for (int i = 0; i < count; i++) {
        int first = 0;
        while (cards[first].machine != cards[i].machine) first++;
        machines += first == i;
    }
    return machines;
}

/* Tells all ranks where rank 0 listens, and connects them to it. */
static fr_status meet(fr_ranks *r, const card *cards) {
    static char hosts[FR_RANKS_MAX * FR_WATCH_HOST];
    fr_watch_place place;
    for (int i = 0; i < r->count; i++) memcpy(hosts + (size_t)i * FR_WATCH_HOST, cards[i].host, FR_WATCH_HOST);
    fr_status status = fr_watch_open(r->index, r->count, hosts, r->hosts == 1, r->timeout, &r->watch, &place);
    if (status != FR_OK)
        memset(&place, 0, sizeof place); /* sends an empty address, so that the others find no
                                          * listener and end too */
    MPI_Bcast(&place, sizeof place, MPI_BYTE, 0, r->rows);
    FR_TRY(status);
    return fr_watch_meet(r->watch, &place);
}

/* Divides the cores among ranks that may use the same ones. */
static void take_cores(const fr_ranks *r, const card *cards) {
    size_t before = 0, alike = 0;
    for (int i = 0; i < r->count; i++) {
        bool same = cards[i].cores == cards[r->index].cores;
        alike += same;
        before += same && i < r->index;
    }
    if (alike > 1) fr_ranks_take_cores(before, alike);
}

static fr_status become_known(fr_ranks *r) {
    static card cards[FR_RANKS_MAX];
    card own = {.host = ""};
    gethostname(own.host, sizeof own.host - 1);
    own.machine = fr_ranks_machine_key(own.host);
    own.cores = fr_ranks_cores_key(own.machine);
    MPI_Allgather(&own, sizeof own, MPI_BYTE, cards, sizeof own, MPI_BYTE, r->rows);
    r->hosts = count_machines(cards, r->count);
    take_cores(r, cards);
    return meet(r, cards);
}

static fr_status join(fr_ranks *r) {
    if (MPI_Comm_dup(MPI_COMM_WORLD, &r->rows)) return refuse("no communicator");
    MPI_Comm_set_errhandler(r->rows, MPI_ERRORS_RETURN);
    MPI_Comm_rank(r->rows, &r->index);
    MPI_Comm_size(r->rows, &r->count);
    if (r->count > FR_RANKS_MAX)
        return fr_fail(FR_MACHINE, "%d ranks, but at most %d are supported", r->count, FR_RANKS_MAX);
    for (int i = 0; i <= r->count; i++) r->before[i] = (uint32_t)i;
    r->hosts = 1;
    return r->count == 1 ? FR_OK : become_known(r);
}

/* Lets OpenMPI send one token's rows to a rank of the same machine at once. By default OpenMPI first asks the other
 * rank if there are 4 KiB or more, which takes two to three times as long as copying the rows. The setting has one name
 * before OpenMPI 5.0 and another since. A value that the user has set is kept. */
static void send_rows_at_once(void) {
    setenv("OMPI_MCA_btl_vader_eager_limit", "32768", 0);
    setenv("OMPI_MCA_btl_sm_eager_limit", "32768", 0);
}

fr_status fr_ranks_open(double timeout, fr_ranks **ranks) {
    int provided = 0, started = 0;
    *ranks = NULL;
    MPI_Initialized(&started);
    if (started) return refuse("this process is in a job already");
    send_rows_at_once();
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided)) return refuse("it can't be started");
    if (provided < MPI_THREAD_SERIALIZED) return refuse("its library can't be called by threads");
    fr_ranks *r = calloc(1, sizeof *r);
    if (!r) return fr_fail_memory("ranks", sizeof *r);
    r->timeout = timeout;
    r->place = FR_RANKS_ELSEWHERE;
    fr_status status = join(r);
    if (status == FR_OK) *ranks = r;
    return status;
}

void fr_ranks_patience(fr_ranks *r, double timeout) {
    if (!r || r->count == 1) return;
    r->timeout = timeout;
    fr_watch_patience(r->watch, timeout);
}

void fr_ranks_deal(fr_ranks *r, const uint32_t *parts) {
    for (int i = 0; r && i < r->count; i++) r->before[i + 1] = r->before[i] + parts[i];
}

uint64_t fr_ranks_before(const fr_ranks *r, size_t rank) {
    return r ? r->before[rank] : rank;
}

size_t fr_ranks_index(const fr_ranks *ranks) {
    return ranks ? (size_t)ranks->index : 0;
}

size_t fr_ranks_count(const fr_ranks *ranks) {
    return ranks ? (size_t)ranks->count : 1;
}

size_t fr_ranks_hosts(const fr_ranks *ranks) {
    return ranks ? (size_t)ranks->hosts : 1;
}

fr_status fr_ranks_check(const fr_ranks *ranks) {
    return ranks && ranks->watch ? fr_watch_check(ranks->watch) : FR_OK;
}

void fr_ranks_delay(fr_ranks *r, double seconds) {
    if (r) r->delay = seconds;
}

void fr_ranks_enter_place(fr_ranks *r, size_t place) {
    if (r) r->place = place < FR_RANKS_ELSEWHERE ? place : FR_RANKS_ELSEWHERE;
}

fr_ranks_traffic fr_ranks_told(const fr_ranks *r, size_t place) {
    fr_ranks_traffic told = {0};
    size_t first = place < FR_RANKS_PLACES ? place : 0, last = place < FR_RANKS_PLACES ? place + 1 : FR_RANKS_PLACES;
    for (size_t i = first; r && i < last; i++) {
        told.messages += r->sent[i].messages;
        told.bytes += r->sent[i].bytes;
        told.seconds += r->sent[i].seconds;
    }
    return told;
}

/* ---------------------------------------------------------------------------------------------------------- waiting */

static void fail(fr_ranks *r, fr_status status) {
    fr_watch_fail(r->watch, status);
}

static bool failed(const fr_ranks *r) {
    return fr_watch_failed(r->watch);
}

/* Finds the first rank whose request is not done. Returns -1 if there is none. */
static int silent_rank(fr_ranks *r, int count, const int *peers) {
    for (int i = 0; i < count; i++) {
        int done = 0;
        if (r->requests[i] != MPI_REQUEST_NULL) MPI_Test(&r->requests[i], &done, MPI_STATUS_IGNORE);
        if (r->requests[i] != MPI_REQUEST_NULL && !done) return peers[i];
    }
    return -1;
}

static void look_at_clock(fr_ranks *r, int count, const int *peers, double start) {
    bool late = !r->patient && fr_clock() - start > r->timeout;
    int silent = late ? silent_rank(r, count, peers) : -1;
    if (silent < 0) return;
    fr_watch_miss(r->watch, silent,
                  fr_fail(FR_MACHINE, "%s is silent for %g s", fr_watch_name(r->watch, silent), r->timeout));
}

/* Waits until all requests are done or the job has failed. */
static void await(fr_ranks *r, int count, const int *peers) {
    double start = fr_clock();
    for (unsigned polls = 1;; polls++) {
        int done = 0;
        if (MPI_Testall(count, r->requests, &done, MPI_STATUSES_IGNORE))
            fail(r, fr_fail(FR_MACHINE, "messages between ranks fail"));
        if (done || failed(r)) break;
        if (polls % LOOKS == 0) look_at_clock(r, count, peers, start);
        if (polls > SPINS) sched_yield();
    }
    r->sent[r->place].seconds += fr_clock() - start;
}

/* ---------------------------------------------------------------------------------------------------------- sending */

/* Makes the buffer large enough for a message, or for all messages of a gather. */
static bool reserve(fr_ranks *r, size_t size) {
    if (size > INT32_MAX) {
        fail(r, fr_fail(FR_MACHINE, "rows of %zu bytes are too long for one message", size));
        return false;
    }
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

/* Copies one rank's columns from rows to a message (pack), or from a message to rows. */
static void copy_columns(const fr_ranks_rows *rows, size_t count, int rank, uint8_t *message, bool pack) {
    for (size_t i = 0; i < count; i++) {
        size_t begin = rows[i].bounds[rank], size = rows[i].bounds[rank + 1] - begin;
        for (size_t r = 0; r < rows[i].rows; r++, message += size) {
            uint8_t *row = rows[i].at + r * rows[i].stride + begin;
            memcpy(pack ? message : row, pack ? row : message, size);
        }
    }
}

/* Waits, before the first message of a call is sent, until the artificial delay has passed since `begun`. */
static void be_late(fr_ranks *r, double begun) {
    if (r->delay <= 0) return;
    double start = fr_clock();
    for (unsigned polls = 1; fr_clock() - begun < r->delay; polls++)
        if (polls > SPINS) sched_yield();
    r->sent[r->place].seconds += fr_clock() - start;
}

static int post_send(fr_ranks *r, int requests, int *peers, int peer, const uint8_t *bytes, size_t size) {
    MPI_Isend(bytes, (int)size, MPI_BYTE, peer, TAG_ROWS, r->rows, &r->requests[requests]);
    r->sent[r->place].messages++;
    r->sent[r->place].bytes += size;
    peers[requests] = peer;
    return requests + 1;
}

static int post_receive(fr_ranks *r, int requests, int *peers, int peer, uint8_t *bytes, size_t size) {
    MPI_Irecv(bytes, (int)size, MPI_BYTE, peer, TAG_ROWS, r->rows, &r->requests[requests]);
    peers[requests] = peer;
    return requests + 1;
}

/* Assigns each rank's columns an offset in the buffer. This rank's own columns come first, then those of each other
 * rank. */
static void place_columns(fr_ranks *r, const fr_ranks_rows *rows, size_t count) {
    r->at[0] = columns_of(rows, count, r->index);
    for (int i = 0; i < r->count; i++) r->at[i + 1] = r->at[i] + (i == r->index ? 0 : columns_of(rows, count, i));
}

/* Sends the rank's own columns, which are in the buffer, to all other ranks. */
static void send_columns(fr_ranks *r) {
    for (int i = 1; i < r->count && r->at[0]; i++)
        r->posted = post_send(r, r->posted, r->peers, (r->index + i) % r->count, r->buffer, r->at[0]);
}

void fr_ranks_gather_begin(fr_ranks *r, const fr_ranks_rows *rows, size_t count) {
    if (!r || failed(r)) return;
    place_columns(r, rows, count);
    if (!reserve(r, r->at[r->count])) return;
    copy_columns(rows, count, r->index, r->buffer, true);
    r->posted = 0;
    for (int i = 0; i < r->count; i++)
        if (r->at[i + 1] > r->at[i])
            r->posted = post_receive(r, r->posted, r->peers, i, r->buffer + r->at[i], r->at[i + 1] - r->at[i]);
    r->begun = fr_clock();
    if (r->delay <= 0) send_columns(r);
}

void fr_ranks_gather_end(fr_ranks *r, const fr_ranks_rows *rows, size_t count) {
    if (!r || failed(r)) return;
    be_late(r, r->begun);
    if (r->delay > 0) send_columns(r);
    await(r, r->posted, r->peers);
    if (failed(r)) return;
    for (int i = 0; i < r->count; i++)
        if (r->at[i + 1] > r->at[i]) copy_columns(rows, count, i, r->buffer + r->at[i], false);
}

void fr_ranks_gather(fr_ranks *r, const fr_ranks_rows *rows, size_t count) {
    fr_ranks_gather_begin(r, rows, count);
    fr_ranks_gather_end(r, rows, count);
}

static size_t bytes_of(const fr_ranks_block *blocks, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += blocks[i].rows * blocks[i].size;
    return bytes;
}

static void copy_blocks(const fr_ranks_block *blocks, size_t count, uint8_t *message, bool pack) {
    for (size_t i = 0; i < count; i++) {
        uint8_t *row = blocks[i].at;
        for (size_t r = 0; r < blocks[i].rows; r++, row += blocks[i].stride, message += blocks[i].size)
            memcpy(pack ? message : row, pack ? row : message, blocks[i].size);
    }
}

void fr_ranks_hand_on(fr_ranks *r, size_t from, size_t to, const fr_ranks_block *blocks, size_t count) {
    int peers[2 * FR_RANKS_MAX], requests = 0;
    if (!r || failed(r)) return;
    size_t own = (size_t)r->index, size = bytes_of(blocks, count);
    if (size == 0 || (own != from && own != to && to != FR_RANKS_ALL)) return;
    if (!reserve(r, size)) return;
    if (own == from) {
        copy_blocks(blocks, count, r->buffer, true);
        be_late(r, fr_clock());
        for (size_t i = 0; i < (size_t)r->count; i++)
            if (i != from && (i == to || to == FR_RANKS_ALL))
                requests = post_send(r, requests, peers, (int)i, r->buffer, size);
    } else {
        requests = post_receive(r, requests, peers, (int)from, r->buffer, size);
    }
    r->patient = true;
    await(r, requests, peers);
    r->patient = false;
    if (own != from && !failed(r)) copy_blocks(blocks, count, r->buffer, false);
}

void fr_ranks_gather_equal(fr_ranks *r, void *row, size_t size) {
    size_t bounds[FR_RANKS_MAX + 1];
    if (!r) return;
    for (size_t i = 0; i <= (size_t)r->count; i++) bounds[i] = i * size;
    fr_ranks_gather(r, &(fr_ranks_rows){.at = row, .rows = 1, .bounds = bounds}, 1);
}

void fr_ranks_meet(fr_ranks *r) {
    uint8_t here[FR_RANKS_MAX];
    if (!r) return;
    here[r->index] = 1;
    r->patient = true;
    fr_ranks_gather_equal(r, here, 1);
    r->patient = false;
}

void fr_ranks_broadcast(fr_ranks *r, void *bytes, size_t size) {
    int peers[2 * FR_RANKS_MAX], requests = 0;
    if (!r || failed(r) || size == 0) return;
    if (size > INT32_MAX) {
        fail(r, fr_fail(FR_MACHINE, "%zu bytes are too many for one message", size));
        return;
    }
    if (r->index)
        requests = post_receive(r, requests, peers, 0, bytes, size);
    else
        be_late(r, fr_clock());
    for (int i = 1; i < r->count && r->index == 0; i++) requests = post_send(r, requests, peers, i, bytes, size);
    await(r, requests, peers);
}

/* Waits for a message of rank 0 without a timeout, because rank 0 may have nothing to send for a long time. If rank 0
 * hangs, the watching thread notices it. */
void fr_ranks_listen(fr_ranks *r, void *bytes, size_t size) {
    int done = 0;
    if (!r || failed(r)) return;
    double start = fr_clock();
    post_receive(r, 0, (int[1]){0}, 0, bytes, size);
    while (!done && !failed(r)) {
        if (MPI_Test(r->requests, &done, MPI_STATUS_IGNORE))
            fail(r, fr_fail(FR_MACHINE, "messages between ranks fail"));
        double waited = fr_clock() - start;
        if (waited < LISTEN_BUSY)
            sched_yield();
        else if (!done)
            usleep(waited < LISTEN_WHILE ? 100 : 2000);
    }
}

fr_status fr_ranks_agree(fr_ranks *r, const void *bytes, size_t size, const char *what) {
    uint8_t first[256];
    if (!r) return FR_OK;
    if (size > sizeof first) return fr_fail(FR_USAGE, "%s: %zu bytes are too many to compare", what, size);
    memcpy(first, bytes, size);
    fr_ranks_broadcast(r, first, size);
    if (!failed(r) && memcmp(first, bytes, size) != 0) fail(r, fr_fail(FR_MACHINE, "%s is not rank 0's", what));
    return fr_ranks_check(r);
}

/* ---------------------------------------------------------------------------------------------------------- leaving */

void fr_ranks_end_late(fr_ranks *r, double seconds, fr_ranks_line_fn *end) {
    if (r && r->count > 1) fr_watch_end_late(r->watch, seconds, end);
}

bool fr_ranks_struck(fr_ranks *r, int signal_number, bool pass) {
    return !r || r->count == 1 || fr_watch_struck(r->watch, signal_number, pass);
}

int fr_ranks_leave(fr_ranks *r, int code, const char *line, fr_ranks_line_fn *say) {
    if (!r || r->count == 1) {
        if (r) MPI_Finalize();
        return code;
    }
    double grace = r->index ? OTHERS_GRACE : FIRST_GRACE;
    double patience = r->index ? OTHERS_PATIENCE * r->timeout : r->timeout;
    bool together = fr_watch_leave(r->watch, code, line, code ? grace : patience);
    bool speaks = failed(r) && fr_watch_says(r->watch) && (code == 0 || r->index > 0);
    if (speaks && say && fr_watch_check(r->watch) != FR_OK) say(fr_last_error());
    if (code == 0 && failed(r)) code = 1;
    if (code == 0 && fr_watch_signal(r->watch)) code = BY_SIGNAL + fr_watch_signal(r->watch);
    if (together)
        MPI_Finalize();
    else if (code <= BY_SIGNAL)
        MPI_Abort(MPI_COMM_WORLD, code ? code : 1);
    return code;
}
