/* Computes the gates of recurrent heads. A head of gated DeltaNet has two gates: the share of the state that stays, and
 * the share of a row's correction that is written. In Kimi Delta Attention each value of a key has a decay of its own.
 * A head of Mamba-2 has a decay and a time step.
 *
 * In: one projected value per row and head, and the layer's two constants per head. Out: float32, rounded to nearest
 * except in rare near ties. The bits are the same on every machine (no libm, no fused operation). The file is compiled
 * once for all instruction sets. */
#ifndef FR_KERNELS_DELTANET_GATES_H
#define FR_KERNELS_DELTANET_GATES_H

#include <stddef.h>

/* Computes y[i] = y[i] * softplus(gate[i]). The softplus is rounded to float32 before the product. */
void fr_softplus_mul(float *y, const float *gate, size_t n);

/* Computes decay[h] = exp(slope[h] * softplus(a[h] + bias[h])). softplus(x) is x if x > 20, otherwise log(1 + exp(x)).
 * A layer's slope is -exp(A_log), below 0. decay may be a. */
void fr_deltanet_decay(float *decay, const float *a, const float *bias, const float *slope, size_t heads);

/* Sets slope[h] = -exp(a_log[h]). GGUF files have the slope; other checkpoints have A_log. slope may be a_log. */
void fr_deltanet_slope(float *slope, const float *a_log, size_t heads);

/* Computes the decays of one head of Kimi Delta Attention, in place. If lower_bound is below 0, decay[k] becomes
 * exp(lower_bound / (1 + exp(slope * (decay[k] + bias[k])))). Otherwise it becomes exp(slope * softplus(decay[k] +
 * bias[k])). */
void fr_kda_decays(float *decay, const float *bias, float slope, float lower_bound, size_t key_dim);

/* Computes beta[h] = 1 / (1 + exp(-b[h])). beta may be b. */
void fr_deltanet_beta(float *beta, const float *b, size_t heads);

/* Computes the gates of Mamba-2. step[h] becomes softplus(step[h] + bias[h]), clamped to least..most and rounded to
 * float32. Then decay[h] = exp(slope[h] * step[h]). */
void fr_mamba_gates(float *decay, float *step, const float *bias, const float *slope, float least, float most,
                    size_t heads);

#endif
