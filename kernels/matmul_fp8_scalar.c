/* FP8 weights in scaled blocks times rows: the definition. Contract fr_matmul_fp8_fn in kernels.h. */
#include "kernels/scalar.h"
#include "quant/fp8.h"

/* A normal code's fields move into place, its exponent 120 higher; a denormal one counts 2^-9. The product with the
 * scale is the one that rounds. */
static float weight(uint8_t code, float scale) {
    uint32_t magnitude = code & 0x7f;
    float value = magnitude < 8 ? (float)magnitude * 0x1p-9f : float_of((magnitude << 20) + (120u << 23));
    return float_of(bits_of(value) | (uint32_t)(code & 0x80) << 24) * scale;
}

static float product(const uint8_t *w, const float *scales, const float *x, size_t cols) {
    float p[16] = {0};
    for (size_t i = 0; i < cols; i++) p[i % 16] = fmaf(weight(w[i], scales[i / FR_FP8_BLOCK]), x[i], p[i % 16]);
    return sum16(p);
}

void FR_SCALAR(matmul_fp8)(float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows, const uint8_t *w,
                           size_t w_stride, const float *scales, size_t scale_stride, size_t first, size_t cols,
                           size_t features) {
    for (size_t o = 0; o < features; o++)
        for (size_t r = 0; r < rows; r++)
            y[r * y_stride + o] = product(w + o * w_stride, scales + (first + o) / FR_FP8_BLOCK * scale_stride,
                                          x + r * x_stride, cols);
}
