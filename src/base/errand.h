/* A thread that does one thing at a time for its owner, who goes on meanwhile.
 *
 * In: a function. Out: its status, and its line where it failed, as if the owner had called it. Between errands the
 * thread sleeps. One owner thread at a time. */
#ifndef FR_SRC_ERRAND_H
#define FR_SRC_ERRAND_H

#include "forerun.h"

typedef struct fr_errand fr_errand;
typedef fr_status fr_errand_fn(void *context);

/* Starts the thread. */
fr_status fr_errand_open(fr_errand **errand);

/* Waits for what is under way, whose failure nobody hears of. NULL is nothing. */
void fr_errand_close(fr_errand *errand);

/* Starts fn(context); none may be under way. Allocates nothing. */
void fr_errand_send(fr_errand *errand, fr_errand_fn *fn, void *context);

/* Waits for it and gives its status, once; the caller's fr_last_error() is then its line. What it wrote is seen. */
fr_status fr_errand_join(fr_errand *errand);

/* Waits for it where nobody asks how it went: the caller's fr_last_error() stays. */
void fr_errand_drop(fr_errand *errand);

#endif
