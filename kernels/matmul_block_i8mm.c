/* Packed block-quantized weights times quantized rows with usdot and usmmla. Contract fr_matmul_block_fn in
 * kernels.h. */
#include "kernels/dot_i8mm.h"

FR_BLOCK_KERNELS(i8mm)
