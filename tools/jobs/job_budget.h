/* How much a chat's reply may reason.
 *
 * In: the members "reasoning_budget_tokens" and "thinking_budget_tokens" (llama.cpp's), "thinking_token_budget"
 * (vLLM's) and "reasoning_budget": tokens, 0: none, -1: any number. Out: a mask for the job's session; a model whose
 * template has no marks of reasoning needs none. */
#ifndef FR_TOOLS_JOBS_JOB_BUDGET_H
#define FR_TOOLS_JOBS_JOB_BUDGET_H

#include "tools/jobs/job_parts.h"

/* Makes the budget, if one is asked for; behind the prompt. False: refused. */
bool fr_job_make_budget(fr_job *job);

/* Gives it to the job's session, where it has one; takes it away. */
fr_status fr_job_set_budget(const fr_job *job);
fr_status fr_job_lift_budget(const fr_job *job);

void fr_job_hold_budget(fr_job *job);
void fr_job_drop_budget(fr_job *job);

#endif
