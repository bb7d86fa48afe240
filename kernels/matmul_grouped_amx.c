/* Multiplies tiles of grouped codes by quantized rows with AMX's tiles: block_amx.h has the walk. Calls with few rows
 * use vpdpbusd. 8-bit codes with zero points use vpdpbusd too, because code - zero does not fit a signed byte. The
 * contract is fr_matmul_grouped_fn in kernels.h. */
#include "kernels/amx_kernels.h"
#include "kernels/block_amx.h"

/* Defines the kernel `name`. Its tiles are unpacked by the format `codes`. */
#define FR_MATMUL_GROUPED(name, codes)                                                                   \
    static void unpack_##name(weights_part *to, const product *job, const uint8_t *bytes, size_t blocks, \
                              size_t runs) {                                                             \
        unpack_part(&codes, to, job, bytes, blocks, runs);                                               \
    }                                                                                                    \
    void fr_matmul_##name##_amx(const fr_matmul_grouped *job) {                                          \
        const fr_grouping *form = &job->tiles->form;                                                     \
        if (job->rows < ROWS_LEAST || (form->bits == 8 && form->offset == FR_OFFSET_ZERO))               \
            fr_matmul_##name##_avx512vnni(job);                                                          \
        else                                                                                             \
            matmul_grouped_by_tiles(&codes, unpack_##name, job);                                         \
    }

/* Unpacking raises codes by 2^bits - 1 - zero, where zero is the feature's zero point. Then the offset 2^bits - 1,
 * which is the same for all outputs, is subtracted. The result is code - zero. */
#define FR_KERNELS_OF(bits, ...)                     \
    FR_MATMUL_GROUPED(grouped_##bits, raised_##bits) \
    FR_MATMUL_GROUPED(biased_##bits, biased_##bits)
FR_GROUPED_CODES(FR_KERNELS_OF)
