/* Limits the reasoning of a chat's reply.
 *
 * In: the members "reasoning_budget_tokens" and "thinking_budget_tokens" (llama.cpp's), "thinking_token_budget"
 * (vLLM's) and "reasoning_budget". Each is a number of tokens; 0: no reasoning, -1: no limit. Out: a mask for the job's
 * session, which ends the reasoning when the budget is used up. A model whose template has no marks of reasoning gets
 * no mask. */
#ifndef FR_TOOLS_JOBS_JOB_BUDGET_H
#define FR_TOOLS_JOBS_JOB_BUDGET_H

#include "tools/jobs/job_parts.h"

/* Makes the budget if a member has asked for one. Call it after the prompt was read. Returns false if the budget is
 * refused. */
bool fr_job_make_budget(fr_job *job);

/* fr_job_set_budget sets the budget's mask in the job's session. Without a budget it does nothing. fr_job_lift_budget
 * removes the mask. fr_job_hold_budget and fr_job_drop_budget add and remove a job that shares the budget. */
fr_status fr_job_set_budget(const fr_job *job);
fr_status fr_job_lift_budget(const fr_job *job);

void fr_job_hold_budget(fr_job *job);
void fr_job_drop_budget(fr_job *job);

#endif
