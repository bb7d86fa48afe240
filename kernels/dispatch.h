/* Gives the table of kernels for an instruction-set word.
 *
 * The function is not declared in kernels.h, so that a change of include/forerun.h does not recompile the kernels. */
#ifndef FR_KERNELS_DISPATCH_H
#define FR_KERNELS_DISPATCH_H

#include "forerun.h"
#include "kernels/kernels.h"

/* Gives the kernels of an instruction set, which `word` names. The table begins with the scalar kernels. Then, for each
 * level up to the named one, the kernels of that level replace slower ones. If word is NULL, the level is the best one
 * that this machine runs, including AMX only if the system permits it. Fails with FR_USAGE for an unknown word, and
 * with FR_MACHINE for a level that this machine lacks or that the system does not permit. The table is static and
 * immutable. */
fr_status fr_kernels_select(const char *word, const fr_kernels **kernels);

#endif
