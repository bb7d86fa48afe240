/* Makes a block drafter with random weights for any target. Its drafts are hardly ever accepted, but all of its code
 * runs.
 *
 * In: a target and a folder. Out: config.json and model.safetensors of a DFlash drafter in the folder. The drafter
 * sees the outputs of the first and the last layer of the target. The same target gives the same files. */
#ifndef FR_TESTS_MADE_DRAFTER_H
#define FR_TESTS_MADE_DRAFTER_H

#include "forerun.h"

/* Ends the test at any failure. */
void fr_made_drafter(const fr_model *target, const char *folder);
void fr_made_drafter_remove(const char *folder);

#endif
