/* The ranks that models of this process are run by. */
#ifndef FR_SRC_API_RANKS_H
#define FR_SRC_API_RANKS_H

#include "base/ranks.h"

/* NULL: this process alone. */
fr_ranks *fr_job(void);

#endif
