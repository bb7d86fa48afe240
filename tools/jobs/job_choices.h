/* Several choices of one request: "n", of which "best_of" generates more and shows the likeliest.
 *
 * In: members of a body; jobs that have ended. Out: how many choices are generated and shown, and each as a JSON value.
 * A server runs the choices beside each other, a batch one after the other in a line's place: their seeds are the same,
 * and so are the choices. */
#ifndef FR_TOOLS_JOBS_JOB_CHOICES_H
#define FR_TOOLS_JOBS_JOB_CHOICES_H

#include "tools/jobs/job_choice.h"

/* Choices that one request may have. */
#define FR_CHOICES_MAX 128

/* Compares "best_of" with "n" once all members were taken. streams: the answer is a stream, which can't wait for the
 * best. False: refused. */
bool fr_job_settle_choices(fr_job *job, bool streams);

/* The job draws with its seed and `by` more; behind the largest seed comes the least. False: refused. */
bool fr_job_move_seed(fr_job *job, size_t by);

/* A choice as a whole answer has it, with its prompt in front where that is echoed (job_echo.h). *likely: the mean
 * log-probability of its ids, where they have any. */
json_t *fr_job_whole_choice(fr_job *job, const fr_reply *echoed, size_t index, double *likely);

/* Gives which of so many choices is the nth likeliest, the earlier one of equals. */
size_t fr_job_nth_likeliest(const double *likely, size_t count, size_t nth);

/* Of a batch: keeps the choice that has ended and begins the next one. False: that was the last, or the job has come to
 * its end otherwise. */
bool fr_job_next_choice(fr_job *job);

/* Of a batch: all choices that are shown, with the one that has ended last, and the ids of all that were generated. */
json_t *fr_job_choices(fr_job *job, size_t *ids);

/* Figures of all choices of a batch's line. */
fr_figures fr_job_choices_figures(const fr_job *job);

void fr_job_drop_choices(fr_job *job);

#endif
