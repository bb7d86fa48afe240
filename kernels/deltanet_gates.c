/* Computes the gates of gated DeltaNet, Kimi Delta Attention and Mamba-2 in double arithmetic: see deltanet_gates.h. */
#include "kernels/deltanet_gates.h"

#include "kernels/double_math.h"

/* Limits on the argument of exp. Below LEAST, exp is 0 in float32. Above MOST, exp is infinite in float32, and a
 * quotient whose divisor is 1 + exp is 0. */
static const double LEAST = -110, MOST = 110;

/* Above this limit softplus returns x itself, as torch does, because log(1 + exp(x)) then equals x to ten digits. */
static const double LINEAR_FROM = 20;

/* Returns exp(x). A NaN is returned unchanged, because it can't be split into an integer and a remainder. */
static double exponential(double x) {
    if (!(x >= LEAST)) return x < LEAST ? 0 : x;
    return fr_exp_double_brief(x > MOST ? MOST : x);
}

static double softplus(double x) {
    if (!(x <= LINEAR_FROM)) return x;
    return fr_log_double(1 + exponential(x));
}

void fr_softplus_mul(float *y, const float *gate, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] *= (float)softplus((double)gate[i]);
}

void fr_deltanet_decay(float *decay, const float *a, const float *bias, const float *slope, size_t heads) {
    for (size_t h = 0; h < heads; h++)
        decay[h] = (float)exponential(slope[h] * softplus((double)a[h] + (double)bias[h]));
}

void fr_kda_decays(float *decay, const float *bias, float slope, float lower_bound, size_t key_dim) {
    for (size_t k = 0; k < key_dim; k++) {
        double x = (double)decay[k] + (double)bias[k];
        double log_decay = lower_bound < 0 ? lower_bound / (1 + exponential(slope * x)) : slope * softplus(x);
        decay[k] = (float)exponential(log_decay);
    }
}

void fr_deltanet_slope(float *slope, const float *a_log, size_t heads) {
    for (size_t h = 0; h < heads; h++) slope[h] = (float)-exponential(a_log[h]);
}

void fr_deltanet_beta(float *beta, const float *b, size_t heads) {
    for (size_t h = 0; h < heads; h++) beta[h] = (float)(1 / (1 + exponential(-(double)b[h])));
}

void fr_mamba_gates(float *decay, float *step, const float *bias, const float *slope, float least, float most,
                    size_t heads) {
    for (size_t h = 0; h < heads; h++) {
        float rounded = (float)softplus((double)step[h] + (double)bias[h]);
        step[h] = rounded < least ? least : rounded > most ? most : rounded;
        decay[h] = (float)exponential((double)slope[h] * (double)step[h]);
    }
}
