/* Makes an engine and its sessions fit FR_OPT_MEMORY, together with the weights.
 *
 * In: the memory that opening the engine and its sessions would take (session.h). Out: options with which they fit, or
 * FR_MEMORY with the sizes. Ranks may have room for different numbers of pages. All ranks take the smallest of these
 * numbers, because the number of pages decides what the ranks run next. */
#include "base/error.h"
#include "base/ranks.h"
#include "base/sizes.h"
#include "src/engine/session/session.h"

static fr_status refuse(const fr_session_bytes *bytes, size_t sessions, uint64_t weights, uint64_t limit) {
    return fr_fail_about(FR_OPT_MEMORY, FR_MEMORY,
                         "%zu session%s of %zu positions take %.1f MB beside %.1f MB of weights: memory is limited to "
                         "%.1f MB",
                         fr_larger(sessions, 1), sessions > 1 ? "s" : "", bytes->context, (double)bytes->all / 1e6,
                         (double)weights / 1e6, (double)limit / 1e6);
}

enum { STEP = 4096 }; /* accuracy of the search, in bytes of keys and values */

/* One trial: a number of bytes for keys and values, and the memory that an engine with this number takes. `options` has
 * the number. `bytes` is the memory that opening then takes, without the weights; `weights` is the bytes of the
 * weights; `limit` is how much the two may take together. The number counts all heads, as in a single process, so that
 * each rank gets the same number of pages from it. */
typedef struct trial {
    const fr_model *model;
    const fr_drafter *drafter;
    size_t sessions;
    fr_options *options;
    uint64_t weights, limit;
    fr_session_bytes bytes;
} trial;

static fr_status try(trial *t, size_t kv, bool *fits) {
    if (kv) t->options->value[FR_OPT_KV_MEMORY] = (int64_t)kv;
    FR_TRY(fr_session_measure(t->model, t->drafter, t->options, t->sessions, &t->bytes));
    *fits = t->weights + t->bytes.all <= t->limit;
    return FR_OK;
}

/* Finds the largest number of pages with which everything fits, by halving an interval. There is no formula for this
 * number, because other memory grows with it too, and only a complete layout shows by how much. */
static fr_status give_less(trial *t) {
    int64_t asked = t->options->value[FR_OPT_KV_MEMORY];
    size_t most = asked ? (size_t)asked : t->bytes.target_kv + t->bytes.foreign_kv, least = t->bytes.least_kv;
    bool fits;
    FR_TRY(try(t, least, &fits));
    if (!fits) return refuse(&t->bytes, t->sessions, t->weights, t->limit);
    while (most > least + STEP) {
        size_t middle = least + (most - least) / 2;
        FR_TRY(try(t, middle, &fits));
        if (fits)
            least = middle;
        else
            most = middle;
    }
    return try(t, least, &fits);
}

static fr_status fit(const fr_model *model, const fr_drafter *drafter, size_t sessions, fr_options *options) {
    trial t = {model, drafter, sessions, options, .limit = (uint64_t)options->value[FR_OPT_MEMORY]};
    bool fits;
    if (t.limit == 0) return FR_OK;
    t.weights = fr_model_memory_use(model).stays + (drafter ? fr_drafter_memory_use(drafter).stays : 0);
    FR_TRY(try(&t, 0, &fits));
    if (fits) return FR_OK;
    return sessions == 0 ? refuse(&t.bytes, sessions, t.weights, t.limit) : give_less(&t);
}

/* Gives the smallest of all ranks' values. */
static uint64_t least_of_ranks(fr_ranks *ranks, uint64_t own) {
    uint64_t all[FR_RANKS_MAX], least = own;
    size_t count = fr_ranks_count(ranks);
    for (size_t r = 0; r < count; r++) all[r] = own;
    fr_ranks_gather_equal(ranks, all, sizeof *all);
    for (size_t r = 0; r < count; r++) least = fr_smaller(least, all[r]);
    return least;
}

fr_status fr_session_fit(const fr_model *model, const fr_drafter *drafter, size_t sessions, fr_options *options) {
    int64_t *kv = &options->value[FR_OPT_KV_MEMORY], asked = *kv;
    FR_TRY(fit(model, drafter, sessions, options));
    if (!model->ranks) return FR_OK;
    uint64_t least = least_of_ranks(model->ranks, *kv == asked ? UINT64_MAX : (uint64_t)*kv);
    if (least < UINT64_MAX) *kv = (int64_t)least;
    return FR_OK;
}
