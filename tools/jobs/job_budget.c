/* Reads budgets of reasoning, and enforces them by masking logits (job_budget.h). */
#include "tools/jobs/job_budget.h"

#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "tools/cli/output.h"

struct fr_job_budget {
    size_t holders, most; /* holders: number of jobs that share the budget; most: the budget in tokens */
    /* Says what a budget does if the model's reasoning can't be ended early. If true, the budget is ignored. If false,
     * the request is refused. */
    bool if_built;
    fr_lab_reply_budget *budget; /* NULL: the budget is not made yet, or the model has no reasoning */
};

/* set for clients that always send a budget, even if the user has not asked for one */
#define IF_BUILT "reasoning_budget_if_built"

/* Reads a member that gives a budget. If several members give one, the last one is used. The budget matters only in a
 * chat, because only a chat has reasoning. */
bool fr_job_take_budget(fr_job *job, const char *key, const json_t *value) {
    if (!fr_job_whole(value, -1, INT32_MAX))
        return fr_job_refuse(job, FR_USAGE, "%s must be a whole number of tokens, or -1", key);
    if (json_integer_value(value) < 0) return true;
    if (job->form != FR_JOB_CHAT) return fr_job_unbuilt(job, key);
    if (!job->budget) {
        job->budget = fr_resize(NULL, 1, sizeof *job->budget);
        *job->budget = (struct fr_job_budget){.holders = 1};
    }
    job->budget->most = (size_t)json_integer_value(value);
    job->budget->if_built = strcmp(key, IF_BUILT) == 0;
    return true;
}

bool fr_job_make_budget(fr_job *job) {
    struct fr_job_budget *b = job->budget;
    const fr_prompt *prompt = &job->prompt;
    if (!b || b->budget || !prompt->rendered.text) return true;
    char *settings = fr_json_line(job->settings);
    fr_status status = fr_lab_reply_budget_open(fr_model_tokenizer(job->setting->loaded->model), settings,
                                                &prompt->rendered, prompt->count, b->most, &b->budget);
    free(settings);
    return status == FR_UNBUILT && b->if_built ? true : fr_job_check(job, status);
}

fr_status fr_job_set_budget(const fr_job *job) {
    const struct fr_job_budget *b = job->budget;
    bool made = b && b->budget;
    return made ? fr_session_set_mask(job->session, fr_lab_reply_budget_mask, b->budget) : FR_OK;
}

fr_status fr_job_lift_budget(const fr_job *job) {
    bool made = job->budget && job->budget->budget;
    return made ? fr_session_set_mask(job->session, NULL, NULL) : FR_OK;
}

void fr_job_hold_budget(fr_job *job) {
    if (job->budget) job->budget->holders++;
}

void fr_job_drop_budget(fr_job *job) {
    struct fr_job_budget *b = job->budget;
    job->budget = NULL;
    if (!b || --b->holders > 0) return;
    fr_lab_reply_budget_close(b->budget);
    free(b);
}
