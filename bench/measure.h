/* Times single forwards of whole models, without the rounds of a session. Also computes the cost of a forward, and the
 * least time that a forward can take.
 *
 * In: opened models and sessions. Out: seconds, bytes, multiply-adds. */
#ifndef FR_BENCH_MEASURE_H
#define FR_BENCH_MEASURE_H

#include "bench/memory.h"
#include "src/engine/session/batch.h"

#define FR_BENCH_PAIRS 15 /* A figure is the median of this many pairs of timings. */

/* Ends the benchmark with the library's error line if the status is a failure. */
void fr_bench_require(fr_status status);

/* Makes a prompt of arbitrary ids, a different one for each `number`. The prompt contains no image tokens. */
void fr_bench_prompt(const fr_model *model, int32_t *ids, size_t count, size_t number);

/* Each times forwards of the timeline's ids, and gives the seconds. The first id may be at any position of the context,
 * because the keys and values at earlier positions need not be those of a real text. fr_bench_forward runs `rows` ids
 * in one forward with logits for all of them. fr_bench_prefill runs `count` ids as a prompt, in chunks, with logits for
 * the last id only. fr_bench_decode runs `count` ids one after the other. */
double fr_bench_forward(fr_session *session, size_t rows, size_t position);
double fr_bench_prefill(fr_session *session, size_t count, size_t position);
double fr_bench_decode(fr_session *session, size_t count, size_t position);

/* Fills the cache with `length` positions. Only the first 512 positions are run. All other positions get copies of
 * their keys and values. Reading copies takes as long as reading real ones. */
void fr_bench_fill(fr_session *session, size_t length);

/* fr_bench_begin_drafts runs a prompt of 128 ids and one token, after which the session can draft. fr_bench_time_drafts
 * gives the seconds that proposing `drafts` drafts takes, or NaN if fewer were proposed. Starting a chain has a cost of
 * its own. To find the time of one draft step without this cost, subtract the time of 5 drafts from that of 15, and
 * divide by ten. */
fr_status fr_bench_begin_drafts(fr_session *session);
fr_status fr_bench_time_drafts(fr_session *session, size_t drafts, double *seconds);

/* Each returns the bytes of weights that a draft step reads, including the target's head if the drafter uses it.
 * fr_bench_first_draft_bytes is for the first step of a chain, which also reads the matrix for the target's hidden
 * rows. fr_bench_draft_bytes is for any later step. */
double fr_bench_draft_bytes(const fr_drafter *drafter);
double fr_bench_first_draft_bytes(const fr_drafter *drafter);

/* Measures pairs of forwards, one with `rows` rows and one with a single row. Gives the median of T(rows) / T(1). *one
 * gets the median of T(1). */
double fr_bench_verify_ratio(fr_session *session, size_t rows, size_t position, double *one);

/* Holds the work of a forward: the bytes that it reads, in the file's types, and its multiply-adds. All weights count,
 * except tables of which single rows are looked up. In a mixture only the experts that the rows chose count. The states
 * of recurrent layers count twice, because they are read and written. Latents (MLA's cached rows) count once, because
 * they are read once for all heads and rows. */
typedef struct fr_bench_cost {
    double bytes, macs;
    /* Number of multiply-adds of attention over latents. Other attention is limited by reading the cache, so its
     * multiply-adds are not counted. */
    double attention;
    double experts; /* mean number of experts that a layer reads; NaN if the model is not a mixture */
} fr_bench_cost;

/* Runs `rows` ids of the session's timeline at a position and returns the work of this forward. In a mixture the work
 * depends on the ids, because the ids choose the experts. */
fr_bench_cost fr_bench_cost_of(fr_session *session, size_t rows, size_t position);

/* Gives the main type of the weights, which is the type of most of the bytes that a step reads. */
fr_dtype fr_bench_main_type(const fr_model *model);

/* Describes the speed of decode steps, compared with the memory's bandwidth. On a shared machine the memory's speed
 * changes within seconds, so it is measured between the steps. Each pair is a reading of 1 GB and the step right after
 * it. `share` is the median over the pairs of the bandwidth that the step reaches, divided by the bandwidth of the
 * reading. If the memory's speeds before and after a pair differ by more than a factor of 7/6, the pair is measured
 * again (README.md has the reason). */
typedef struct fr_bench_stream {
    double bandwidth, lowest, highest; /* bytes per second */
    double step;                       /* seconds */
    double share;
    size_t again; /* number of pairs that were measured again */
} fr_bench_stream;

fr_bench_stream fr_bench_stream_of(fr_session *session, size_t position);

/* Holds a machine's limits: bytes read per second, multiply-adds per second in this model's products, and multiply-adds
 * per second in attention. */
typedef struct fr_bench_limits {
    double bandwidth, peak, attention;
} fr_bench_limits;

/* Gives L(K), the lowest value of T(K) / T(1) that the limits of reading and multiplying allow. T(K) is the time of a
 * forward of K rows. one, rows: the costs of a forward of one row and of K rows. */
double fr_bench_row_limit(const fr_bench_cost *one, const fr_bench_cost *rows, const fr_bench_limits *limits);

/* Gives the machine's limits. `bandwidth` becomes the limit of reading. The peaks of multiplying are measured now, on
 * the session's threads. A peak is 0 if the instruction set has no loop for it. If the model does not attend to
 * latents, the peak of attention is infinite. */
fr_bench_limits fr_bench_limits_now(fr_session *session, double bandwidth);

/* Returns the part of the dot product's peak that a model's products can reach. It is less than the peak, because the
 * products must unpack weights too. */
double fr_bench_product_peak(const fr_model *model, double dot_peak);

/* Holds the measured T(rows) / T(1), its limit L(rows), and the factor by which the measured value exceeds the limit.
 * Each is the median over pairs of forwards. The limit is measured right before each pair, with the bandwidth of
 * `memory`, because on a machine whose memory or clock changes from second to second no single limit holds. Pairs
 * during which the memory changed are measured again, as in fr_bench_stream_of. */
typedef struct fr_bench_verify {
    double ratio, limit, over;
    double experts; /* mean number of experts that K rows read in a layer, as in fr_bench_cost */
    size_t again;
} fr_bench_verify;

fr_bench_verify fr_bench_verify_limited(fr_session *session, const fr_bench_memory *memory, size_t rows,
                                        size_t position);

#endif
