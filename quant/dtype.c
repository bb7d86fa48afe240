/* The table of number types, and their exact conversions to float32.
 *
 * In: little-endian bytes. Out: float32. Everything that rounds or could meet a denormal is done in integers, so that
 * the caller's floating-point environment has no say. */
#include "quant/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    uint8_t bytes;
} types[FR_DTYPE_COUNT] = {
    [FR_F32] = {"F32", 4}, [FR_F16] = {"F16", 2}, [FR_BF16] = {"BF16", 2},
    [FR_I32] = {"I32", 4}, [FR_I64] = {"I64", 8}, [FR_U8] = {"U8", 1},
};

const char *fr_dtype_name(fr_dtype type) {
    return type < FR_DTYPE_COUNT ? types[type].name : "unknown";
}

fr_dtype fr_dtype_from_name(const char *name) {
    fr_dtype type = FR_F32;
    while (type < FR_DTYPE_COUNT && strcmp(name, types[type].name) != 0) type++;
    return type;
}

size_t fr_dtype_row_bytes(fr_dtype type, size_t cols) {
    return type < FR_DTYPE_COUNT ? cols * types[type].bytes : 0;
}

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float fr_f32_from_bf16(uint16_t bits) {
    return from_bits((uint32_t)bits << 16);
}

float fr_f32_from_f16(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3FF;
    if (exponent == 31) return from_bits(sign | 0x7F800000 | fraction << 13);
    if (exponent > 0) return from_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
    float magnitude = (float)fraction * 0x1p-24f; /* a float16 denormal is a normal float32 */
    return sign ? -magnitude : magnitude;
}

uint16_t fr_bf16_from_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bool nan = (bits & 0x7FFFFFFF) > 0x7F800000;
    if (nan) return (uint16_t)(bits >> 16 | 0x40); /* its fraction may lie in the lower half alone */
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

void fr_dtype_decode(fr_dtype type, const void *source, float *target, size_t cols) {
    const uint8_t *bytes = source;
    if (type == FR_F32) {
        if (cols > 0) memcpy(target, source, cols * sizeof *target); /* an empty row may be NULL */
        return;
    }
    for (size_t i = 0; i < cols; i++) {
        uint16_t bits;
        memcpy(&bits, bytes + 2 * i, sizeof bits);
        target[i] = type == FR_F16 ? fr_f32_from_f16(bits) : fr_f32_from_bf16(bits);
    }
}
