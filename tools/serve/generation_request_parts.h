/* What generation_request.c is made of: a body's members, its messages. */
#ifndef FR_TOOLS_SERVE_GENERATION_REQUEST_PARTS_H
#define FR_TOOLS_SERVE_GENERATION_REQUEST_PARTS_H

#include "tools/jobs/job_parts.h"
#include "tools/serve/generation_request.h"

/* All members of a body but what its prompts are: to the job what its session needs, to the request how it is answered.
 * False: the job is refused. */
bool fr_generation_request_take_members(fr_generation_request *request, fr_job *job);

/* The messages of a chat, with their pictures, as the job's prompt. False: it is refused. */
bool fr_generation_request_take_messages(fr_generation_request *request, fr_job *job);

#endif
