/* The activations of feed-forward networks: see parts.h. */
#include <math.h>

#include "kernels/double_math.h"
#include "src/engine/layers/parts.h"

void fr_activate(const fr_kernels *k, fr_activation activation, float *gate, const float *up, size_t n) {
    if (activation == FR_GELU)
        k->gelu_mul(gate, gate, up, n);
    else
        k->silu_mul(gate, gate, up, n);
}

void fr_activate_ungated(const fr_kernels *k, fr_activation activation, float *x, float *ones, size_t n) {
    /* Both activations give NaN for NaN. */
    if (activation == FR_RELU2 || activation == FR_RELU) {
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

static double softplus(float x) {
    return fr_log_double(1 + fr_exp_double((double)x));
}

/* Computes exp(r) - 1 - r for -0.5 < r < 0.5 by its series. The subtraction itself would lose most digits if r is
 * small. */
static float bend_near_zero(float r) {
    static const float factors[] = {1.0F / 362880, 1.0F / 40320, 1.0F / 5040, 1.0F / 720,
                                    1.0F / 120,    1.0F / 24,    1.0F / 6,    0.5F};
    float sum = 0;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) sum = sum * r + factors[i];
    return sum * r * r;
}

void fr_activate_xielu(const fr_kernels *k, const float *numbers, float *x, float *room, size_t n) {
    float positive = (float)softplus(numbers[0]), beta = numbers[2], eps = numbers[3];
    float negative = (float)((double)beta + softplus(numbers[1]));
    for (size_t i = 0; i < n; i++) room[i] = x[i] < eps ? x[i] : eps;
    k->exp(room, room, n);
    for (size_t i = 0; i < n; i++) {
        float r = x[i] < eps ? x[i] : eps;
        float below = fabsf(r) < 0.5F ? bend_near_zero(r) + (r - x[i]) : room[i] - 1.0F - x[i];
        float bend = x[i] > 0.0F ? positive * x[i] * x[i] : below * negative;
        x[i] = bend + beta * x[i];
    }
}
