/* Declares functions that generation_request.c uses. They read a body's members, its messages, and the pictures of its
 * prompts. */
#ifndef FR_TOOLS_SERVE_GENERATION_REQUEST_PARTS_H
#define FR_TOOLS_SERVE_GENERATION_REQUEST_PARTS_H

#include "tools/jobs/job_parts.h"
#include "tools/serve/generation_request.h"

/* Reads all members of a body except its prompts. Settings of sampling go into the job. Settings of the answer go into
 * the request. Returns false if the job is refused. */
bool fr_generation_request_take_members(fr_generation_request *request, fr_job *job);

/* Reads the messages of a chat and their pictures, and makes the job's prompt of them. Returns false if they are
 * refused. */
bool fr_generation_request_take_messages(fr_generation_request *request, fr_job *job);

/* Opens a picture and adds it to the job's pictures. base64: the picture's text in the body. key: the member's name,
 * for error lines. Returns false if the picture is refused. */
bool fr_generation_request_take_picture(fr_generation_request *request, fr_job *job, const char *key,
                                        const char *base64, size_t length);

/* If a prompt is an object, opens the pictures in its "multimodal_data" and removes them from the prompt. Any other
 * prompt has no pictures. Returns false if a picture is refused. */
bool fr_generation_request_take_media(fr_generation_request *request, fr_job *job, json_t *prompt);

#endif
