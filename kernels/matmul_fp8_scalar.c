/* Defines the product of FP8 weights in scaled blocks and rows. The contract is fr_matmul_fp8_fn in kernels.h. */
#include "kernels/scalar.h"
#include "quant/fp8.h"

/* Returns a weight. The sign, exponent and fraction of a normal code are moved to their positions in a float32, and 120
 * is added to the exponent. A denormal code is its fraction times 2^-9. Only the product with the scale rounds. */
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

void FR_SCALAR(matmul_fp8)(const fr_matmul_fp8 *job) {
    for (size_t o = 0; o < job->features; o++) {
        const uint8_t *w = job->w + o * job->w_stride;
        const float *scales = job->scales + (job->first + o) / FR_FP8_BLOCK * job->scale_stride;
        for (size_t r = 0; r < job->rows; r++)
            job->y[r * job->y_stride + o] = product(w, scales, job->x + r * job->x_stride, job->cols);
    }
}
