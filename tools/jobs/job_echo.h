/* A prompt as the beginning of its answer: "echo" of /v1/completions, with the log-probabilities of the prompt's tokens
 * where the request has "logprobs". Choices of one prompt share what was computed for the first of them.
 *
 * In: jobs of that form. Out: JSON values, each new. */
#ifndef FR_TOOLS_JOBS_JOB_ECHO_H
#define FR_TOOLS_JOBS_JOB_ECHO_H

#include "tools/jobs/job.h"

/* Puts the prompt of a job that needs its log-probabilities to the job's session: rounds compute them as they run the
 * prompt, and they are in job->echoed once none of it waits. */
fr_status fr_job_echo_begin(fr_job *job);

/* The prompt as a text. */
json_t *fr_job_echo_text(const fr_job *job);

/* "logprobs" of its tokens as /v1/completions has them, null where none were asked for. echoed: those of the prompt's
 * first choice. *offset: the characters of the prompt, which those of the reply stand behind. */
json_t *fr_job_echo_logprobs(const fr_job *job, const fr_reply *echoed, size_t *offset);

/* Puts both in front of what a whole choice has. */
void fr_job_echo_put(const fr_job *job, const fr_reply *echoed, json_t *choice);

#endif
