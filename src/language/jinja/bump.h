/* Memory that is taken piece by piece and given back all at once, up to a limit.
 *
 * In: sizes. Out: zeroed pieces, aligned to 16 bytes, which never move. A piece that can't be had, because of the limit
 * or of the system, is NULL; `refused` says which. A zeroed struct with its limit set is an empty one. */
#ifndef FR_SRC_LANGUAGE_JINJA_BUMP_H
#define FR_SRC_LANGUAGE_JINJA_BUMP_H

#include "forerun.h"

typedef struct fr_jinja_bump_block fr_jinja_bump_block;

typedef struct fr_jinja_bump {
    fr_jinja_bump_block *blocks;
    char *at, *end;      /* of the newest block, what is left */
    size_t taken, limit; /* bytes, all blocks together */
    fr_status refused;   /* FR_INPUT: the limit; FR_MEMORY: the system */
} fr_jinja_bump;

void *fr_jinja_bump_take(fr_jinja_bump *bump, size_t count, size_t item);
void fr_jinja_bump_free(fr_jinja_bump *bump);

#endif
