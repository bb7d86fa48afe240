/* Multiplies packed block-quantized weights by quantized rows, with sdot. The contract is fr_matmul_block_fn in
 * kernels.h. */
#include "kernels/dot_dotprod.h"

FR_BLOCK_KERNELS(dotprod)
