/* A thread that does one thing at a time for its owner, who goes on meanwhile.
 *
 * In: a function. Out: its status, and its line where it failed, as if the owner had called it. Between two of
 * them the thread sleeps. One owner thread at a time. */
#ifndef FR_BASE_WORKER_H
#define FR_BASE_WORKER_H

#include "forerun.h"

typedef struct fr_worker fr_worker;
typedef fr_status fr_worker_fn(void *context);

/* Starts the thread. */
fr_status fr_worker_open(fr_worker **worker);

/* Waits for what is under way, whose failure nobody hears of. NULL is nothing. */
void fr_worker_close(fr_worker *worker);

/* Starts fn(context); none may be under way. Allocates nothing. */
void fr_worker_start(fr_worker *worker, fr_worker_fn *fn, void *context);

/* Waits for it and gives its status, once; the caller's fr_last_error() is then its line. What it wrote is seen. */
fr_status fr_worker_join(fr_worker *worker);

/* Waits until none is under way; how it went is told later. */
void fr_worker_wait(fr_worker *worker);

/* Waits for it where nobody asks how it went: the caller's fr_last_error() stays. */
void fr_worker_drop(fr_worker *worker);

#endif
