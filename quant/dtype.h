/* Lists the types of a tensor's numbers with their names and sizes, and decodes rows of them to float32.
 *
 * In: raw little-endian bytes of a type. Out: float32 values. The values of the float types are exact. The values of
 * the block types have the same bits as in the gguf Python package. Types that the package lacks have reference
 * implementations elsewhere: llama.cpp for Q1_0 and Q2_0, PrismML's llama.cpp for PQ2_0 and PTQ1_0. A block type stores
 * 32 to 256 neighbouring values of a row together with their scales. A row is a whole number of blocks. */
#ifndef FR_QUANT_DTYPE_H
#define FR_QUANT_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fr_dtype {
    FR_F32,
    FR_F16,
    FR_BF16,
    FR_FLOAT_TYPES, /* number of types that the float matmul kernels take */

    /* Block types that integer matmul kernels read in packed form (quant/packed.h). These have blocks of 32 values: */
    FR_Q8_0 = FR_FLOAT_TYPES,
    FR_Q4_0,
    FR_Q4_1,
    FR_Q5_0,
    FR_Q5_1,
    FR_IQ4_NL,
    FR_MXFP4,
    FR_Q1_0, /* blocks of 128 values: a scale d, and one bit for each value */
    FR_Q2_0, /* blocks of 64 values: a scale d, and two bits for each value */
    /* Blocks of 256 values: */
    FR_Q4_K,
    FR_Q5_K,
    FR_Q6_K,
    FR_IQ4_XS,
    FR_Q2_K,
    FR_Q3_K,
    FR_IQ2_XXS,
    FR_IQ2_XS,
    FR_IQ2_S,
    FR_IQ3_XXS,
    FR_IQ3_S,
    FR_IQ1_S,
    FR_IQ1_M,
    FR_TQ1_0,
    FR_TQ2_0,
    FR_NVFP4,        /* blocks of 64 values, a scale for every 16 */
    FR_PQ2_0,        /* like Q2_0, but in blocks of 128 values */
    FR_PTQ1_0,       /* like TQ1_0, but in blocks of 128 values */
    FR_KERNEL_TYPES, /* number of types whose values are decoded from their own bytes alone */

    FR_F8_E4M3 = FR_KERNEL_TYPES, /* 8-bit codes of weights; their scales are in another tensor (quant/fp8.h) */
    FR_STORED,                    /* weights whose values are decoded from several tensors of a quantized folder
                                   * (formats/storage.h) */

    FR_I32, /* this and the following types are integers */
    FR_I64,
    FR_U8,
    FR_I8,
    FR_U32,
    FR_DTYPE_COUNT
} fr_dtype;

#define FR_MX_BLOCK 32 /* values of a block of MXFP4 */

/* Returns a type's name: "F32", "BF16", ... as safetensors spells them, "Q4_0", "Q4_K", ... as GGUF does. */
const char *fr_dtype_name(fr_dtype type);

/* Returns the type with this name, or FR_DTYPE_COUNT if there is none. */
fr_dtype fr_dtype_from_name(const char *name);

/* Returns the number of values in a block, 1 for types without blocks. A row's length is a multiple of this number. */
size_t fr_dtype_block(fr_dtype type);

/* Returns the bytes of one row of `cols` values. cols is a multiple of the type's block and at most 2^48, so nothing
 * overflows. */
size_t fr_dtype_row_bytes(fr_dtype type, size_t cols);

/* Decodes cols values of a weight type (below FR_KERNEL_TYPES). source needs no alignment. */
void fr_dtype_decode(fr_dtype type, const void *source, float *target, size_t cols);

/* Returns the table of 16 values that a packed code indexes, in units of fr_code_unit. IQ4_NL, IQ4_XS, MXFP4, NVFP4 and
 * IQ1 to IQ3 have such a table. For other types it returns NULL. */
const int8_t *fr_code_values(fr_dtype type);

/* Returns the unit in which the values of a type's table are integers. The unit is a power of two. It is 1 for types
 * whose values are integers. */
float fr_code_unit(fr_dtype type);

/* Each converts one value exactly; NaN stays NaN. */
float fr_f32_from_bf16(uint16_t bits);
float fr_f32_from_f16(uint16_t bits);

/* Each converts one value, rounded to nearest even, using integers only. Denormals are kept. */
uint16_t fr_bf16_from_f32(float value);
uint16_t fr_f16_from_f32(float value);

#endif
