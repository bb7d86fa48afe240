/* Multiplies weights of types with at most 16 values (floats of 4 bits, codes of 1 or 2 bits) by quantized rows, with
 * vpmaddubsw. The contract is fr_matmul_block_fn in kernels.h. */
#include "kernels/dot_avx512.h"
#include "quant/block_types.h"

FR_FEW_VALUES_TYPES(FR_MATMUL_BLOCK)
