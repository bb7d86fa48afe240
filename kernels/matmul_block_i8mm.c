/* Multiplies packed block-quantized weights by quantized rows, with usdot and usmmla. The contract is
 * fr_matmul_block_fn in kernels.h. */
#include "kernels/dot_i8mm.h"

FR_BLOCK_KERNELS(i8mm)
