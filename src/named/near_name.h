/* Finds models whose names were written in another case, or without their ORG/ or ollama: prefix.
 *
 * In: a name that no store has exactly, and an environment. Out: the name that a store has, or all that it may
 * mean. */
#ifndef FR_SRC_NAMED_NEAR_NAME_H
#define FR_SRC_NAMED_NEAR_NAME_H

#include "forerun.h"

enum { FR_NEAR_NAME = 512, FR_NEAR_NAMES = 1024 };

typedef struct fr_near_name {
    char name[FR_NEAR_NAME];   /* the first model that the name may mean; "": none */
    char names[FR_NEAR_NAMES]; /* the names of all models that the name may mean, separated by commas */
    size_t count;
    bool exact; /* `names` lists only models that have the file or tag that was asked for */
} fr_near_name;

/* Compares a NAME with each ORG/NAME and ollama:NAME by its last part, ignoring case. A suffix after a colon is
 * kept. */
fr_status fr_named_near(const char *text, const char *const *environment, fr_near_name *near);

#endif
