/* Multiplies weights of the K types by quantized rows, with vpmaddubsw. The contract is fr_matmul_block_fn in
 * kernels.h. */
#include "kernels/dot_avx512.h"
#include "quant/block_types.h"

FR_K_TYPES(FR_MATMUL_BLOCK)
