/* What the benchmarks of whole models share: forwards timed from outside the session's cycle, and what they cost.
 *
 * In: opened models and sessions. Out: seconds, bytes, multiply-adds. */
#ifndef FR_BENCH_MEASURE_H
#define FR_BENCH_MEASURE_H

#include "src/session.h"

#define FR_BENCH_PAIRS 15 /* a figure is the middle of so many */

/* Ends the benchmark with the library's line. */
void fr_bench_require(fr_status status);

/* A prompt that differs from number to number. */
void fr_bench_prompt(const fr_model *model, int32_t *ids, size_t count, size_t number);

/* Seconds of a forward of `rows` ids of the timeline with all their logits, at any position of the context. */
double fr_bench_forward(fr_session *session, size_t rows, size_t position);

/* The middle of T(rows) / T(1) over pairs in turn, and T(1) itself. */
double fr_bench_verify_ratio(fr_session *session, size_t rows, size_t position, double *one);

/* What a decode step of one row reads of the weights, as the file has them, and multiplies: every bound tensor but
 * looked-up rows. */
double fr_bench_streamed_bytes(const fr_model *model);
double fr_bench_streamed_macs(const fr_model *model);

#endif
