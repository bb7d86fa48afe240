/* Packed block-quantized weights times quantized rows with sdot. Contract fr_matmul_block_fn in kernels.h. */
#include "kernels/dot_dotprod.h"

FR_BLOCK_KERNELS(dotprod)
