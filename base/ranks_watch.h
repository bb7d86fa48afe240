/* What the processes of a job know of each other's end, beside the messages of their work (ranks_mpi.c).
 *
 * In: who they are, and where rank 0 is found. Out: the job's first failure, told to all of them. Every rank has a
 * connection to rank 0, of TCP, and a thread that listens to it:
 *
 *      rank r -> 0   alive, every now and then; leaving, with its exit status and last line; struck by a signal
 *      0 -> rank r   alive; the job's failure; struck by a signal; all are leaving
 *
 * A connection that ends, and nobody has said that he leaves or was struck, is a process that has gone; one that is
 * silent is a process or a machine that hangs. Both fail the job, by a line that names the rank and its host. */
#ifndef FR_BASE_RANKS_WATCH_H
#define FR_BASE_RANKS_WATCH_H

#include <netinet/in.h>

#include "forerun.h"

#define FR_WATCH_HOST      64 /* bytes of a host's name, its NUL among them */
#define FR_WATCH_ADDRESSES 8
#define FR_WATCH_TOKEN     16

typedef struct fr_watch fr_watch;

/* Where rank 0 listens, and what it wants to hear first. */
typedef struct fr_watch_place {
    char addresses[FR_WATCH_ADDRESSES][INET6_ADDRSTRLEN]; /* in the order to be tried; "" behind the last */
    uint16_t port;
    uint8_t token[FR_WATCH_TOKEN];
} fr_watch_place;

/* hosts: [count] names of FR_WATCH_HOST bytes each, the same on all ranks. Rank 0 listens from here on, and gets the
 * place for the others to know; near: they are of one machine, and nobody else can reach it. */
fr_status fr_watch_open(int index, int count, const char *hosts, bool near, double timeout, fr_watch **watch,
                        fr_watch_place *place);

/* Connects the ranks: all of them call it. The thread runs from here on, to the end of the process. */
fr_status fr_watch_meet(fr_watch *watch, const fr_watch_place *place);

/* Seconds that a rank may be silent. */
void fr_watch_patience(fr_watch *watch, double timeout);

/* "rank 1 (its host)". */
const char *fr_watch_name(const fr_watch *watch, int rank);

/* Whether the job has failed, which costs a look; and how. */
bool fr_watch_failed(const fr_watch *watch);
fr_status fr_watch_check(const fr_watch *watch);

/* The calling thread's last failure is the job's, if it is the first; rank 0's is everybody's. */
void fr_watch_fail(fr_watch *watch, fr_status status);

/* The same where the failure is that this rank has gone, or is silent. */
void fr_watch_miss(fr_watch *watch, int rank, fr_status status);

/* Calls end(line) from the watching thread where a process that should end by a failure hasn't begun to leave so many
 * seconds after it. line: what is to be said, NULL where another rank does: see fr_watch_says. */
typedef void fr_watch_end_fn(const char *line);
void fr_watch_end_late(fr_watch *watch, double seconds, fr_watch_end_fn *end);

/* Whether the job's failure is this rank's to tell: rank 0's, and rank 1's where rank 0 is the one that has gone. */
bool fr_watch_says(const fr_watch *watch);

/* A signal has come that ends this process, unless it only follows the failure of another (the job's starter ends the
 * rest then). True: it ends by the signal, and the others hear of that; false: by the failure, which has come, or comes
 * within a moment. pass false: the others don't hear of it, they are told to end otherwise. For signal handlers. */
bool fr_watch_struck(fr_watch *watch, int signal_number, bool pass);

/* The process is about to end with that exit status and last line. Waits for the others, for so many seconds at most.
 * Whether all are leaving. */
bool fr_watch_leave(fr_watch *watch, int code, const char *line, double seconds);

/* The signal that another rank ends by, 0 for none. */
int fr_watch_signal(const fr_watch *watch);

#endif
