/* Multiplies tiles of grouped codes with a centre or zero points by quantized rows, with vpdpbusd. The contract is
 * fr_matmul_grouped_fn in kernels.h.
 *
 * With many rows, codes of up to 6 bits are raised while they are unpacked, once for all rows: 2^bits - 1 - zero is
 * added to each code, where zero is the feature's zero point. So every raised code has the offset 2^bits - 1, whatever
 * its feature is. A row's sums then begin with the same correction in all lanes, instead of a product with the zero
 * points. */
#include "kernels/dot_avx512vnni.h"

#define FR_KERNEL_OF(bits, ...) FR_MATMUL_GROUPED(grouped_##bits, bits < 8 ? &raised_##bits : &grouped_##bits)
FR_GROUPED_CODES(FR_KERNEL_OF)
