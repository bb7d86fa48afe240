/* Connects the processes that run one model together: the ranks of a job. Each rank has the whole state of the program.
 *
 * In: a job that the system started (ranks_mpi.c: MPI's; ranks_none.c: builds without MPI). Out: rows whose columns
 * were computed by different ranks become complete on all ranks; bytes of rank 0 reach all ranks. All ranks make the
 * same calls in the same order, each from one thread at a time; a call waits for the other ranks.
 *
 * A job fails when a rank's process has ended or is silent for too long. The first failure is permanent: every later
 * call returns at once and leaves rows and bytes undefined, and fr_ranks_check gives the failure. So a team in the
 * middle of a forward pass need not check for a failure. If `ranks` is NULL, the process is alone: it is rank 0 of 1,
 * and never waits. */
#ifndef FR_BASE_RANKS_H
#define FR_BASE_RANKS_H

#include "forerun.h"

#define FR_RANKS_MAX 256

typedef struct fr_ranks fr_ranks;

/* Describes rows whose columns were computed by the ranks. Of each row, rank r has computed bytes [bounds[r], bounds[r
 * + 1]). */
typedef struct fr_ranks_rows {
    uint8_t *at;
    size_t stride, rows;  /* stride: bytes from one row to the next */
    const size_t *bounds; /* [ranks + 1] the offset in a row, in bytes, at which each rank's columns begin */
} fr_ranks_rows;

/* Describes rows of one rank, `size` bytes each. */
typedef struct fr_ranks_block {
    uint8_t *at;
    size_t stride, rows, size; /* stride: bytes from one row to the next */
} fr_ranks_block;

/* Counts what this rank has sent so far, and how long it waited for other ranks. */
typedef struct fr_ranks_traffic {
    uint64_t messages, bytes; /* sent by this rank */
    double seconds;           /* time spent in calls that wait for other ranks */
} fr_ranks_traffic;

/* Numbers the parts of a forward pass. Traffic is counted separately for each part. Each layer has its own number.
 * FR_RANKS_ELSEWHERE counts the traffic outside of layers, and the traffic of layers beyond the last number. */
#define FR_RANKS_PLACES    257
#define FR_RANKS_ELSEWHERE (FR_RANKS_PLACES - 1)

/* Joins the job in which this process was started. timeout: seconds for which a rank may be silent. Returns FR_UNBUILT
 * in builds without ranks. */
fr_status fr_ranks_open(double timeout, fr_ranks **ranks);

void fr_ranks_patience(fr_ranks *ranks, double timeout);

/* Sets each rank's share of the work that is split. parts: [count] numbers from 1 to FR_RANK_PARTS_MAX; the work is
 * divided in proportion to them. Without this call all shares are equal. Call it with the same numbers on all ranks,
 * before any work is split. */
#define FR_RANK_PARTS_MAX 1000
void fr_ranks_deal(fr_ranks *ranks, const uint32_t *parts);

/* Delays each message by this many seconds, as a slower network would. It is for measurements. */
void fr_ranks_delay(fr_ranks *ranks, double seconds);

/* Gives the sum of the shares (fr_ranks_deal) of all ranks below `rank`. If `rank` is the number of ranks, the result
 * is the sum of all shares. */
uint64_t fr_ranks_before(const fr_ranks *ranks, size_t rank);

size_t fr_ranks_index(const fr_ranks *ranks);
size_t fr_ranks_count(const fr_ranks *ranks);

/* Gives the number of machines that the ranks run on. */
size_t fr_ranks_hosts(const fr_ranks *ranks);

/* Each rank has computed some columns of `count` arrays of rows. fr_ranks_gather makes all columns complete on all
 * ranks, with one message to each other rank. Between _begin and _end, while messages are on their way, the caller can
 * do other work, but must not touch the rows. */
void fr_ranks_gather(fr_ranks *ranks, const fr_ranks_rows *rows, size_t count);
void fr_ranks_gather_begin(fr_ranks *ranks, const fr_ranks_rows *rows, size_t count);
void fr_ranks_gather_end(fr_ranks *ranks, const fr_ranks_rows *rows, size_t count);

/* Gathers one row. Each rank has computed `size` bytes of it. */
void fr_ranks_gather_equal(fr_ranks *ranks, void *row, size_t size);

/* Copies blocks of rank `from` to the blocks of rank `to`, in one message. FR_RANKS_ALL as `to` means all other ranks.
 * A rank that neither sends nor receives does nothing, and nothing is sent if there are no bytes. A receiver waits
 * without a timeout, as in fr_ranks_meet, because `from` may work for long before it sends. */
#define FR_RANKS_ALL SIZE_MAX
void fr_ranks_hand_on(fr_ranks *ranks, size_t from, size_t to, const fr_ranks_block *blocks, size_t count);

/* Waits for all ranks after work that takes some ranks longer than others, such as reading a model. A rank that is late
 * does not fail the job here. A rank without any sign of life does. */
void fr_ranks_meet(fr_ranks *ranks);

/* Copies rank 0's bytes to all ranks. */
void fr_ranks_broadcast(fr_ranks *ranks, void *bytes, size_t size);

/* Receives, on ranks other than 0, bytes that rank 0 may broadcast at any time. Meanwhile the waiting rank lets other
 * threads use its core. It never times out. */
void fr_ranks_listen(fr_ranks *ranks, void *bytes, size_t size);

/* Fails if `bytes` differ from rank 0's bytes, because the ranks would then do different things. what: names the bytes
 * in the error line, as in "what is run next". */
fr_status fr_ranks_agree(fr_ranks *ranks, const void *bytes, size_t size, const char *what);

/* Returns the job's first failure, or FR_OK. */
fr_status fr_ranks_check(const fr_ranks *ranks);

/* Sets the part of the forward pass for which traffic is counted from now on. The thread that gathers calls this
 * function. */
void fr_ranks_enter_place(fr_ranks *ranks, size_t place);

/* Gives the traffic of one part of the forward pass, or of all parts (FR_RANKS_PLACES). */
fr_ranks_traffic fr_ranks_told(const fr_ranks *ranks, size_t place);

/* Makes a separate thread call `end` if this process hangs after a failure. The process hangs if it has not begun to
 * leave the job `seconds` after the job's first failure. `end` must end the process at once. line: the line to print,
 * or NULL if another rank prints it. */
typedef void fr_ranks_line_fn(const char *line);
void fr_ranks_end_late(fr_ranks *ranks, double seconds, fr_ranks_line_fn *end);

/* Handles a signal that ends the process; handlers of such signals call it. Returns true if the process should end by
 * this signal. If `pass` is true, the other ranks are told of the signal, and end by it too. Returns false if the job
 * has failed, because the signal then only comes from the program that started the ranks: after a failure that program
 * sends a signal to the remaining ranks. */
bool fr_ranks_struck(fr_ranks *ranks, int signal_number, bool pass);

/* Leaves the job at the end of the process. code: the process's exit status; line: its last error line, "" for none. If
 * all ranks end with success, or all with the same failure, they leave together. If only some end, the error line of
 * one of them goes to rank 0. The calls of rank 0 then fail with that line, and the job is ended. say: prints another
 * rank's failure line. It is called if this rank must print that line and has not printed it as its own failure. Rank 0
 * prints the lines of the other ranks, and rank 1 prints that of rank 0. The call returns the exit status, which is 0
 * only if every rank's status is 0. If the job is ended, the call may not return. */
int fr_ranks_leave(fr_ranks *ranks, int code, const char *line, fr_ranks_line_fn *say);

#endif
