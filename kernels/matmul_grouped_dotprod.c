/* Tiles of grouped codes times quantized rows with sdot. Contract fr_matmul_grouped_fn in kernels.h. */
#include "kernels/dot_dotprod.h"

#include "kernels/grouped_neon.h"

FR_GROUPED_KERNELS(dotprod)
