/* Defines the product of float weights and rows. The contracts are fr_matmul_fn and fr_gather_fn in kernels.h. */
#include "kernels/scalar.h"

FR_INLINE void matmul(load_fn *load, const fr_matmul *job) {
    for (size_t o = 0; o < job->features; o++) {
        const char *w = (const char *)job->w + o * job->w_stride;
        for (size_t r = 0; r < job->rows; r++)
            job->y[r * job->y_stride + o] = dot(load, w, job->x + r * job->x_stride, job->cols);
    }
}

FR_INLINE void gather(load_fn *load, const fr_gather *job) {
    for (size_t j = 0; j < job->count; j++)
        job->y[j] = dot(load, (const char *)job->w + (size_t)job->ids[j] * job->w_stride, job->x, job->cols);
}

void FR_SCALAR(matmul_f32)(const fr_matmul *job) {
    matmul(load_f32, job);
}

void FR_SCALAR(matmul_f16)(const fr_matmul *job) {
    matmul(load_f16, job);
}

void FR_SCALAR(matmul_bf16)(const fr_matmul *job) {
    matmul(load_bf16, job);
}

void FR_SCALAR(gather_f32)(const fr_gather *job) {
    gather(load_f32, job);
}

void FR_SCALAR(gather_f16)(const fr_gather *job) {
    gather(load_f16, job);
}

void FR_SCALAR(gather_bf16)(const fr_gather *job) {
    gather(load_bf16, job);
}
