/* Gives memory that is taken piece by piece and freed all at once, up to a limit.
 *
 * In: sizes. Out: zeroed pieces, aligned to 16 bytes, which never move. A take gives NULL if the limit is reached or
 * the system has no memory; `refused` says which of the two. A zeroed struct with its limit set is ready for use. */
#ifndef FR_SRC_LANGUAGE_JINJA_BUMP_H
#define FR_SRC_LANGUAGE_JINJA_BUMP_H

#include "forerun.h"

typedef struct fr_jinja_bump_block fr_jinja_bump_block;

typedef struct fr_jinja_bump {
    fr_jinja_bump_block *blocks;
    char *at, *end;      /* the bytes of the newest block that are not taken yet */
    size_t taken, limit; /* bytes of all pieces together, and their limit */
    fr_status refused;   /* FR_INPUT: the limit was reached; FR_MEMORY: the system had no memory */
} fr_jinja_bump;

void *fr_jinja_bump_take(fr_jinja_bump *bump, size_t count, size_t item);
void fr_jinja_bump_free(fr_jinja_bump *bump);

#endif
