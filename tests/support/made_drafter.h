/* Makes a block drafter with random weights for any target. Almost none of its drafts are accepted, but all of the
 * drafter's code runs.
 *
 * In: a target and a folder. Out: config.json and model.safetensors of a DFlash drafter in this folder. The drafter
 * reads the outputs of the target's first and last layer. The same target gives the same files. */
#ifndef FR_TESTS_MADE_DRAFTER_H
#define FR_TESTS_MADE_DRAFTER_H

#include "forerun.h"

/* Any failure ends the test. */
void fr_made_drafter(const fr_model *target, const char *folder);
void fr_made_drafter_remove(const char *folder);

#endif
