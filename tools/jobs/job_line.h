/* Reads a line of JSON whose id may be a number that fits no type of C.
 *
 * In: the line's bytes. Out: the object with null as its id, and the id's text as it was written. */
#ifndef FR_TOOLS_JOBS_JOB_LINE_H
#define FR_TOOLS_JOBS_JOB_LINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* The members that are ids: "id" in forerun's own form, "custom_id" in OpenAI's. */
#define FR_ID        "id"
#define FR_CUSTOM_ID "custom_id"

typedef struct fr_job_text {
    json_t *value; /* NULL: the line is not JSON */
    char *id;      /* to be freed; NULL: there is no id */
    bool custom;   /* the id is a "custom_id", which must not be null */
} fr_job_text;

/* Parses a line. error: the reason if the line is not JSON. */
fr_job_text fr_job_text_read(const char *line, size_t length, json_error_t *error);
void fr_job_text_free(fr_job_text *text);

#endif
