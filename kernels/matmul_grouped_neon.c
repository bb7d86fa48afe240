/* Multiplies tiles of grouped codes by quantized rows on ARMv8.0. The contract is fr_matmul_grouped_fn in
 * kernels.h. */
#include "kernels/dot_neon.h"

#include "kernels/grouped_neon.h"

FR_GROUPED_KERNELS(neon)
