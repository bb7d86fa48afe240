/* The activations of feed-forward networks: see parts.h. */
#include "src/engine/layers/parts.h"

void fr_activate(const fr_kernels *k, fr_activation activation, float *gate, const float *up, size_t n) {
    if (activation == FR_GELU)
        k->gelu_mul(gate, gate, up, n);
    else
        k->silu_mul(gate, gate, up, n);
}

void fr_activate_ungated(const fr_kernels *k, fr_activation activation, float *x, float *ones, size_t n) {
    if (activation == FR_RELU2 || activation == FR_RELU) { /* of what is no number, both are no number */
        bool squares = activation == FR_RELU2;
        for (size_t i = 0; i < n; i++) x[i] = x[i] > 0.0F ? x[i] * (squares ? x[i] : 1.0F) : x[i] <= 0.0F ? 0.0F : x[i];
        return;
    }
    if (activation == FR_GELU_ERF) {
        k->gelu_erf(x, x, n);
        return;
    }
    for (size_t i = 0; i < n; i++) ones[i] = 1.0F;
    fr_activate(k, activation, x, ones, n);
}
