/* Reading one field of a line or a request: tests of its value, and its refusal.
 *
 * In: a job and a JSON value. Out: true; or false with the job ended and its error line written. These helpers know
 * nothing of any particular field: the files that read fields include them, and they include none of those. */
#ifndef FR_TOOLS_JOBS_JOB_FIELD_H
#define FR_TOOLS_JOBS_JOB_FIELD_H

#include "tools/jobs/job.h"

/* Ends the job with this error, whose line begins with the job's file and line where it has them. Gives false. */
bool fr_job_refuse(fr_job *job, fr_status why, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Refuses the job if a library call failed: the library's error line is the reason. */
bool fr_job_check(fr_job *job, fr_status status);

/* Refuses a member, or this value of it, that is known and not built. */
bool fr_job_unbuilt(fr_job *job, const char *key);

/* True if the value is a text equal to the word. */
bool fr_job_is_word(const json_t *value, const char *word);

/* True if the value is a whole number from low to high. */
bool fr_job_whole(const json_t *value, json_int_t low, json_int_t high);

/* Gives a text without a NUL in it; NULL: the value is none. */
const char *fr_job_plain_text(const json_t *value);

#endif
