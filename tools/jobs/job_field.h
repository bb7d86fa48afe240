/* Helps to read one field of a line or a request: checks its value, and refuses it.
 *
 * In: a job and a JSON value. Out: true if the value is accepted. Otherwise the result is false, and the job has ended
 * with an error line. These functions are not about a particular field. The files that read fields call them. */
#ifndef FR_TOOLS_JOBS_JOB_FIELD_H
#define FR_TOOLS_JOBS_JOB_FIELD_H

#include "tools/jobs/job.h"

/* Ends the job with this error. If the job is a line of a file, the error begins with the file's name and the line's
 * number. Returns false. */
bool fr_job_refuse(fr_job *job, fr_status why, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* If a library call has failed, refuses the job with the library's error line, and returns false. */
bool fr_job_check(fr_job *job, fr_status status);

/* Refuses a member that is known but not implemented, or whose value is not implemented. */
bool fr_job_unbuilt(fr_job *job, const char *key);

/* Returns true if the value is a text that equals the word. */
bool fr_job_is_word(const json_t *value, const char *word);

/* Returns true if the value is a whole number from low to high. */
bool fr_job_whole(const json_t *value, json_int_t low, json_int_t high);

/* Gives the value's text. NULL: the value is not a text, or its text has a NUL in it. */
const char *fr_job_plain_text(const json_t *value);

#endif
