/* Tiles of grouped codes times quantized rows on ARMv8.0. Contract fr_matmul_grouped_fn in kernels.h. */
#include "kernels/dot_neon.h"

#include "kernels/grouped_neon.h"

FR_GROUPED_KERNELS(neon)
