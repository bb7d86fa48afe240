/* Declares functions that job.c and the server share. They read the fields and the prompt of a request, and write the
 * answer. */
#ifndef FR_TOOLS_JOBS_JOB_PARTS_H
#define FR_TOOLS_JOBS_JOB_PARTS_H

#include "tools/jobs/job_field.h"

/* The end of the error line for a prompt that is too long, and OpenAI's code for that error; %lld is the context.
 * llama.cpp's and OpenAI's servers use the same phrases. Agents search for these phrases and then shorten the
 * conversation. */
#define FR_JOB_TOO_LONG \
    "exceeds the available context size: the maximum context length is %lld tokens, the answer's among them"
#define FR_JOB_TOO_LONG_CODE "context_length_exceeded"

/* Returns true if the job belongs to a server, whose requests are not lines of a file. */
static inline bool fr_job_is_served(const fr_job *job) {
    return !job->setting->file;
}

/* Each of these functions reads a member of a request into the job. fr_job_take_later accepts a member without reading
 * it, because fr_job_take_prompt reads it later. */
typedef bool fr_job_take_field(fr_job *job, const char *key, const json_t *value);
fr_job_take_field fr_job_take_count, fr_job_take_seed, fr_job_take_switch, fr_job_take_stops, fr_job_take_images,
    fr_job_take_tools, fr_job_take_logprobs, fr_job_take_bias, fr_job_take_most, fr_job_take_grammar, fr_job_take_regex,
    fr_job_take_json_schema, fr_job_take_response_format, fr_job_take_tool_choice, fr_job_take_parallel,
    fr_job_take_budget, fr_job_take_guided_choice, fr_job_take_guided_json, fr_job_take_structured_outputs,
    fr_job_take_repetition, fr_job_take_stop_ids, fr_job_take_keep_stop, fr_job_take_least, fr_job_take_enable_thinking,
    fr_job_take_thinking, fr_job_take_effort, fr_job_take_reasoning, fr_job_take_choices, fr_job_take_best_of,
    fr_job_take_echo, fr_job_take_suffix, fr_job_take_later;

/* These functions give the function that reads a member. fr_job_sampler knows the sampling settings. fr_job_member
 * knows every member of a body in the job's form. NULL: there is no such member. */
fr_job_take_field *fr_job_sampler(const char *key);
fr_job_take_field *fr_job_member(const fr_job *job, const char *key);

/* Checks that all integers in a member fit into 64 bits. If an integer does not fit, the job is refused, and the
 * function returns false. Members that a template renders may have larger integers. */
bool fr_job_check_wide(fr_job *job, const char *key, const json_t *value);

/* Adds the values of all sampling settings that are numbers to the object. */
void fr_job_put_samplers(const fr_options *options, json_t *object);

/* These functions read all members of a line. fr_job_take_fields is for a line in forerun's own form.
 * fr_job_take_request is for a line in OpenAI's form, whose "url" says what its body is. */
bool fr_job_take_fields(fr_job *job);
bool fr_job_take_request(fr_job *job);

/* llama.cpp's usual mark for the place of a picture in a "prompt_string". */
#define FR_JOB_MEDIA_MARK "<__media__>"

/* These functions make the ids of the prompt. fr_job_take_prompt reads the prompt of a batch's line. A server calls the
 * other two functions. fr_job_take_messages reads a chat's messages. fr_job_take_text_or_ids reads one of the request's
 * prompts: a text, ids, an array of texts and ids, or an object whose "prompt_string" is one of these. The pictures in
 * the "multimodal_data" of such an object must have been opened before. */
bool fr_job_take_prompt(fr_job *job);
bool fr_job_take_messages(fr_job *job, const json_t *messages);
bool fr_job_take_text_or_ids(fr_job *job, const json_t *prompt);

/* Makes the ids of a prompt for filling in code. The model writes the text between `prompt` (a text or ids) and the
 * job's suffix. */
bool fr_job_take_around(fr_job *job, const json_t *prompt);

/* These functions handle the least number of ids that a reply must have. fr_job_check_least checks that the request's
 * other members allow it. fr_job_set_least gives the job's session a mask, which forbids the ids that would end the
 * reply too early. Call it after the grammar and the budget were set. fr_job_lift_least removes the mask. */
bool fr_job_check_least(fr_job *job);
fr_status fr_job_set_least(fr_job *job);
fr_status fr_job_lift_least(const fr_job *job);

/* Makes the answer in OpenAI's form. It does not have the line's ids, which are added later. */
json_t *fr_job_response(fr_job *job);

#endif
