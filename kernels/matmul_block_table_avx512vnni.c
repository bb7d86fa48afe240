/* Multiplies weights whose 4-bit codes are looked up (IQ4 and IQ3) by quantized rows, with vpdpbusd. The contract is
 * fr_matmul_block_fn in kernels.h. */
#include "kernels/dot_avx512vnni.h"
#include "quant/block_types.h"

FR_TABLE_TYPES(FR_MATMUL_BLOCK)
