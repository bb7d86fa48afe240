/* Declares functions that generation_request.c uses: one reads a body's members, the other its messages. */
#ifndef FR_TOOLS_SERVE_GENERATION_REQUEST_PARTS_H
#define FR_TOOLS_SERVE_GENERATION_REQUEST_PARTS_H

#include "tools/jobs/job_parts.h"
#include "tools/serve/generation_request.h"

/* Reads all members of a body except its prompts: settings of sampling into the job, and those of the answer into the
 * request. Returns false if the job is refused. */
bool fr_generation_request_take_members(fr_generation_request *request, fr_job *job);

/* Reads the messages of a chat and their pictures, and makes them the job's prompt. Returns false if they are
 * refused. */
bool fr_generation_request_take_messages(fr_generation_request *request, fr_job *job);

#endif
