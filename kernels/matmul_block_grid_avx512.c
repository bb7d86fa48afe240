/* Multiplies weights whose 3-bit codes are looked up (IQ2 and IQ1) by quantized rows, with vpmaddubsw. The contract is
 * fr_matmul_block_fn in kernels.h. */
#include "kernels/dot_avx512.h"
#include "quant/block_types.h"

FR_GRID_TYPES(FR_MATMUL_BLOCK)
