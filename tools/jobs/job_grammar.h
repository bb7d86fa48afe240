/* Restricts a request's text by a grammar, a regular expression or a JSON schema.
 *
 * In: the prompt, and the members that ask for a restriction. These are "grammar", "json_schema", "regex" and
 * "response_format" of a line or a body, and "tool_choice" and "parallel_tool_calls" of a chat (job_parts.h). Out: a
 * grammar for the job's session. A job has at most one grammar, which its copies share. In a chat only the content of
 * the reply must follow the grammar. There may be reasoning before the content, and the reply may call tools instead of
 * having content. */
#ifndef FR_TOOLS_JOBS_JOB_GRAMMAR_H
#define FR_TOOLS_JOBS_JOB_GRAMMAR_H

#include "tools/jobs/job_parts.h"

typedef struct fr_job_grammar fr_job_grammar;

/* Makes the grammar if a member has asked for one. Call it after the prompt was read. Returns false if the grammar is
 * refused, with an error that names the member. */
bool fr_job_make_grammar(fr_job *job);

/* Finds the tools of the request that "tool_choice" allows, and sets *kept to a list of them, which the caller frees.
 * Returns false if "tool_choice" allows a tool that the request doesn't have. */
bool fr_job_keep_allowed_tools(fr_job *job, const json_t *tools, json_t **kept);

/* Sets the grammar in the job's session. Without a grammar it does nothing. */
fr_status fr_job_set_grammar(const fr_job *job);

/* fr_job_hold_grammar is called if a copy of the job shares the grammar, and counts one more holder.
 * fr_job_drop_grammar is called when a job ends, and counts one holder less. */
void fr_job_hold_grammar(fr_job *job);
void fr_job_drop_grammar(fr_job *job);

#endif
