/* Runs other programs on the same machine, so that decoding can be measured beside them.
 *
 * In: the kinds of programs. Out: processes that run until they are ended, or until this process ends. Call these
 * functions while this process has no other threads, because they fork. */
#ifndef FR_BENCH_BUSY_PROCESSES_H
#define FR_BENCH_BUSY_PROCESSES_H

#include <sys/types.h>

#include "forerun.h"

enum { FR_BENCH_BUSY_PROCESSES_MAX = 256 }; /* the most processes */

typedef struct fr_bench_busy_processes {
    pid_t at[FR_BENCH_BUSY_PROCESSES_MAX];
    size_t count;
} fr_bench_busy_processes;

/* Adds loops that compute and never sleep. If a process can't be made it gives FR_MACHINE; the processes made before
 * stay in `busy`. */
fr_status fr_bench_busy_processes_add_loops(fr_bench_busy_processes *busy, size_t count);

/* Adds a program that decodes with the model and these options; returns once it has begun. */
fr_status fr_bench_busy_processes_add_decoder(fr_bench_busy_processes *busy, const char *model,
                                              const fr_options *options);

void fr_bench_busy_processes_end(fr_bench_busy_processes *busy);

/* ------------------------------------------------------------------------------------------------------ what all do */

/* A session that decodes without end: its context is emptied when it is full. */
typedef struct fr_bench_decoder {
    fr_model *model;
    fr_session *session;
} fr_bench_decoder;

/* Opens a new session of the decoder's model, which replaces its present one. */
fr_status fr_bench_decoder_begin(fr_bench_decoder *decoder, const fr_options *options);

/* Decodes one more token. */
fr_status fr_bench_decoder_step(fr_bench_decoder *decoder);

void fr_bench_decoder_end(fr_bench_decoder *decoder);

#endif
