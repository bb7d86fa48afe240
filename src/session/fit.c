/* Whether an engine and its sessions fit FR_OPT_MEMORY, with the weights that they run.
 *
 * In: what opening them would take (session.h). Out: options with which they fit, or FR_MEMORY, with the sizes. */
#include "base/error.h"
#include "base/sizes.h"
#include "src/session/session.h"

static fr_status refuse(const fr_session_bytes *bytes, size_t sessions, uint64_t weights, uint64_t limit) {
    return fr_fail_about(FR_OPT_MEMORY, FR_MEMORY,
                         "%zu session%s of %zu positions take %.1f MB beside %.1f MB of weights: memory is limited to "
                         "%.1f MB", sessions, sessions == 1 ? "" : "s", bytes->context, (double)bytes->all / 1e6,
                         (double)weights / 1e6, (double)limit / 1e6);
}

/* Pages of keys and values, so many bytes fewer, or the fewest that there can be. */
static void give_less(fr_options *options, const fr_session_bytes *bytes, uint64_t too_many) {
    size_t now = bytes->target_kv, less = too_many < now ? now - (size_t)too_many : 0;
    options->value[FR_OPT_KV_MEMORY] = (int64_t)fr_larger(less, bytes->least_kv);
}

fr_status fr_session_fit(const fr_model *model, const fr_drafter *drafter, size_t sessions, fr_options *options) {
    uint64_t limit = (uint64_t)options->value[FR_OPT_MEMORY], weights = fr_model_residence(model).stays;
    fr_session_bytes bytes;
    if (limit == 0) return FR_OK;
    if (drafter) weights += drafter->weights.residence.stays;
    for (int tries = 0;; tries++) {
        FR_TRY(fr_session_measure(model, drafter, options, sessions, &bytes));
        if (weights + bytes.all <= limit) return FR_OK;
        bool least = options->value[FR_OPT_KV_MEMORY] == (int64_t)bytes.least_kv;
        if (sessions == 1 || least || tries == 4) return refuse(&bytes, sessions, weights, limit);
        give_less(options, &bytes, weights + bytes.all - limit);
    }
}
