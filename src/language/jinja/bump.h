/* Gives memory that is taken piece by piece and freed all at once, up to a limit.
 *
 * In: sizes. Out: zeroed pieces, aligned to 16 bytes, which never move. If the limit is reached or the system has no
 * memory, fr_jinja_bump_take gives NULL, and `refused` says which of the two has happened. A zeroed struct is ready for
 * use once its limit is set. */
#ifndef FR_SRC_LANGUAGE_JINJA_BUMP_H
#define FR_SRC_LANGUAGE_JINJA_BUMP_H

#include "forerun.h"

typedef struct fr_jinja_bump_block fr_jinja_bump_block;

typedef struct fr_jinja_bump {
    fr_jinja_bump_block *blocks;
    char *at, *end;      /* the bytes of the newest block that are not taken yet */
    size_t taken, limit; /* taken: bytes of all pieces together; limit: the most bytes that may be taken */
    fr_status refused;   /* FR_INPUT: the limit was reached; FR_MEMORY: the system had no memory */
} fr_jinja_bump;

void *fr_jinja_bump_take(fr_jinja_bump *bump, size_t count, size_t item);
void fr_jinja_bump_free(fr_jinja_bump *bump);

#endif
