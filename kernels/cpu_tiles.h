/* Tells whether this process may use AMX's tiles for integer products.
 *
 * In: CPUID, XCR0, and the system's permission. It is apart from cpu_x86.c so that tests can put a machine with
 * emulated tiles in its place. */
#ifndef FR_KERNELS_CPU_TILES_H
#define FR_KERNELS_CPU_TILES_H

#include <stdbool.h>

/* Returns true if the processor has the tiles and their integer products, and the system saves them. Where the
 * processor has them it asks for the system's permission, which then holds for all threads of the process. */
bool fr_cpu_has_tiles(void);

#endif
