/* Tells whether this machine has AMX's tiles for integer products, and asks the system for them.
 *
 * In: CPUID, XCR0 and the system. The two functions are in a file of their own, separate from cpu_x86.c, so that tests
 * can replace them by functions of a machine with emulated tiles. */
#ifndef FR_KERNELS_CPU_TILES_H
#define FR_KERNELS_CPU_TILES_H

#include <stdbool.h>

/* Returns true if the processor has the tiles and their integer products, and the system can save them. */
bool fr_cpu_has_tiles(void);

/* Asks the system to let this process use the tiles, and returns false if the system refuses. The permission holds for
 * all threads. After it the system needs larger signal stacks (sigaltstack), so ask only if tiles will be used. */
bool fr_cpu_ask_for_tiles(void);

#endif
