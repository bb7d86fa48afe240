/* Defines the Walsh-Hadamard transform of blocks of a row. The contract is fr_hadamard_fn in kernels.h. */
#include "kernels/scalar.h"

void FR_SCALAR(hadamard)(float *y, const float *x, const float *signs, size_t block, size_t n) {
    float factor = (float)(1.0 / sqrt((double)block));
    for (size_t i = 0; i < n; i++) y[i] = signs ? x[i] * signs[i] : x[i];
    for (size_t h = 1; h < block; h *= 2)
        for (size_t from = 0; from < n; from += 2 * h)
            for (size_t i = from; i < from + h; i++) {
                float a = y[i], b = y[i + h];
                y[i] = a + b;
                y[i + h] = a - b;
            }
    for (size_t i = 0; i < n; i++) y[i] *= factor;
}
