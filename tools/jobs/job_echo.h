/* Puts the prompt before its answer: "echo" of /v1/completions, with the log-probabilities of the prompt's tokens if
 * the request has "logprobs". All choices of a prompt use the log-probabilities that the first choice computed.
 *
 * In: jobs of that form. Out: JSON values, each new. */
#ifndef FR_TOOLS_JOBS_JOB_ECHO_H
#define FR_TOOLS_JOBS_JOB_ECHO_H

#include "tools/jobs/job.h"

/* Gives the prompt of a job that needs its log-probabilities to the job's session. Rounds compute them while they run
 * the prompt; they are complete in job->echoed once none of the prompt waits. */
fr_status fr_job_echo_begin(fr_job *job);

/* Gives the prompt as a text. */
json_t *fr_job_echo_text(const fr_job *job);

/* Makes the "logprobs" of the prompt's tokens as /v1/completions has them; null if none were asked for. echoed:
 * those of the prompt's first choice. *offset: the number of the prompt's characters, from which the reply's offsets
 * count. */
json_t *fr_job_echo_logprobs(const fr_job *job, const fr_reply *echoed, size_t *offset);

/* Puts both before the text and the "logprobs" of a choice. */
void fr_job_echo_put(const fr_job *job, const fr_reply *echoed, json_t *choice);

#endif
