/* Multiplies tiles of grouped codes by quantized rows, with sdot. The contract is fr_matmul_grouped_fn in
 * kernels.h. */
#include "kernels/dot_dotprod.h"

#include "kernels/grouped_neon.h"

FR_GROUPED_KERNELS(dotprod)
