/* Tiles of grouped codes with biases times quantized rows by vpmaddubsw. Contract
 * fr_matmul_grouped_fn in kernels.h. */
#include "kernels/dot_avx512.h"

#define FR_KERNEL_OF(bits, ...) FR_MATMUL_GROUPED(biased_##bits)
FR_GROUPED_CODES(FR_KERNEL_OF)
