/* Multiplies tiles of grouped codes by quantized rows, with usdot and usmmla. The contract is fr_matmul_grouped_fn in
 * kernels.h. */
#include "kernels/dot_i8mm.h"

#include "kernels/grouped_neon.h"

FR_GROUPED_KERNELS(i8mm)
