/* Gives access to the job, which is the group of processes (ranks) that run this process's models together. */
#ifndef FR_SRC_API_RANKS_H
#define FR_SRC_API_RANKS_H

#include "base/options.h"
#include "base/ranks.h"

/* Gives the job's ranks; NULL if this process runs alone. */
fr_ranks *fr_job(void);

/* fr_job_plan says how ranks will split the next model. fr_job_note_split records how the last model was split: by
 * layers or not. */
fr_rank_plan fr_job_plan(void);
void fr_job_note_split(bool layers);

/* Fails if a rank has other options than rank 0. Options that change only the speed of a rank may differ. */
fr_status fr_ranks_agree_options(fr_ranks *ranks, const fr_options *options);

#endif
