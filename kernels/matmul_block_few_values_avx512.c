/* Types with at most 16 values, floats of 4 bits and codes of 1 or 2 bits, times quantized rows by vpmaddubsw.
 * Contract fr_matmul_block_fn in kernels.h. */
#include "kernels/dot_avx512.h"
#include "quant/block_types.h"

FR_FEW_VALUES_TYPES(FR_MATMUL_BLOCK)
