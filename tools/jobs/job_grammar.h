/* What a request's text has to be of: a grammar, a regular expression, a JSON schema.
 *
 * In: the members "grammar", "json_schema", "regex" and "response_format" of a line or a body, "tool_choice" and
 * "parallel_tool_calls" of a chat, as job_parts.h takes them; a prompt. Out: a grammar for the job's session. A job has
 * one at most, which copies of it share. In a chat it is one of whole replies: what the members ask for begins behind
 * the reasoning, if there is any, and tools may be called instead. */
#ifndef FR_TOOLS_JOBS_JOB_GRAMMAR_H
#define FR_TOOLS_JOBS_JOB_GRAMMAR_H

#include "tools/jobs/job_parts.h"

typedef struct fr_job_grammar fr_job_grammar;

/* Makes the grammar, if the members that were taken ask for one; behind the prompt. False: refused, by the member. */
bool fr_job_make_grammar(fr_job *job);

/* Selects the request's tools that "tool_choice" allows; the caller frees the list. False: refused, because an allowed
 * name is no tool's. */
bool fr_job_keep_allowed_tools(fr_job *job, const json_t *tools, json_t **kept);

/* Gives it to the job's session, where it has one. */
fr_status fr_job_set_grammar(const fr_job *job);

/* A copy has it too; and the end of one that has it. */
void fr_job_hold_grammar(fr_job *job);
void fr_job_drop_grammar(fr_job *job);

#endif
