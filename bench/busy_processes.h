/* Runs other programs on the same machine, so that decoding can be measured while they run.
 *
 * In: the kinds of programs. Out: processes that run until they are ended, or until this process ends. These functions
 * fork, so call them only while this process has a single thread. */
#ifndef FR_BENCH_BUSY_PROCESSES_H
#define FR_BENCH_BUSY_PROCESSES_H

#include <sys/types.h>

#include "forerun.h"

enum { FR_BENCH_BUSY_PROCESSES_MAX = 256 }; /* largest number of processes */

typedef struct fr_bench_busy_processes {
    pid_t at[FR_BENCH_BUSY_PROCESSES_MAX];
    size_t count;
} fr_bench_busy_processes;

/* Adds processes that compute in a loop and never sleep. If a process can't be made, the call fails with FR_MACHINE,
 * and the processes made before it stay in `busy`. */
fr_status fr_bench_busy_processes_add_loops(fr_bench_busy_processes *busy, size_t count);

/* Adds a process that decodes with the model file `model` and the given options. The function returns when the process
 * has begun to decode. */
fr_status fr_bench_busy_processes_add_decoder(fr_bench_busy_processes *busy, const char *model,
                                              const fr_options *options);

void fr_bench_busy_processes_end(fr_bench_busy_processes *busy);

/* --------------------------------------------------------------------------------------------------------- decoding */

/* Holds a session that decodes without end. Its context is emptied whenever it is full. */
typedef struct fr_bench_decoder {
    fr_model *model;
    fr_session *session;
} fr_bench_decoder;

/* Opens a new session of the decoder's model, which replaces the current session. */
fr_status fr_bench_decoder_begin(fr_bench_decoder *decoder, const fr_options *options);

/* Decodes one more token. */
fr_status fr_bench_decoder_step(fr_bench_decoder *decoder);

void fr_bench_decoder_end(fr_bench_decoder *decoder);

#endif
