/* Multiplies packed block-quantized weights by quantized rows on ARMv8.0. The contract is fr_matmul_block_fn in
 * kernels.h. */
#include "kernels/dot_neon.h"

FR_BLOCK_KERNELS(neon)
