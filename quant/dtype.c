/* Holds the table of number types, and converts single values and rows.
 *
 * In: little-endian bytes. Out: float32. Where the conversion of a single value rounds or meets a denormal, it uses
 * integer arithmetic, so it does not depend on the caller's floating-point environment. Decoding a block multiplies
 * floats, in the caller's environment. */
#include "quant/turbo.h"

static const struct {
    const char *name;
    uint16_t block, bytes; /* block: number of values in a block; bytes: size of a block */
    fr_decode_fn *decode;  /* NULL for types without blocks */
} types[FR_TYPES_END] = {
    [FR_F32] = {"F32", 1, 4, NULL},
    [FR_F16] = {"F16", 1, 2, NULL},
    [FR_BF16] = {"BF16", 1, 2, NULL},
    [FR_Q8_0] = {"Q8_0", 32, 34, fr_decode_q8_0},
    [FR_Q4_0] = {"Q4_0", 32, 18, fr_decode_q4_0},
    [FR_Q4_1] = {"Q4_1", 32, 20, fr_decode_q4_1},
    [FR_Q5_0] = {"Q5_0", 32, 22, fr_decode_q5_0},
    [FR_Q5_1] = {"Q5_1", 32, 24, fr_decode_q5_1},
    [FR_IQ4_NL] = {"IQ4_NL", 32, 18, fr_decode_iq4_nl},
    [FR_MXFP4] = {"MXFP4", 32, 17, fr_decode_mxfp4},
    [FR_Q4_K] = {"Q4_K", 256, 144, fr_decode_q4_k},
    [FR_Q5_K] = {"Q5_K", 256, 176, fr_decode_q5_k},
    [FR_Q6_K] = {"Q6_K", 256, 210, fr_decode_q6_k},
    [FR_IQ4_XS] = {"IQ4_XS", 256, 136, fr_decode_iq4_xs},
    [FR_Q2_K] = {"Q2_K", 256, 84, fr_decode_q2_k},
    [FR_Q3_K] = {"Q3_K", 256, 110, fr_decode_q3_k},
    [FR_IQ1_S] = {"IQ1_S", 256, 50, fr_decode_iq1_s},
    [FR_IQ1_M] = {"IQ1_M", 256, 56, fr_decode_iq1_m},
    [FR_IQ2_XXS] = {"IQ2_XXS", 256, 66, fr_decode_iq2_xxs},
    [FR_IQ2_XS] = {"IQ2_XS", 256, 74, fr_decode_iq2_xs},
    [FR_IQ2_S] = {"IQ2_S", 256, 82, fr_decode_iq2_s},
    [FR_IQ3_XXS] = {"IQ3_XXS", 256, 98, fr_decode_iq3_xxs},
    [FR_IQ3_S] = {"IQ3_S", 256, 110, fr_decode_iq3_s},
    [FR_TQ1_0] = {"TQ1_0", 256, 54, fr_decode_tq1_0},
    [FR_TQ2_0] = {"TQ2_0", 256, 66, fr_decode_tq2_0},
    [FR_NVFP4] = {"NVFP4", 64, 36, fr_decode_nvfp4},
    [FR_Q1_0] = {"Q1_0", 128, 18, fr_decode_q1_0},
    [FR_Q2_0] = {"Q2_0", 64, 18, fr_decode_q2_0},
    [FR_PQ2_0] = {"PQ2_0", 128, 34, fr_decode_pq2_0},
    [FR_PTQ1_0] = {"PTQ1_0", 128, 28, fr_decode_ptq1_0},
    [FR_F8_E4M3] = {"F8_E4M3", 1, 1, NULL},
    [FR_STORED] = {"stored", 1, 0, NULL}, /* the values come from several tensors of other types */
    [FR_I32] = {"I32", 1, 4, NULL},
    [FR_I64] = {"I64", 1, 8, NULL},
    [FR_U8] = {"U8", 1, 1, NULL},
    [FR_I8] = {"I8", 1, 1, NULL},
    [FR_U32] = {"U32", 1, 4, NULL},
    [FR_DTYPE_COUNT] = {"unknown", 1, 0, NULL},
    [FR_TURBO4] = {"TURBO4", 32, 18, fr_decode_turbo4},
    [FR_TURBO3] = {"TURBO3", 32, 14, fr_decode_turbo3},
};

const char *fr_dtype_name(fr_dtype type) {
    return types[(unsigned)type < FR_TYPES_END ? type : FR_DTYPE_COUNT].name;
}

fr_dtype fr_dtype_from_name(const char *name) {
    fr_dtype type = FR_F32;
    while (type < FR_DTYPE_COUNT && (type == FR_STORED || strcmp(name, types[type].name) != 0)) type++;
    return type;
}

size_t fr_dtype_block(fr_dtype type) {
    return types[(unsigned)type < FR_TYPES_END ? type : FR_DTYPE_COUNT].block;
}

size_t fr_dtype_row_bytes(fr_dtype type, size_t cols) {
    if ((unsigned)type >= FR_TYPES_END) return 0;
    return cols / types[type].block * types[type].bytes;
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
    if (nan)
        return (uint16_t)(bits >> 16 | 0x40); /* A NaN may have all the bits of its fraction in the half that is cut
                                               * off, so this sets the quiet bit to keep it a NaN. */
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* Moves the sign, exponent and fraction to their positions in a float16, and rounds off the 13 bits that are too many.
 * Values below 2^-14 become denormals: the smaller the value, the more bits are rounded off. A denormal has no implied
 * leading 1, so the leading 1 is stored with the fraction. */
uint16_t fr_f16_from_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF, exponent = size >> 23, step = 13;
    if (size > 0x7F800000) return (uint16_t)(sign | 0x7E00 | (size >> 13 & 0x3FF)); /* NaN becomes a quiet NaN */
    if (size >= 0x47800000) return (uint16_t)(sign | 0x7C00);                       /* 2^16 and more */
    if (size < 0x33000000) return (uint16_t)sign;                                   /* less than half of 2^-24 */
    if (size >= 0x38800000) {
        size -= (127 - 15) << 23;
    } else {
        size = (size & 0x7FFFFF) | 0x800000;
        step = 126 - exponent;
    }
    return (uint16_t)(sign | (size + (1u << (step - 1)) - 1 + (size >> step & 1)) >> step);
}

static void decode_floats(fr_dtype type, const uint8_t *source, float *target, size_t cols) {
    for (size_t i = 0; i < cols; i++) {
        uint16_t bits = (uint16_t)load_u16(source + 2 * i);
        target[i] = type == FR_F16 ? fr_f32_from_f16(bits) : fr_f32_from_bf16(bits);
    }
}

void fr_dtype_decode(fr_dtype type, const void *source, float *target, size_t cols) {
    if (cols == 0) return; /* an empty row may be NULL */
    if (type == FR_F32) {
        memcpy(target, source, cols * sizeof *target);
    } else if (type < FR_FLOAT_TYPES) {
        decode_floats(type, source, target, cols);
    } else {
        const uint8_t *block = source;
        for (size_t col = 0; col < cols; col += types[type].block, block += types[type].bytes)
            types[type].decode(block, target + col);
    }
}
