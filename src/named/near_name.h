/* Finds models whose names were written in another case, or without their ORG/ or ollama: prefix.
 *
 * In: a name that no store has in exactly this form, and an environment. Out: the names of the models that may be
 * meant. */
#ifndef FR_SRC_NAMED_NEAR_NAME_H
#define FR_SRC_NAMED_NEAR_NAME_H

#include "forerun.h"

enum { FR_NEAR_NAME = 512, FR_NEAR_NAMES = 1024 };

typedef struct fr_near_name {
    char name[FR_NEAR_NAME];   /* the first model that may be meant; "": there is none */
    char names[FR_NEAR_NAMES]; /* the names, separated by commas, of all models that may be meant */
    size_t count;
    bool exact; /* `names` lists only models that have the requested file or tag */
} fr_near_name;

/* Compares a NAME with the last part of each ORG/NAME and ollama:NAME, and ignores case. A suffix after a colon is
 * kept. */
fr_status fr_named_near(const char *text, const char *const *environment, fr_near_name *near);

#endif
