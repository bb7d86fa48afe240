/* Float weights times rows: the definition. Contracts fr_matmul_fn and fr_gather_fn in kernels.h. */
#include "kernels/scalar.h"

FR_INLINE void matmul(load_fn *load, float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows,
                      const void *w, size_t w_stride, size_t cols, size_t features) {
    for (size_t o = 0; o < features; o++)
        for (size_t r = 0; r < rows; r++)
            y[r * y_stride + o] = dot(load, (const char *)w + o * w_stride, x + r * x_stride, cols);
}

FR_INLINE void gather(load_fn *load, float *y, const float *x, const void *w, size_t w_stride, size_t cols,
                      const int32_t *ids, size_t count) {
    for (size_t j = 0; j < count; j++) y[j] = dot(load, (const char *)w + (size_t)ids[j] * w_stride, x, cols);
}

void FR_SCALAR(matmul_f32)(float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows, const void *w,
                           size_t w_stride, size_t cols, size_t features) {
    matmul(load_f32, y, y_stride, x, x_stride, rows, w, w_stride, cols, features);
}

void FR_SCALAR(matmul_f16)(float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows, const void *w,
                           size_t w_stride, size_t cols, size_t features) {
    matmul(load_f16, y, y_stride, x, x_stride, rows, w, w_stride, cols, features);
}

void FR_SCALAR(matmul_bf16)(float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows, const void *w,
                            size_t w_stride, size_t cols, size_t features) {
    matmul(load_bf16, y, y_stride, x, x_stride, rows, w, w_stride, cols, features);
}

void FR_SCALAR(gather_f32)(float *y, const float *x, const void *w, size_t w_stride, size_t cols, const int32_t *ids,
                           size_t count) {
    gather(load_f32, y, x, w, w_stride, cols, ids, count);
}

void FR_SCALAR(gather_f16)(float *y, const float *x, const void *w, size_t w_stride, size_t cols, const int32_t *ids,
                           size_t count) {
    gather(load_f16, y, x, w, w_stride, cols, ids, count);
}

void FR_SCALAR(gather_bf16)(float *y, const float *x, const void *w, size_t w_stride, size_t cols, const int32_t *ids,
                            size_t count) {
    gather(load_bf16, y, x, w, w_stride, cols, ids, count);
}
