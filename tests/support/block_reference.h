/* Computes one output of a product with block-quantized weights, from a row of weights in the layout of a GGUF file. It
 * must give what a kernel of type fr_matmul_block_fn gives (kernels/kernels.h). It uses nothing of quant/packed.c or
 * quant/decode_*.c except the tables of fr_code_values, so that errors in those files are found.
 *
 * In: the bytes of a row of weights, and a row of quantized activations. `cols` is a multiple of the type's block size.
 * Out: *y. */
#ifndef FR_TESTS_BLOCK_REFERENCE_H
#define FR_TESTS_BLOCK_REFERENCE_H

#include "kernels/kernels.h"

/* The type must be a block type that has a kernel: FR_FLOAT_TYPES <= type < FR_KERNEL_TYPES. */
void fr_block_reference(float *y, fr_dtype type, const uint8_t *row, const fr_qblock *x, size_t cols);

#endif
