/* Processes that run one model together: the ranks of a job, each a process with all of the program's state.
 *
 * In: a job that the system started (ranks_mpi.c: MPI's; ranks_none.c: builds without). Out: rows whose columns the
 * ranks made are whole on all of them; bytes of rank 0 are everybody's. All ranks make the same calls in the same
 * order, each from one thread at a time, which waits in it for the others.
 *
 * The first failure (a rank that has gone or is silent for too long) sticks: every later call returns at once, rows and
 * bytes are then whatever they are, and fr_ranks_check says what it was. So a team in the middle of a forward needs no
 * way out of its own. NULL is a process alone: it has rank 0 of 1, and nothing to wait for. */
#ifndef FR_BASE_RANKS_H
#define FR_BASE_RANKS_H

#include "forerun.h"

#define FR_MAX_RANKS 256

typedef struct fr_ranks fr_ranks;

/* Columns of rows that ranks made: rank r those of bytes [bounds[r], bounds[r + 1]) of each row. */
typedef struct fr_ranks_rows {
    uint8_t *at;
    size_t stride, rows; /* bytes from one row to the next */
    const size_t *bounds; /* [ranks + 1] */
} fr_ranks_rows;

/* Rows of one rank's, `size` bytes each. */
typedef struct fr_ranks_block {
    uint8_t *at;
    size_t stride, rows, size; /* stride: bytes from one row to the next */
} fr_ranks_block;

/* What this process has told the others so far, and how long it waited for them. */
typedef struct fr_ranks_traffic {
    uint64_t messages, bytes; /* sent by this rank */
    double seconds;           /* in calls that wait */
} fr_ranks_traffic;

/* Places of a forward, by which it is counted: a layer's number, or FR_RANKS_ELSEWHERE. Layers beyond are elsewhere. */
#define FR_RANKS_PLACES 257
#define FR_RANKS_ELSEWHERE (FR_RANKS_PLACES - 1)

/* Joins the job that this process was started in. timeout: seconds that a rank may be silent. FR_UNBUILT in builds
 * without; in a job of one process *ranks is NULL. */
fr_status fr_ranks_open(double timeout, fr_ranks **ranks);

void fr_ranks_patience(fr_ranks *ranks, double timeout);

/* How much each rank has of what is split, beside the others: [count] numbers, 1 to FR_MAX_RANK_PARTS; without it all
 * have as much. The same on all of them, before anything is split. */
#define FR_MAX_RANK_PARTS 1000
void fr_ranks_deal(fr_ranks *ranks, const uint32_t *parts);

/* Whatever is sent leaves so many seconds later than it would, as on a slower network: for measurements. */
void fr_ranks_delay(fr_ranks *ranks, double seconds);

/* What the ranks before this one have together, of so much as all have: rank may be their number. */
uint64_t fr_ranks_before(const fr_ranks *ranks, size_t rank);

size_t fr_ranks_index(const fr_ranks *ranks);
size_t fr_ranks_count(const fr_ranks *ranks);

/* On how many machines they are. */
size_t fr_ranks_hosts(const fr_ranks *ranks);

/* Makes the columns of `count` arrays of rows whole on all ranks, in one message to each other one. In two steps there
 * is time for other work between them: what is sent is on its way; the rows are not touched until they are whole. */
void fr_ranks_gather(fr_ranks *ranks, const fr_ranks_rows *rows, size_t count);
void fr_ranks_gather_begin(fr_ranks *ranks, const fr_ranks_rows *rows, size_t count);
void fr_ranks_gather_end(fr_ranks *ranks, const fr_ranks_rows *rows, size_t count);

/* fr_ranks_gather of one row, of which each rank has made `size` bytes. */
void fr_ranks_gather_equal(fr_ranks *ranks, void *row, size_t size);

/* Blocks of rank `from` become those of rank `to`, or of all, FR_RANKS_ALL, in one message; other ranks do nothing, and
 * nobody does where there are no bytes. However long the work before takes `from`: as fr_ranks_meet. */
#define FR_RANKS_ALL SIZE_MAX
void fr_ranks_hand_on(fr_ranks *ranks, size_t from, size_t to, const fr_ranks_block *blocks, size_t count);

/* Waits for all ranks behind work that takes one of them as long as it takes, as reading a model does: only one that is
 * not heard of fails, not one that hasn't come for the time that a message may take. */
void fr_ranks_meet(fr_ranks *ranks);

/* Rank 0's bytes become everybody's. */
void fr_ranks_broadcast(fr_ranks *ranks, void *bytes, size_t size);

/* On ranks but the first, the same of bytes that rank 0 may send at any time: who waits for them leaves the core to
 * others, and no time is too long. */
void fr_ranks_listen(fr_ranks *ranks, void *bytes, size_t size);

/* Fails where these bytes are not rank 0's: what is about to be done is not the same everywhere. what: names it, as in
 * "what is run next". */
fr_status fr_ranks_agree(fr_ranks *ranks, const void *bytes, size_t size, const char *what);

/* The job's first failure, or FR_OK. */
fr_status fr_ranks_check(const fr_ranks *ranks);

/* Where the forward is from here on; of the thread that gathers. */
void fr_ranks_enter_place(fr_ranks *ranks, size_t place);

/* Of a place, or of all of them: FR_RANKS_PLACES. */
fr_ranks_traffic fr_ranks_told(const fr_ranks *ranks, size_t place);

/* Calls end(line), from a thread of its own, where the process hasn't begun to leave the job so many seconds after its
 * first failure: it can't be reached, and shall end at once. line: what is to be said, NULL where another rank does. */
typedef void fr_ranks_line_fn(const char *line);
void fr_ranks_end_late(fr_ranks *ranks, double seconds, fr_ranks_line_fn *end);

/* Of handlers of signals that end the process. True: it ends by this one, of which the others hear, and end by it too,
 * if pass says so; false: by a failure of the job, which is why it was sent: who starts jobs ends the others then. */
bool fr_ranks_struck(fr_ranks *ranks, int signal_number, bool pass);

/* Leaves the job at the end of the process. code: its exit status; line: what its last words are, "" for none. Ranks
 * that end alike leave together; where one ends and others don't, its line is handed to rank 0, whose calls then fail
 * with it, and the job is ended. say: told what this rank has to say and has not failed with, on rank 0 how another
 * has failed, on rank 1 how rank 0 has. Gives the exit status, not 0 where any rank's isn't; it may not return. */
int fr_ranks_leave(fr_ranks *ranks, int code, const char *line, fr_ranks_line_fn *say);

#endif
