/* Decodes FP8 codes to float32: see fp8.h. */
#include "quant/fp8.h"

#include <math.h>
#include <string.h>

size_t fr_fp8_scales(const uint64_t *shape, uint32_t dims) {
    size_t count = fr_fp8_blocks(shape[dims - 2]) * fr_fp8_blocks(shape[dims - 1]);
    for (uint32_t i = 0; i + 2 < dims; i++) count *= shape[i];
    return count;
}

float fr_fp8_value(uint8_t code) {
    int exponent = code >> 3 & 15, fraction = code & 7;
    float magnitude = exponent ? ldexpf((float)(8 + fraction), exponent - 10) : ldexpf((float)fraction, -9);
    if (exponent == 15 && fraction == 7) magnitude = NAN;
    return code & 0x80 ? -magnitude : magnitude;
}

void fr_fp8_decode(const uint8_t *codes, const float *scales, float *row, size_t cols) {
    for (size_t i = 0; i < cols; i++) row[i] = fr_fp8_value(codes[i]) * scales[i / FR_FP8_BLOCK];
}

/* Finds the first NaN, 8 codes at a time. NaN is the code whose low seven bits are all 1. Adding 1 to these seven bits
 * then carries into the position of the sign. */
size_t fr_fp8_find_nan(const uint8_t *codes, size_t n) {
    const uint64_t ones = 0x0101010101010101u;
    size_t i = 0;
    for (uint64_t eight, bad = 0; i + 8 <= n; i += 8) {
        memcpy(&eight, codes + i, sizeof eight);
        bad = ((eight & 0x7f * ones) + ones) & 0x80 * ones;
        if (bad) break;
    }
    while (i < n && (codes[i] & 0x7f) != 0x7f) i++;
    return i;
}
