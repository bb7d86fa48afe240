/* Runs a prompt with fr_session_set_prompt and shows its progress (prompt_run.h). */
#include "tools/cli/prompt_run.h"

#include "tools/cli/terminal/progress.h"

typedef struct watched {
    const fr_session *session;
    fr_abort_fn *abort;
    fr_progress progress;
    /* number of ids that still had to be run when `watch` was first called; 0: `watch` was not called yet */
    size_t total;
} watched;

/* Shows the progress before each piece of the prompt. If the prompt is only one piece, no line is shown, because the
 * line would vanish before anyone could read it. */
static bool watch(void *context) {
    watched *w = context;
    size_t waiting = fr_session_waiting(w->session);
    if (w->total == 0)
        w->total = waiting;
    else if (waiting < w->total)
        fr_progress_count(&w->progress, w->total - waiting, w->total, "tokens", "");
    return w->abort(NULL);
}

fr_status fr_prompt_run(fr_session *session, const int32_t *ids, size_t count, fr_abort_fn *abort, bool quiet) {
    watched w = {.session = session, .abort = abort, .progress = fr_progress_begin("reading the prompt", quiet)};
    fr_session_set_abort(session, watch, &w);
    fr_status status = fr_session_set_prompt(session, ids, count);
    fr_session_set_abort(session, abort, NULL);
    fr_progress_end(&w.progress);
    return status;
}
