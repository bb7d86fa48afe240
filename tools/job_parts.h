/* What job.c is made of: fields, the prompt, the answer. */
#ifndef FR_TOOLS_JOB_PARTS_H
#define FR_TOOLS_JOB_PARTS_H

#include "job.h"

/* Why it can't be run, behind its file and line; both give false. `check` takes a library call's status, whose line is
 * the reason. */
bool fr_job_refuse(fr_job *job, fr_status why, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool fr_job_check(fr_job *job, fr_status status);

/* A member of a request, taken; the ones that have parts of the prompt are left for fr_job_take_prompt. */
typedef bool fr_job_take_field(fr_job *job, const char *key, const json_t *value);
fr_job_take_field fr_job_take_count, fr_job_take_seed, fr_job_take_switch, fr_job_take_stops, fr_job_take_images,
    fr_job_take_tools, fr_job_take_logprobs, fr_job_take_later;

/* What takes a setting of how tokens are drawn; NULL: it is none. */
fr_job_take_field *fr_job_sampler(const char *key);

/* All of those that are numbers, as they are set. */
void fr_job_put_samplers(const fr_options *options, json_t *object);

/* All of them: of a line of our own form, of one of OpenAI's, which says by its "url" what its body is. */
bool fr_job_take_fields(fr_job *job);
bool fr_job_take_request(fr_job *job);

/* Whether it is a whole number from low to high. */
bool fr_job_whole(const json_t *value, json_int_t low, json_int_t high);

/* The ids of its prompt. */
bool fr_job_take_prompt(fr_job *job);

/* The answer in OpenAI's form, but for its ids. */
json_t *fr_job_response(fr_job *job);

#endif
