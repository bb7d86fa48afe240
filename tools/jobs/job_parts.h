/* What job.c is made of: fields, the prompt, the answer; what a server reads requests by. */
#ifndef FR_TOOLS_JOBS_JOB_PARTS_H
#define FR_TOOLS_JOBS_JOB_PARTS_H

#include "tools/jobs/job_field.h"

/* The second half of the error for a prompt that is too long, and OpenAI's code for it. It has the phrases of
 * llama.cpp's and OpenAI's servers that agents search for before they shorten a conversation. %lld is the context. */
#define FR_JOB_TOO_LONG \
    "exceeds the available context size: the maximum context length is %lld tokens, the answer's among them"
#define FR_JOB_TOO_LONG_CODE "context_length_exceeded"

/* A server's: not a line of a file. */
static inline bool fr_job_is_served(const fr_job *job) {
    return !job->setting->file;
}

/* A member of a request, taken; the ones that have parts of the prompt are left for fr_job_take_prompt. */
typedef bool fr_job_take_field(fr_job *job, const char *key, const json_t *value);
fr_job_take_field fr_job_take_count, fr_job_take_seed, fr_job_take_switch, fr_job_take_stops, fr_job_take_images,
    fr_job_take_tools, fr_job_take_logprobs, fr_job_take_bias, fr_job_take_most, fr_job_take_grammar, fr_job_take_regex,
    fr_job_take_json_schema, fr_job_take_response_format, fr_job_take_tool_choice, fr_job_take_parallel,
    fr_job_take_budget, fr_job_take_guided_choice, fr_job_take_guided_json, fr_job_take_structured_outputs,
    fr_job_take_repetition, fr_job_take_stop_ids, fr_job_take_keep_stop, fr_job_take_least, fr_job_take_enable_thinking,
    fr_job_take_thinking, fr_job_take_effort, fr_job_take_reasoning, fr_job_take_choices, fr_job_take_best_of,
    fr_job_take_echo, fr_job_take_suffix, fr_job_take_later;

/* What takes a setting of how tokens are drawn; NULL: it is none. And a member of a body in its job's form, those
 * among them; NULL: it is not known there. */
fr_job_take_field *fr_job_sampler(const char *key);
fr_job_take_field *fr_job_member(const fr_job *job, const char *key);

/* Whether no integer of a member is too big: only what a template renders may have any. False: refused. */
bool fr_job_check_wide(fr_job *job, const char *key, const json_t *value);

/* All of those that are numbers, as they are set. */
void fr_job_put_samplers(const fr_options *options, json_t *object);

/* All of them: of a line of our own form, of one of OpenAI's, which says by its "url" what its body is. */
bool fr_job_take_fields(fr_job *job);
bool fr_job_take_request(fr_job *job);

/* The ids of its prompt: as the line's members say; of a server's request, its messages, or one of its prompts: a text,
 * ids, texts and ids in turn, or an object with one of these as its "prompt_string". */
bool fr_job_take_prompt(fr_job *job);
bool fr_job_take_messages(fr_job *job, const json_t *messages);
bool fr_job_take_text_or_ids(fr_job *job, const json_t *prompt);

/* A prompt, a text or ids, with the job's suffix behind the text that is asked for. */
bool fr_job_take_around(fr_job *job, const json_t *prompt);

/* The mask for "at least so many ids", which stands after the grammar and the budget: checks that it is possible, sets
 * it in the job's session, and removes it. */
bool fr_job_check_least(fr_job *job);
fr_status fr_job_set_least(fr_job *job);
fr_status fr_job_lift_least(const fr_job *job);

/* The answer in OpenAI's form, but for its ids. */
json_t *fr_job_response(fr_job *job);

#endif
