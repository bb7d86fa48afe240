/* Multiplies tiles of grouped codes with a centre or zero points by quantized rows, with vpmaddubsw. The contract is
 * fr_matmul_grouped_fn in kernels.h. */
#include "kernels/dot_avx512.h"

#define FR_KERNEL_OF(bits, ...) FR_MATMUL_GROUPED(grouped_##bits)
FR_GROUPED_CODES(FR_KERNEL_OF)
