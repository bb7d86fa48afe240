/* Makes a block drafter for any target, of random weights: its drafts are hardly ever accepted, but all of its code
 * runs.
 *
 * In: a target, a folder. Out: config.json and model.safetensors of a DFlash drafter there, which sees the outputs of
 * the target's first and last layer. The same target gives the same files. */
#ifndef FR_TESTS_MADE_DRAFTER_H
#define FR_TESTS_MADE_DRAFTER_H

#include "forerun.h"

/* Ends the test on any failure. */
void fr_made_drafter(const fr_model *target, const char *folder);
void fr_made_drafter_remove(const char *folder);

#endif
