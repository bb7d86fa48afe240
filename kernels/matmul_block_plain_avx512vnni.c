/* Multiplies weights of the plain types (Q4_0 to Q8_0) by quantized rows, with vpdpbusd. The contract is
 * fr_matmul_block_fn in kernels.h. */
#include "kernels/dot_avx512vnni.h"
#include "quant/block_types.h"

FR_PLAIN_TYPES(FR_MATMUL_BLOCK)
