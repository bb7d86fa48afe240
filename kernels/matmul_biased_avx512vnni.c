/* Multiplies tiles of grouped codes with biases by quantized rows, with vpdpbusd. The contract is fr_matmul_grouped_fn
 * in kernels.h. */
#include "kernels/dot_avx512vnni.h"

#define FR_KERNEL_OF(bits, ...) FR_MATMUL_GROUPED(biased_##bits, &biased_##bits)
FR_GROUPED_CODES(FR_KERNEL_OF)
