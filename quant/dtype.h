/* What the numbers of a tensor are: name, size, and how a row of them becomes float32.
 *
 * In: raw little-endian bytes of a type. Out: float32 values, exact for every float type here. Block types (Q4_0, ...)
 * will join the table with their block length; callers already size rows by fr_dtype_row_bytes. */
#ifndef FR_QUANT_DTYPE_H
#define FR_QUANT_DTYPE_H

#include "forerun.h"

typedef enum fr_dtype {
    FR_F32,
    FR_F16,
    FR_BF16,
    FR_FLOAT_TYPES, /* count of the types that matmul kernels take */
    FR_I32 = FR_FLOAT_TYPES,
    FR_I64,
    FR_U8,
    FR_DTYPE_COUNT
} fr_dtype;

/* "F32", "BF16", ... as safetensors spells them. */
const char *fr_dtype_name(fr_dtype type);

/* FR_DTYPE_COUNT for a name that is none of them. */
fr_dtype fr_dtype_from_name(const char *name);

/* Bytes of one row of `cols` values. cols is at most 2^48: no overflow. */
size_t fr_dtype_row_bytes(fr_dtype type, size_t cols);

/* Decodes cols values of a float type. source needs no alignment. */
void fr_dtype_decode(fr_dtype type, const void *source, float *target, size_t cols);

/* Exact conversions of one value; NaN stays NaN. */
float fr_f32_from_bf16(uint16_t bits);
float fr_f32_from_f16(uint16_t bits);

/* Rounded to nearest even in integers, denormals kept. */
uint16_t fr_bf16_from_f32(float value);

#endif
