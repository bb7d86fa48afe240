/* Runs one function at a time in a thread while its owner goes on.
 *
 * In: a function. Out: its status and, if it failed, its error line, as if the owner had called the function. Between
 * two functions the thread sleeps. Only one thread at a time may act as owner. */
#ifndef FR_BASE_WORKER_H
#define FR_BASE_WORKER_H

#include "forerun.h"

typedef struct fr_worker fr_worker;
typedef fr_status fr_worker_fn(void *context);

fr_status fr_worker_open(fr_worker **worker);

/* Waits for a running function, drops its failure, and ends the thread. NULL does nothing. */
void fr_worker_close(fr_worker *worker);

/* Starts fn(context) in the thread. No other function may be running. Allocates nothing. */
void fr_worker_start(fr_worker *worker, fr_worker_fn *fn, void *context);

/* Waits for the function and returns its status, once. If the function failed, its error line becomes the caller's
 * fr_last_error(). Everything that the function wrote is then visible to the caller. */
fr_status fr_worker_join(fr_worker *worker);

/* Waits until no function is running; fr_worker_join can return its status later. */
void fr_worker_wait(fr_worker *worker);

/* Waits for the function and drops its failure, so that the caller's fr_last_error() stays as it is. */
void fr_worker_drop(fr_worker *worker);

#endif
