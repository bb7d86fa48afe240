/* Estimates the memory of a model, a drafter and an engine: see fr_model_estimate of forerun.h.
 *
 * In: paths and options. Out: the number of bytes for each kind of memory. Files are mapped and described; no weight is
 * read, and no engine's memory is allocated. */
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/memory.h"
#include "src/engine/draft/draft.h"
#include "src/engine/session/session.h"

static void add_weights(uint64_t *bytes, const fr_memory_use *memory_use) {
    bytes[FR_ESTIMATE_RESIDENT] += memory_use->stays;
    bytes[FR_ESTIMATE_MAPPED] += memory_use->mapped;
}

static void add_sessions(uint64_t *bytes, const fr_session_bytes *sessions) {
    size_t rest = sessions->all - sessions->target_kv - sessions->checkpoints - sessions->drafting;
    bytes[FR_ESTIMATE_KV] = sessions->target_kv - sessions->states;
    bytes[FR_ESTIMATE_KV_LEAST] = sessions->least_kv;
    bytes[FR_ESTIMATE_STATES] = sessions->states;
    bytes[FR_ESTIMATE_CHECKPOINTS] = sessions->checkpoints;
    bytes[FR_ESTIMATE_DRAFTING] = sessions->drafting;
    bytes[FR_ESTIMATE_SCRATCH] = rest;
    bytes[FR_ESTIMATE_TOTAL] = bytes[FR_ESTIMATE_RESIDENT] + sessions->all;
}

static fr_status estimate(const fr_model *model, const char *drafter_path, const fr_options *options, size_t sessions,
                          uint64_t *bytes) {
    fr_drafter *drafter = NULL;
    fr_session_bytes taken;
    fr_memory_use memory_use = fr_model_memory_use(model);
    if (drafter_path) FR_TRY(fr_drafter_bind(*drafter_path ? drafter_path : NULL, model, options, &drafter));
    add_weights(bytes, &memory_use);
    if (drafter) {
        fr_memory_use drafters = fr_drafter_memory_use(drafter);
        add_weights(bytes, &drafters);
    }
    /* fr_session_open ignores FR_OPT_KV_MEMORY; so if that option is set, one session means an engine for one
     * session */
    bool alone = sessions == 1 && options->value[FR_OPT_KV_MEMORY] == 0;
    fr_status status = fr_session_measure(model, drafter, options, alone ? 0 : sessions, &taken);
    if (status == FR_OK) add_sessions(bytes, &taken);
    fr_drafter_unload(drafter);
    return status;
}

fr_status fr_model_estimate(const char *path, const char *drafter, const fr_options *options, size_t sessions,
                            uint64_t *bytes) {
    fr_model *model;
    if (!path || !bytes) return fr_fail_null("fr_model_estimate", "a path and a place for the bytes");
    memset(bytes, 0, FR_ESTIMATE_COUNT * sizeof *bytes);
    if (sessions == 0 || sessions > FR_SESSIONS_MAX)
        return fr_fail(FR_USAGE, "fr_model_estimate: 1 to %d sessions, not %zu", FR_SESSIONS_MAX, sessions);
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_model_bind(path, &resolved, &model);
    if (status == FR_OK) status = estimate(model, drafter, &resolved, sessions, bytes);
    if (status == FR_OK) bytes[FR_ESTIMATE_AVAILABLE] = fr_memory_available("");
    if (status != FR_OK) memset(bytes, 0, FR_ESTIMATE_COUNT * sizeof *bytes);
    fr_model_unload(model);
    fr_fpenv_leave(environment);
    return status;
}
