/* Gives the table of kernels for an instruction-set word.
 *
 * This is apart from kernels.h so that a change of include/forerun.h does not recompile the kernels. */
#ifndef FR_KERNELS_DISPATCH_H
#define FR_KERNELS_DISPATCH_H

#include "forerun.h"
#include "kernels/kernels.h"

/* Starts with the scalar kernels, and replaces them level by level with the better ones that this build has, up to the
 * level of the word. NULL (the default) asks for the best level that this machine runs. Returns FR_USAGE for an
 * unknown word, FR_MACHINE for one that this machine lacks. The table is static and immutable. */
fr_status fr_kernels_select(const char *word, const fr_kernels **kernels);

#endif
