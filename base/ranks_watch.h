/* Tells the processes of a job when one of them fails, hangs or ends. Its messages are separate from those by which the
 * ranks exchange rows (ranks_mpi.c).
 *
 * In: the ranks' hosts, and the address of rank 0. Out: the job's first failure, which all ranks get. Every rank has a
 * TCP connection to rank 0, and a thread that listens to it:
 *
 *      rank r -> 0   alive, at intervals; leaving, with its exit status and last line; ending by a signal
 *      0 -> rank r   alive; the job's failure; ending by a signal; all are leaving
 *
 * A connection may close before its rank has said that it leaves or ends by a signal. The process of that rank has then
 * gone. If a rank is silent, its process or machine hangs. In either case the job fails, with a line that names the
 * rank and its host. */
#ifndef FR_BASE_RANKS_WATCH_H
#define FR_BASE_RANKS_WATCH_H

#include <netinet/in.h>

#include "forerun.h"

#define FR_WATCH_HOST      64 /* bytes of a host's name, including its NUL */
#define FR_WATCH_ADDRESSES 8  /* the largest number of addresses of rank 0 */
#define FR_WATCH_TOKEN     16 /* bytes of the token by which the ranks of a job know each other's connections */

typedef struct fr_watch fr_watch;

/* Gives the addresses where rank 0 listens, and the token that it expects first. */
typedef struct fr_watch_place {
    char addresses[FR_WATCH_ADDRESSES][INET6_ADDRSTRLEN]; /* in the order in which they are tried; "" after the last
                                                           * one */
    uint16_t port;
    uint8_t token[FR_WATCH_TOKEN];
} fr_watch_place;

/* Prepares the watch. hosts: [count] names of FR_WATCH_HOST bytes each, the same on all ranks. On rank 0 this call
 * starts to listen and fills `place`, which all other ranks must be given. near: all ranks are on one machine, so rank
 * 0 listens on loopback only, where no other machine can reach it. */
fr_status fr_watch_open(int index, int count, const char *hosts, bool near, double timeout, fr_watch **watch,
                        fr_watch_place *place);

/* Connects the ranks; all ranks call it. It starts the watching thread, which runs until the process ends. */
fr_status fr_watch_meet(fr_watch *watch, const fr_watch_place *place);

/* Sets the seconds that a rank may be silent. */
void fr_watch_patience(fr_watch *watch, double timeout);

/* Gives the rank's name in error lines: "rank 1 (its host)". */
const char *fr_watch_name(const fr_watch *watch, int rank);

/* Returns true if the job has failed, at the cost of one load; fr_watch_check gives the failure. */
bool fr_watch_failed(const fr_watch *watch);
fr_status fr_watch_check(const fr_watch *watch);

/* If the job has not failed yet, makes the calling thread's last failure the job's failure. Rank 0's failure is sent
 * to all ranks. */
void fr_watch_fail(fr_watch *watch, fr_status status);

/* Fails the job because `rank` has gone or is silent, if the job has not failed before. Rank 0 sends the failure to all
 * ranks. */
void fr_watch_miss(fr_watch *watch, int rank, fr_status status);

/* Makes the watching thread call end(line) if the process hasn't begun to leave within `seconds` after the job's
 * failure. line: the line to print, NULL if another rank prints it (fr_watch_says). */
typedef void fr_watch_end_fn(const char *line);
void fr_watch_end_late(fr_watch *watch, double seconds, fr_watch_end_fn *end);

/* Returns true if this rank has to print the job's failure. Rank 0 prints it. If rank 0 is the rank that has gone, rank
 * 1 prints it. */
bool fr_watch_says(const fr_watch *watch);

/* Handles, in a signal handler, a signal that ends this process. After a rank has failed, the program that started the
 * job sends a signal to the ranks that are left. So this function waits a moment for a failure to become known. Returns
 * true if the process should end by the signal; if `pass` is true, it also tells the other ranks of the signal. Returns
 * false if the process should end by the job's failure. */
bool fr_watch_struck(fr_watch *watch, int signal_number, bool pass);

/* Tells the other ranks that the process is about to end with this exit status and last line. Waits at most `seconds`
 * until the other ranks leave too, and returns true if all ranks are leaving. */
bool fr_watch_leave(fr_watch *watch, int code, const char *line, double seconds);

/* Gives the signal that ends another rank; 0 means that no rank is ended by a signal. */
int fr_watch_signal(const fr_watch *watch);

#endif
