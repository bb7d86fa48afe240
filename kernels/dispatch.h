/* The table of kernels of an instruction-set word.
 *
 * Apart from kernels.h, which no kernel's file has to be compiled anew for when include/forerun.h changes. */
#ifndef FR_KERNELS_DISPATCH_H
#define FR_KERNELS_DISPATCH_H

#include "forerun.h"
#include "kernels/kernels.h"

/* scalar, overlaid upwards with each level at or below the word that this build has. NULL (the default) asks for the
 * best this machine runs. FR_USAGE for an unknown word, FR_MACHINE for one that this machine lacks. The table is static
 * and immutable. */
fr_status fr_kernels_select(const char *word, const fr_kernels **kernels);

#endif
