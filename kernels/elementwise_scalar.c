/* Defines sums, products and quotients element by element. The contracts are fr_add_fn, fr_scale_fn, fr_div_fn,
 * fr_mul_fn and fr_axpy_fn in kernels.h. */
#include "kernels/scalar.h"

void FR_SCALAR(add)(float *y, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] += x[i];
}

void FR_SCALAR(scale)(float *y, size_t n, float factor) {
    for (size_t i = 0; i < n; i++) y[i] *= factor;
}

void FR_SCALAR(div)(float *y, size_t n, float divisor) {
    for (size_t i = 0; i < n; i++) y[i] /= divisor;
}

void FR_SCALAR(mul)(float *y, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] *= x[i];
}

void FR_SCALAR(axpy)(float *y, const float *x, size_t n, float factor) {
    for (size_t i = 0; i < n; i++) y[i] = fmaf(x[i], factor, y[i]);
}
