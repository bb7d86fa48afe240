/* A line of JSON with an id, which may be what no number of C holds.
 *
 * In: the line's bytes. Out: the object, whose id is null there; and the id's text, as it was written. */
#ifndef FR_TOOLS_JOBS_JOB_LINE_H
#define FR_TOOLS_JOBS_JOB_LINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* The members that are an id: a line's own, and that of OpenAI's form. */
#define FR_ID        "id"
#define FR_CUSTOM_ID "custom_id"

typedef struct fr_job_text {
    json_t *value; /* NULL: it is no JSON */
    char *id;      /* free; NULL: there is none */
    bool custom;   /* it is the "custom_id", which is not null */
} fr_job_text;

/* error: why it is no JSON. */
fr_job_text fr_job_text_read(const char *line, size_t length, json_error_t *error);
void fr_job_text_free(fr_job_text *text);

#endif
