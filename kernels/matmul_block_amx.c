/* Multiplies packed block-quantized weights by quantized rows with AMX's tiles: block_amx.h has the walk. Calls with
 * few rows use vpdpbusd. The contract is fr_matmul_block_fn in kernels.h. */
#include "kernels/amx_kernels.h"
#include "kernels/block_amx.h"
#include "quant/block_types.h"

/* Defines the kernel of a type, with a function that unpacks its tiles. */
#define FR_MATMUL_BLOCK(id, name, ...)                                                                   \
    static void unpack_##name(weights_part *to, const product *job, const uint8_t *bytes, size_t blocks, \
                              size_t runs) {                                                             \
        unpack_part(&name, to, job, bytes, blocks, runs);                                                \
    }                                                                                                    \
    void fr_matmul_##name##_amx(const fr_matmul_block *job) {                                            \
        if (job->rows < ROWS_LEAST)                                                                      \
            fr_matmul_##name##_avx512vnni(job);                                                          \
        else                                                                                             \
            matmul_block_by_tiles(&name, unpack_##name, job);                                            \
    }

FR_WHOLE_TYPES(FR_MATMUL_BLOCK)
