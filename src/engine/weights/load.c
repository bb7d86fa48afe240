/* Loads bound weights into memory with a thread pool that exists only for this: see weights.h. */
#include <stdlib.h>

#include "base/error.h"
#include "base/pool.h"
#include "src/engine/weights/bound.h"

fr_status fr_weights_load(fr_weights *weights, const fr_plan *plan, const fr_options *options) {
    fr_pool *pool;
    FR_TRY(fr_weights_check_memory(weights));
    FR_TRY(fr_weights_check_limit(weights, 0, (uint64_t)options->value[FR_OPT_MEMORY]));
    if (weights->exceed && options->value[FR_OPT_MLOCK])
        return fr_fail_about(FR_OPT_MLOCK, FR_MACHINE,
                             "%s: more weights than there is memory can't be locked "
                             "in it",
                             weights->files->path);
    FR_TRY(fr_pool_open(plan, &pool));
    fr_status status = fr_weights_place(weights, pool, options->progress, options->progress_context);
    fr_pool_close(pool);
    if (status == FR_OK && options->value[FR_OPT_MLOCK]) status = fr_weights_lock(weights);
    return status;
}

typedef struct bringing {
    const fr_weights *weights;
    const fr_bound *bound;
    fr_failure *failures; /* [threads] the failure of each thread */
} bringing;

static void bring(void *context, const fr_team *team) {
    bringing *job = context;
    job->failures[team->index] = fr_failure_keep(fr_bound_place(job->weights, job->bound, team));
}

static void pack_brought(void *context, const fr_team *team) {
    bringing *job = context;
    job->failures[team->index] = fr_failure_keep(fr_bound_pack_stored(job->weights, job->bound, team));
}

static fr_status first_failure(const bringing *job) {
    fr_status status = FR_OK;
    for (size_t t = 0; t < FR_THREADS_MAX && status == FR_OK; t++) status = fr_failure_raise(&job->failures[t]);
    return status;
}

static fr_status bring_by_pool(bringing *job, const fr_plan *plan) {
    fr_pool *pool;
    FR_TRY(fr_pool_open(plan, &pool));
    fr_pool_run(pool, bring, job);
    fr_status status = first_failure(job);
    if (status == FR_OK && job->bound->tensor->type == FR_STORED) {
        fr_pool_run(pool, pack_brought, job);
        status = first_failure(job);
    }
    fr_pool_close(pool);
    return status;
}

fr_status fr_weights_bring_rest(const fr_weights *weights, const fr_matrix *matrix, const fr_plan *plan,
                                const fr_options *options) {
    const fr_bound *shared = fr_bound_find_rank_share(weights, matrix);
    if (!shared || !weights->placed) return FR_OK;
    fr_bound whole = fr_bound_whole(shared);
    bringing job = {weights, &whole, calloc(FR_THREADS_MAX, sizeof *job.failures)};
    if (!job.failures) return fr_fail_memory("the threads that load", FR_THREADS_MAX * sizeof *job.failures);
    fr_status status = bring_by_pool(&job, plan);
    free(job.failures);
    return status == FR_OK && options->value[FR_OPT_MLOCK] ? fr_bound_lock(weights, &whole) : status;
}
