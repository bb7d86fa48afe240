/* Defines the public functions of adapters. Each checks its arguments, sets the floating-point environment, and calls
 * the engine. In: a caller's arguments, which may be anything. Out: the results that forerun.h promises. */
#include <string.h>

#include "forerun_lab.h"
#include "base/error.h"
#include "base/fpenv.h"
#include "src/api/rank_leader.h"
#include "src/engine/model/adapter.h"
#include "src/engine/session/session.h"

fr_status fr_adapter_open(const char *path, const fr_model *model, fr_adapter **adapter) {
    if (adapter) *adapter = NULL;
    if (!path || !model || !adapter)
        return fr_fail_null("fr_adapter_open", "a path, a model and a place for the adapter");
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_adapter_load(path, model, adapter);
    fr_fpenv_leave(environment);
    return status;
}

fr_status fr_control_vector_open(const char *path, const fr_model *model, size_t first, size_t last,
                                 fr_adapter **adapter) {
    if (adapter) *adapter = NULL;
    if (!path || !model || !adapter)
        return fr_fail_null("fr_control_vector_open", "a path, a model and a place for the control vector");
    if (last && first > last) return fr_fail(FR_USAGE, "%s: layers from %zu to %zu are none", path, first, last);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_control_vector_load(path, model, first, last, adapter);
    fr_fpenv_leave(environment);
    return status;
}

void fr_adapter_close(fr_adapter *adapter) {
    fr_adapter_unload(adapter);
}

size_t fr_adapter_rank(const fr_adapter *adapter) {
    return adapter ? adapter->rank : 0;
}

size_t fr_adapter_matrices(const fr_adapter *adapter) {
    return adapter ? adapter->matrices : 0;
}

void fr_lab_adapter_digest(const fr_adapter *adapter, uint8_t digest[FR_SHA256_BYTES]) {
    memcpy(digest, adapter->digest, sizeof adapter->digest);
}

fr_status fr_session_set_adapters(fr_session *session, const fr_adapter *const *adapters, const double *scales,
                                  size_t count) {
    fr_adapter_set set;
    fr_kv_digest digest;
    if (!session || (count && (!adapters || !scales)))
        return fr_fail_null("fr_session_set_adapters", "a session, its adapters and their scales");
    FR_TRY(fr_engine_check_process(session->engine));
    FR_TRY(fr_rank_leader_refuse(session->engine, "fr_session_set_adapters"));
    FR_TRY(fr_adapter_join(session->model, adapters, scales, count, &set, digest.bytes));
    fr_async_draft_cancel(session);
    uint64_t environment = fr_fpenv_enter();
    fr_session_adapt(session, &set, &digest);
    fr_fpenv_leave(environment);
    return FR_OK;
}
