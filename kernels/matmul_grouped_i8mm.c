/* Tiles of grouped codes times quantized rows with usdot and usmmla. Contract fr_matmul_grouped_fn in kernels.h. */
#include "kernels/dot_i8mm.h"

#include "kernels/grouped_neon.h"

FR_GROUPED_KERNELS(i8mm)
