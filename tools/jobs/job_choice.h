/* Makes the result of a job in the forms of OpenAI's API and llama.cpp's server, for a batch's lines and a server's
 * answers.
 *
 * In: a job, which usually has ended. Out: JSON values, each a new reference. */
#ifndef FR_TOOLS_JOBS_JOB_CHOICE_H
#define FR_TOOLS_JOBS_JOB_CHOICE_H

#include "tools/cli/figures.h"
#include "tools/jobs/job.h"

/* Makes {"index", "message", "logprobs", "finish_reason"}. A completion has "text" instead of "message". If the reply
 * can't be parsed, the job gets an error. */
json_t *fr_job_choice(fr_job *job, size_t index);

/* Gives the reason why the reply ended. This is "tool_calls" if the reply has calls, "stop" if it is complete, and
 * "length" if it was cut off or interrupted. */
const char *fr_job_finish_reason(const fr_job *job, bool calls);

/* Makes the "logprobs" of a choice for the ids from index `from` up to, but not including, `to`. Gives null if no
 * log-probabilities were requested. *offset is used for a completion: it is the number of characters before these ids,
 * and the call adds the number of characters of these ids. */
json_t *fr_job_logprobs(const fr_job *job, size_t from, size_t to, size_t *offset);

json_t *fr_job_usage(size_t prompt, size_t cached, size_t completion);

/* Gives the session's current figures. The last step may give ids after the end of the reply. These ids do not
 * count. */
fr_figures fr_job_figures(const fr_job *job);

/* Returns true if the job can't be run because its prompt has too many ids for the context. */
bool fr_job_is_too_long(const fr_job *job);

#endif
