/* The activation of a feed-forward network's gate: see parts.h. */
#include "src/engine/layers/parts.h"

void fr_activate(const fr_kernels *k, fr_activation activation, float *gate, const float *up, size_t n) {
    if (activation == FR_GELU)
        k->gelu_mul(gate, gate, up, n);
    else
        k->silu_mul(gate, gate, up, n);
}
