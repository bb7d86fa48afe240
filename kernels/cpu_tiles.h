/* Tells whether this machine has AMX's tiles for integer products, and asks the system for them.
 *
 * In: CPUID, XCR0 and the system. The two functions are apart from cpu_x86.c so that tests can put a machine with
 * emulated tiles in their place. */
#ifndef FR_KERNELS_CPU_TILES_H
#define FR_KERNELS_CPU_TILES_H

#include <stdbool.h>

/* Returns true if the processor has the tiles and their integer products, and the system can save them. */
bool fr_cpu_has_tiles(void);

/* Asks the system to let this process use the tiles, and returns false if it refuses. The permission holds for all
 * threads. From then on the system wants larger stacks for signals (sigaltstack), so call it only if tiles will be
 * used. */
bool fr_cpu_ask_for_tiles(void);

#endif
