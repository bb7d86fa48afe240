/* Shares rank 0's decisions about a text: see leader_decisions.h. */
#include "src/engine/session/leader_decisions.h"

#include <string.h>

#include "base/ranks.h"
#include "base/sizes.h"

typedef struct told_drafts {
    int32_t status;
    uint32_t count;
    int32_t ids[FR_STEP_MAX];
} told_drafts;

typedef struct told_choice {
    int32_t status, token;
    uint64_t stood;
    double mus[FR_STEP_MAX]; /* mirostat's bounds, which drafters need to draw as the target does */
} told_choice;

bool fr_leader_decisions_are_elsewhere(const fr_session *s) {
    return s->leader_decides && fr_ranks_index(s->model->ranks) > 0;
}

bool fr_leader_decisions_have_grammar(const fr_session *s) {
    return s->sampling.sampler.constraint.grammar || (s->leader_decides & FR_LEADER_HAS_GRAMMAR);
}

/* Fails if rank 0 has failed, so that the session fails on all ranks alike. */
static fr_status heed(const fr_session *s, int32_t status) {
    FR_TRY(fr_ranks_check(s->model->ranks));
    return status == FR_OK ? FR_OK : fr_fail((fr_status)status, "rank 0 has failed in this text");
}

fr_status fr_leader_decisions_share_drafts(fr_session *s, fr_status status, size_t *count) {
    int32_t *drafts = s->ids + s->length;
    if (!s->leader_decides) return status;
    told_drafts told = {.status = (int32_t)status, .count = (uint32_t)*count};
    memcpy(told.ids, drafts, *count * sizeof *drafts);
    fr_ranks_broadcast(s->model->ranks, &told, sizeof told);
    if (!fr_leader_decisions_are_elsewhere(s)) return status;
    FR_TRY(heed(s, told.status));
    *count = fr_smaller(told.count, FR_STEP_MAX);
    memcpy(drafts, told.ids, *count * sizeof *drafts);
    return FR_OK;
}

fr_status fr_leader_decisions_share_choice(fr_session *s, fr_status status, size_t *stood, int32_t *token) {
    fr_sampler *sampler = &s->sampling.sampler;
    if (!s->leader_decides) return status;
    told_choice told = {.status = (int32_t)status, .token = *token, .stood = *stood};
    memcpy(told.mus, sampler->mus, sizeof told.mus);
    fr_ranks_broadcast(s->model->ranks, &told, sizeof told);
    if (!fr_leader_decisions_are_elsewhere(s)) return status;
    FR_TRY(heed(s, told.status));
    *stood = fr_smaller(told.stood, FR_STEP_MAX - 1);
    *token = told.token;
    memcpy(sampler->mus, told.mus, sizeof told.mus);
    return FR_OK;
}
