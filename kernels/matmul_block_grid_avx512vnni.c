/* Types whose codes of 3 bits are looked up, IQ2 and IQ1, times quantized rows by vpdpbusd. Contract
 * fr_matmul_block_fn in kernels.h. */
#include "kernels/dot_avx512vnni.h"
#include "quant/block_types.h"

FR_GRID_TYPES(FR_MATMUL_BLOCK)
