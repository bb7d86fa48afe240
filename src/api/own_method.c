/* Gives sessions a caller's own draft method, or the prepared drafts of fr_lab_session_script (the script).
 *
 * In: the functions of a method; or, for the script, the ids that the target will give, and a function that decides
 * which of them are drafted correctly. Out: a session that drafts in this way. */
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "src/engine/draft/draft_own.h"
#include "src/engine/session/state.h"

fr_status fr_session_set_proposer(fr_session *s, const fr_proposer *method) {
    fr_draft *draft;
    if (!s || !method || !method->propose)
        return fr_fail(FR_USAGE, "fr_session_set_proposer: a session and a function that proposes are needed");
    FR_TRY(fr_engine_check_process(s->engine));
    fr_async_draft_cancel(s);
    FR_TRY(fr_draft_own(method, s->model->trunk.spec.vocab, s->sampling.sampler.on && s->sampling.sampler.rejection,
                        s->drafting.draft, &draft));
    s->drafting.draft = draft;
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------- the script */

typedef struct script {
    int32_t *ids; /* the timeline's ids, by position */
    size_t count;
    int32_t vocab;
    fr_lab_accept_fn *accept;
    void *context;
    size_t round; /* number of rounds that were drafted so far */
} script;

static size_t script_propose(void *context, fr_drafting *drafting) {
    script *s = context;
    size_t count = 0, length = drafting->length;
    for (; count < drafting->count && length + count < s->count; count++) {
        int32_t right = s->ids[length + count];
        drafting->drafts[count] = s->accept(s->context, s->round, count) ? right : (right + 1) % s->vocab;
    }
    s->round++;
    return count;
}

static void script_close(void *context) {
    script *s = context;
    if (s) free(s->ids);
    free(s);
}

static fr_status make_script(const int32_t *ids, size_t count, size_t vocab, script **made) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= vocab)
            return fr_fail(FR_INPUT, "id %d at index %zu of the script is outside the vocabulary of %zu", ids[i], i,
                           vocab);
    script *s = *made = calloc(1, sizeof *s);
    if (s) s->ids = malloc((count + 1) * sizeof *s->ids);
    if (!s || !s->ids) return fr_fail_memory("script", count * sizeof *ids);
    memcpy(s->ids, ids, count * sizeof *ids);
    s->count = count;
    s->vocab = (int32_t)vocab;
    return FR_OK;
}

fr_status fr_lab_session_script(fr_session *session, const int32_t *ids, size_t count, fr_lab_accept_fn *accept,
                                void *context) {
    script *s = NULL;
    if (!ids || !accept) return fr_fail(FR_USAGE, "fr_lab_session_script: ids and a function are needed");
    fr_status status = make_script(ids, count, session->model->trunk.spec.vocab, &s);
    if (status == FR_OK) {
        s->accept = accept;
        s->context = context;
        status = fr_session_set_proposer(
            session, &(fr_proposer){.propose = script_propose, .close = script_close, .context = s});
    }
    if (status != FR_OK) script_close(s);
    return status;
}
