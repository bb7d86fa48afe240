/* Makes a table of kernels that measure where the time of a forward goes. Each kernel of the table calls the kernel of
 * another table, and counts the call's time and its multiply-adds for its thread.
 *
 * In: the kernels of a model. Out: seconds and multiply-adds by phase and thread. Only one such table exists in a
 * process. */
#ifndef FR_BENCH_MODEL_PHASES_H
#define FR_BENCH_MODEL_PHASES_H

#include "bench/model_run.h"

typedef enum fr_bench_phase {
    FR_BENCH_PROJECTIONS, /* products with weights other than the head's */
    FR_BENCH_HEAD,
    FR_BENCH_ATTENTION, /* storing keys and values, scores, weighted sums of values */
    FR_BENCH_RECURRENT, /* states of DeltaNet and Mamba, short convolutions */
    FR_BENCH_NORMS,     /* norms, rotary positions, activations, sums of branches */
    FR_BENCH_ROWS,      /* rotating and quantizing rows for products */
    FR_BENCH_PHASES
} fr_bench_phase;

/* Holds the work of a thread in one prompt. */
typedef struct fr_bench_share {
    double seconds[FR_BENCH_PHASES], macs[FR_BENCH_PHASES];
} fr_bench_share;

/* Makes and returns the table of kernels that count. Each kernel of this table calls the kernel of `kernels` in the
 * same slot. The head's weights are the head_bytes bytes from `head` on, so a product with these weights counts as the
 * head's. */
const fr_kernels *fr_bench_counting_kernels(const fr_kernels *kernels, const uint8_t *head, size_t head_bytes);

/* Makes the threads of a team count their work. The thread with the index i counts into shares[i], which is set to zero
 * first. If shares is NULL, the threads stop counting. All threads of the team must make the call. */
void fr_bench_count_into(const fr_team *team, fr_bench_share *shares);

#endif
