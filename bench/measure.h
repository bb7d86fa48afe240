/* Shared parts of the benchmarks of whole models: they time forwards without the session's own rounds, and compute the
 * cost of a forward and the least time that it can take.
 *
 * In: opened models and sessions. Out: seconds, bytes, multiply-adds. */
#ifndef FR_BENCH_MEASURE_H
#define FR_BENCH_MEASURE_H

#include "bench/memory.h"
#include "src/engine/session/batch.h"

#define FR_BENCH_PAIRS 15 /* a figure is the median of this many pairs */

/* Ends the benchmark with the library's error line if the status is a failure. */
void fr_bench_require(fr_status status);

/* Makes a prompt that is different for each number. None of its ids stands for a picture. */
void fr_bench_prompt(const fr_model *model, int32_t *ids, size_t count, size_t number);

/* Time forwards of the timeline's ids at any position of the context, in seconds. The first runs `rows` ids with all
 * their logits; the second runs `count` ids as a prompt, in chunks, with the last id's logits; the third runs `count`
 * ids one after the other. The contents of the cache at earlier positions do not matter. */
double fr_bench_forward(fr_session *session, size_t rows, size_t position);
double fr_bench_prefill(fr_session *session, size_t count, size_t position);
double fr_bench_decode(fr_session *session, size_t count, size_t position);

/* Fills the cache with `length` positions. Only the first 512 are run; the others get copies of their keys and values,
 * which take as long to read. */
void fr_bench_fill(fr_session *session, size_t length);

/* The first function runs a prompt of 128 ids and a token, after which a session can draft. The second gives the
 * seconds of proposing `count` drafts; NaN if there were fewer. A draft step is a tenth of the difference between 15
 * drafts and 5, so that it excludes the cost of starting. */
fr_status fr_bench_begin_drafts(fr_session *session);
fr_status fr_bench_time_drafts(fr_session *session, size_t drafts, double *seconds);

/* The first returns the bytes of weights that a step of a chain reads, including the target's head if the drafter uses
 * it. The second returns those of a chain's first step, which starts with the target's row. */
double fr_bench_draft_bytes(const fr_drafter *drafter);
double fr_bench_first_draft_bytes(const fr_drafter *drafter);

/* Gives the median of T(rows) / T(1) over pairs of forwards, and in *one T(1) itself. */
double fr_bench_verify_ratio(fr_session *session, size_t rows, size_t position, double *one);

/* Totals of a forward: the bytes of the weights that it reads, in the file's types, and its multiply-adds. Every bound
 * tensor counts, except rows that are looked up; of a mixture, only the experts that the rows chose. Recurrent layers'
 * states are read and written; latents are read once for all heads and rows. */
typedef struct fr_bench_cost {
    double bytes, macs;
    /* multiply-adds of attention over latents; those of other attention, which reading limits, are not counted */
    double attention;
    double experts; /* experts that a layer reads, as the mean over the layers; NaN: the model is not a mixture */
} fr_bench_cost;

/* Returns the totals for `rows` ids at a position: runs a forward and counts the experts that it chose, which depend
 * on the ids of the session's timeline there. */
fr_bench_cost fr_bench_cost_of(fr_session *session, size_t rows, size_t position);

/* Gives the type of most of the bytes that a step reads. */
fr_dtype fr_bench_main_type(const fr_model *model);

/* Decode steps compared with the bandwidth. The speed of shared memory changes within seconds, so it is measured
 * between the steps: the share is the median of pairs, each of which is a reading of 1 GB and a step right after it.
 * If memory is more than a seventh faster or slower after a pair than before it, the pair is measured again (README.md
 * has the reason). */
typedef struct fr_bench_stream {
    double bandwidth, lowest, highest; /* bytes a second */
    double step;                       /* seconds */
    double share;
    size_t again; /* pairs that were measured again */
} fr_bench_stream;

fr_bench_stream fr_bench_stream_of(fr_session *session, size_t position);

/* A machine's limits per second: bytes read, multiply-adds of this model's products, and multiply-adds of
 * attention. */
typedef struct fr_bench_limits {
    double bandwidth, peak, attention;
} fr_bench_limits;

/* Gives L(K), the least value that T(K) / T(1) can have because reading and multiplying take time. one, rows: the
 * costs of forwards of one row and of K rows. */
double fr_bench_row_limit(const fr_bench_cost *one, const fr_bench_cost *rows, const fr_bench_limits *limits);

/* Gives the limits at a measured bandwidth. The rates of multiplying are measured now, with the session's threads.
 * Peaks are 0 if there is no loop for the instruction set; attention's peak is infinite unless it works on latents. */
fr_bench_limits fr_bench_limits_now(fr_session *session, double bandwidth);

/* Returns the part of the machine's dot peak that the products of a model can reach. */
double fr_bench_product_peak(const fr_model *model, double dot_peak);

/* T(rows) / T(1) and L(rows): the median of pairs, and the median of each pair's excess over the limit that was
 * measured right before it, with the bandwidth of `memory`. A machine whose memory or clock changes from second to
 * second has no single limit; pairs during which it changed are measured again, as in fr_bench_stream_of. */
typedef struct fr_bench_verify {
    double ratio, limit, over;
    double experts; /* experts that K rows read, as in fr_bench_cost */
    size_t again;
} fr_bench_verify;

fr_bench_verify fr_bench_verify_limited(fr_session *session, const fr_bench_memory *memory, size_t rows,
                                        size_t position);

#endif
