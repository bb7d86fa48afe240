/* The types that are written, and rows of them. */
#include "quant/encode.h"

#include <string.h>

static fr_encode_fn *const encoders[FR_DTYPE_COUNT] = {
    [FR_Q8_0] = fr_encode_q8_0, [FR_Q4_0] = fr_encode_q4_0, [FR_Q4_1] = fr_encode_q4_1,
    [FR_Q5_0] = fr_encode_q5_0, [FR_Q5_1] = fr_encode_q5_1, [FR_IQ4_NL] = fr_encode_iq4_nl,
    [FR_Q4_K] = fr_encode_q4_k, [FR_Q5_K] = fr_encode_q5_k, [FR_Q6_K] = fr_encode_q6_k,
};

bool fr_encodes(fr_dtype type) {
    return type < FR_FLOAT_TYPES || (type < FR_DTYPE_COUNT && encoders[type] != NULL);
}

float fr_encode_limit(fr_dtype type) {
    switch (type) {
    case FR_F32: return 0x1.fffffep127f;
    case FR_BF16: return 0x1.fep127f;
    default: return 65504;
    }
}

static void encode_float(fr_dtype type, float value, uint8_t *bytes) {
    float limit = fr_encode_limit(type);
    value = value > limit ? limit : value < -limit ? -limit : value;
    uint16_t bits = type == FR_F16 ? fr_f16_from_f32(value) : fr_bf16_from_f32(value);
    bytes[0] = (uint8_t)bits;
    bytes[1] = (uint8_t)(bits >> 8);
}

void fr_dtype_encode(fr_dtype type, const float *source, void *target, size_t cols) {
    uint8_t *bytes = target;
    if (cols == 0) return;
    if (type == FR_F32) {
        memcpy(target, source, cols * sizeof *source);
    } else if (type < FR_FLOAT_TYPES) {
        for (size_t i = 0; i < cols; i++) encode_float(type, source[i], bytes + 2 * i);
    } else {
        size_t block = fr_dtype_block(type), size = fr_dtype_row_bytes(type, block);
        for (size_t i = 0; i < cols / block; i++) encoders[type](source + i * block, bytes + i * size);
    }
}
