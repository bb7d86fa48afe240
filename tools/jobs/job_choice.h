/* What a job has come to, in the words of OpenAI's API and llama.cpp's server: shared by a batch's lines and a server's
 * answers.
 *
 * In: a job, most often one that has ended. Out: JSON values, each new. */
#ifndef FR_TOOLS_JOBS_JOB_CHOICE_H
#define FR_TOOLS_JOBS_JOB_CHOICE_H

#include "tools/cli/figures.h"
#include "tools/jobs/job.h"

/* {"index", "message" or, of a completion, "text", "logprobs", "finish_reason"}. What can't be read of the reply is the
 * job's error. */
json_t *fr_job_choice(fr_job *job, size_t index);

/* "stop", "tool_calls" where there are any, or "length": for an interrupt too, whose text is as unfinished. */
const char *fr_job_finish_reason(const fr_job *job, bool calls);

/* "logprobs" of a choice, for the ids from `from` on, before `to`: null where none were wanted. *offset: characters
 * before them, for a completion's. */
json_t *fr_job_logprobs(const fr_job *job, size_t from, size_t to, size_t *offset);

json_t *fr_job_usage(size_t prompt, size_t cached, size_t completion);

/* As they are now, but of the reply's ids only those that are kept. */
fr_figures fr_job_figures(const fr_job *job);

/* It can't be run because its prompt fills the context. */
bool fr_job_is_too_long(const fr_job *job);

#endif
