/* Puts the prompt before its answer: "echo" of /v1/completions, with the log-probabilities of the prompt's tokens if
 * the request has "logprobs". All choices of a prompt use the log-probabilities that the first choice computed.
 *
 * In: jobs of /v1/completions. Out: JSON values, each new. */
#ifndef FR_TOOLS_JOBS_JOB_ECHO_H
#define FR_TOOLS_JOBS_JOB_ECHO_H

#include "tools/jobs/job.h"

/* Puts the job's prompt into its session, so that rounds compute the prompt's log-probabilities while they run it.
 * When the whole prompt has been run, job->echoed has all of them. */
fr_status fr_job_echo_begin(fr_job *job);

/* Gives the prompt as text. */
json_t *fr_job_echo_text(const fr_job *job);

/* Makes the "logprobs" of the prompt's tokens in the form of /v1/completions; null if none were requested. echoed: the
 * log-probabilities, which the prompt's first choice has computed. *offset: the number of the prompt's characters,
 * which is the offset of the reply's first token. */
json_t *fr_job_echo_logprobs(const fr_job *job, const fr_reply *echoed, size_t *offset);

/* Puts the prompt's text and log-probabilities before those of a choice. */
void fr_job_echo_put(const fr_job *job, const fr_reply *echoed, json_t *choice);

#endif
