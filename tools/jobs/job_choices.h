/* Handles several choices of one request. "n" is the number of choices that the answer shows. If "best_of" is larger,
 * that many choices are generated, and the answer shows the likeliest ones.
 *
 * In: members of a body; jobs that have ended. Out: the number of choices to generate and to show, and each choice as a
 * JSON value. A server runs the choices at the same time. A batch runs them one after the other in the slot of the
 * line. The texts are the same, because a choice has the same seed in both. */
#ifndef FR_TOOLS_JOBS_JOB_CHOICES_H
#define FR_TOOLS_JOBS_JOB_CHOICES_H

#include "tools/jobs/job_choice.h"

/* The most choices that one request may have. */
#define FR_CHOICES_MAX 128

/* Decides how many choices are generated. Call it after all members were read. streams: the answer is a stream. A
 * stream can't have best_of, because it can't wait until the best choice is known. Returns false if the request is
 * refused. */
bool fr_job_settle_choices(fr_job *job, bool streams);

/* Adds `by` to the job's seed. After the largest seed comes 0. Returns false if the request is refused. */
bool fr_job_move_seed(fr_job *job, size_t by);

/* Makes a choice for an answer that is not a stream. If the request has "echo", the prompt comes before the text
 * (job_echo.h). *likely: the mean log-probability of the choice's ids, if log-probabilities are known. */
json_t *fr_job_whole_choice(fr_job *job, const fr_reply *echoed, size_t index, double *likely);

/* Gives the index of the choice that has `nth` likelier choices before it. If two choices are equally likely, the
 * earlier one counts as likelier. */
size_t fr_job_nth_likeliest(const double *likely, size_t count, size_t nth);

/* Stores a choice of a batch's line that has ended, before the next choice begins. Returns false if there is no next
 * choice, or if the job has failed or was interrupted. */
bool fr_job_keep_choice(fr_job *job);

/* Gives the choices that the answer to a batch's line shows, including the choice that has just ended. *ids: the number
 * of ids of all choices, shown or not. */
json_t *fr_job_choices(fr_job *job, size_t *ids);

/* Gives the sum of the figures of a line's choices. */
fr_figures fr_job_choices_figures(const fr_job *job);

void fr_job_drop_choices(fr_job *job);

#endif
