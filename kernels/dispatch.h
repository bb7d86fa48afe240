/* Gives the table of kernels for an instruction-set word.
 *
 * This is not in kernels.h, so that a change of include/forerun.h does not recompile the kernels. */
#ifndef FR_KERNELS_DISPATCH_H
#define FR_KERNELS_DISPATCH_H

#include "forerun.h"
#include "kernels/kernels.h"

/* Gives the kernels of an instruction set. It starts with the scalar kernels. Level by level, up to that of the word,
 * it replaces them with the better ones that this build has. word NULL: the best level that this machine runs, except
 * AMX, which must be named (dispatch.c says why). The result is FR_USAGE for an unknown word, and FR_MACHINE for one
 * that this machine lacks. The table is static and immutable. */
fr_status fr_kernels_select(const char *word, const fr_kernels **kernels);

#endif
