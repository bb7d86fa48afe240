/* Puts the prompt before its answer, if a request to /v1/completions has "echo". If the request also has "logprobs",
 * the log-probabilities of the prompt's tokens are added. The first choice of a prompt computes them, and all its
 * choices use them.
 *
 * In: jobs of /v1/completions. Out: JSON values, each a new reference. */
#ifndef FR_TOOLS_JOBS_JOB_ECHO_H
#define FR_TOOLS_JOBS_JOB_ECHO_H

#include "tools/jobs/job.h"

/* Puts the job's prompt into its session. While rounds run the prompt, its log-probabilities are computed. When the
 * whole prompt has been run, job->echoed has all of them. */
fr_status fr_job_echo_begin(fr_job *job);

/* Gives the prompt as text. */
json_t *fr_job_echo_text(const fr_job *job);

/* Makes the "logprobs" of the prompt's tokens in the form of /v1/completions. Gives null if no log-probabilities were
 * requested. echoed: the log-probabilities, which the prompt's first choice has computed. *offset: the number of the
 * prompt's characters, which is the offset of the reply's first token. */
json_t *fr_job_echo_logprobs(const fr_job *job, const fr_reply *echoed, size_t *offset);

/* Puts the prompt's text before the text of a choice, and the prompt's log-probabilities before those of the choice. */
void fr_job_echo_put(const fr_job *job, const fr_reply *echoed, json_t *choice);

#endif
