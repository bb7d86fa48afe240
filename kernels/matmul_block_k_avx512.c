/* The K types times quantized rows by vpmaddubsw. Contract fr_matmul_block_fn in kernels.h. */
#include "kernels/dot_avx512.h"
#include "quant/block_types.h"

FR_K_TYPES(FR_MATMUL_BLOCK)
