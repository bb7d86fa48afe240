/* Types whose codes of 4 bits are looked up, IQ4 and IQ3, times quantized rows by vpmaddubsw. Contract
 * fr_matmul_block_fn in kernels.h. */
#include "kernels/dot_avx512.h"
#include "quant/block_types.h"

FR_TABLE_TYPES(FR_MATMUL_BLOCK)
