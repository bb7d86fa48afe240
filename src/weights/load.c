/* Bound weights on their way into memory, by threads of their own: see weights.h. */
#include "base/error.h"
#include "base/pool.h"
#include "src/weights/weights.h"

fr_status fr_weights_load(fr_weights *weights, const fr_plan *plan, const fr_options *options) {
    fr_pool *pool;
    FR_TRY(fr_weights_check_memory(weights));
    FR_TRY(fr_weights_check_limit(weights, 0, (uint64_t)options->value[FR_OPT_MEMORY]));
    if (weights->exceed && options->value[FR_OPT_MLOCK])
        return fr_fail_about(FR_OPT_MLOCK, FR_MACHINE, "%s: more weights than there is memory can't be locked "
                                                   "in it", weights->files->path);
    if (weights->ranks && options->value[FR_OPT_MLOCK])
        return fr_fail_about(FR_OPT_MLOCK, FR_UNBUILT, "%s: a rank's share of weights can't be locked in memory as yet",
                             weights->files->path);
    FR_TRY(fr_pool_open(plan, &pool));
    fr_status status = fr_weights_place(weights, pool, options->progress, options->progress_context);
    fr_pool_close(pool);
    if (status == FR_OK && options->value[FR_OPT_MLOCK]) status = fr_weights_lock(weights);
    return status;
}
