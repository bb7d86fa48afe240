/* Packed block-quantized weights times quantized rows on ARMv8.0. Contract fr_matmul_block_fn in kernels.h. */
#include "kernels/dot_neon.h"

FR_BLOCK_KERNELS(neon)
