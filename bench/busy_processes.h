/* Other programs on the same machine, to measure beside.
 *
 * In: which. Out: processes of their own that run until they are ended, or until this one ends. To be called where
 * this process has no other threads: it forks. */
#ifndef FR_BENCH_BUSY_PROCESSES_H
#define FR_BENCH_BUSY_PROCESSES_H

#include <sys/types.h>

#include "forerun.h"

enum { FR_BENCH_BUSY_PROCESSES_MAX = 256 }; /* processes at most */

typedef struct fr_bench_busy_processes {
    pid_t at[FR_BENCH_BUSY_PROCESSES_MAX];
    size_t count;
} fr_bench_busy_processes;

/* Loops that compute and never sleep. FR_MACHINE where a process can't be made: those that could are in `busy`. */
fr_status fr_bench_busy_processes_add_loops(fr_bench_busy_processes *busy, size_t count);

/* Another program that decodes with the model with these options; returns once it has begun. */
fr_status fr_bench_busy_processes_add_decoder(fr_bench_busy_processes *busy, const char *model,
                                              const fr_options *options);

void fr_bench_busy_processes_end(fr_bench_busy_processes *busy);

/* ------------------------------------------------------------------------------------------------------ what all do */

/* A session that decodes for ever: its context is emptied where it is full. */
typedef struct fr_bench_decoder {
    fr_model *model;
    fr_session *session;
} fr_bench_decoder;

/* Another session of the decoder's model takes the place of its own, if it has one. */
fr_status fr_bench_decoder_begin(fr_bench_decoder *decoder, const fr_options *options);

/* One token more. */
fr_status fr_bench_decoder_step(fr_bench_decoder *decoder);

void fr_bench_decoder_end(fr_bench_decoder *decoder);

#endif
