/* Models whose names were written in another case, or without whose they are.
 *
 * In: a name that no store has as it stands, an environment. Out: the name that a store has, or all that it could
 * be. */
#ifndef FR_SRC_NAMED_NEAR_NAME_H
#define FR_SRC_NAMED_NEAR_NAME_H

#include "forerun.h"

enum { FR_NEAR_NAME = 512, FR_NEAR_NAMES = 1024 };

typedef struct fr_near_name {
    char name[FR_NEAR_NAME];    /* of the first that it could be; "": it could be none */
    char names[FR_NEAR_NAMES];  /* all of them, with commas between */
    size_t count;
    bool exact; /* they have the file or tag that was asked for */
} fr_near_name;

/* NAME is ORG/NAME's, and ollama's without its prefix. What stands behind a colon goes on with the name. */
fr_status fr_named_near(const char *text, const char *const *environment, fr_near_name *near);

#endif
