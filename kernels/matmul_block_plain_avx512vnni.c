/* The plain types, Q4_0 to Q8_0, times quantized rows by vpdpbusd. Contract fr_matmul_block_fn in kernels.h. */
#include "kernels/dot_avx512vnni.h"
#include "quant/block_types.h"

FR_PLAIN_TYPES(FR_MATMUL_BLOCK)
