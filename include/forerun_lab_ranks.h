/* Of ranks what the command asks beside forerun.h: the library's own, no part of the interface. */
#ifndef FORERUN_LAB_RANKS_H
#define FORERUN_LAB_RANKS_H

#include "forerun.h"

/* From here on a rank may be silent for so many seconds. */
void fr_lab_ranks_timeout(int seconds);

/* What this rank has sent the others so far, and the seconds that it waited for them. */
void fr_lab_ranks_sent(uint64_t *messages, uint64_t *bytes, double *seconds);

#endif
