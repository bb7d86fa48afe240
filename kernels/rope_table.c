/* Computes rotary angles in double arithmetic with only + - * / and bit moves, so that the result does not depend on a
 * machine's libm. The functions here have a relative error of about 1e-15. Half a unit in the last place of a float32
 * is far larger. */
#include "kernels/rope_table.h"

#include <math.h>

#include "kernels/double_math.h"

/* pi / 2 as the sum of three numbers of 26, 26 and 53 bits. A product of the first or second number with an integer n <
 * 2^27 is exact. */
static const double HALF_PI_1 = 0x1.921fb50000000p+0, HALF_PI_2 = 0x1.110b460000000p-26,
                    HALF_PI_3 = 0x1.1a62633145c07p-54;
static const double TWO_OVER_PI = 0x1.45f306dc9c883p-1;

void fr_rope_frequencies(fr_rope_kind kind, double theta, size_t head_dim, double partial_rotary_factor, double factor,
                         float *inverse) {
    size_t pairs = head_dim / 2, rotated = pairs;
    if (kind == FR_ROPE_PROPORTIONAL) {
        double wanted = partial_rotary_factor * (double)head_dim / 2;
        rotated = wanted < (double)pairs ? (size_t)wanted : pairs;
    }
    double log_theta = fr_log_double((float)theta);
    for (size_t i = 0; i < pairs; i++) {
        float exponent = (float)(2 * i) / (float)head_dim;
        float power = (float)fr_exp_double(exponent * log_theta);
        inverse[i] = i < rotated ? 1.0f / power : 0.0f;
        if (kind == FR_ROPE_PROPORTIONAL || kind == FR_ROPE_LINEAR) inverse[i] /= (float)factor;
    }
}

void fr_rope_divided(double theta, const float *divisor, size_t n, float *inverse) {
    double log_theta = fr_log_double((float)theta);
    for (size_t i = 0; i < n; i++) {
        float exponent = (float)(2 * i) / (float)(2 * n);
        inverse[i] = 1.0f / (divisor[i] * (float)fr_exp_double(exponent * log_theta));
    }
}

double fr_rope_longrope_magnitude(double factor, double trained) {
    return factor > 1 ? sqrt(1 + fr_log_double(factor) / fr_log_double(trained)) : 1;
}

void fr_rope_scale(float *inverse, size_t n, double factor, double low, double high, double trained) {
    const float two_pi = 0x1.921fb54442d18p+2f;
    float longest = (float)(trained / low), shortest = (float)(trained / high);
    for (size_t i = 0; i < n; i++) {
        float wave = two_pi / inverse[i], slow = inverse[i] / (float)factor;
        float smooth = high > low ? ((float)trained / wave - (float)low) / (float)(high - low) : 0.0f;
        float between = (1.0f - smooth) * inverse[i] / (float)factor + smooth * inverse[i];
        inverse[i] = wave > longest ? slow : wave < shortest ? inverse[i] : between;
    }
}

/* Returns the index of the pair that makes `rotations` full turns within the trained positions. The index is a real
 * number. */
static double find_pair(double rotations, size_t n, double theta, double trained) {
    const double two_pi = 0x1.921fb54442d18p+2;
    return (double)n * fr_log_double(trained / (two_pi * rotations)) / fr_log_double(theta);
}

void fr_rope_yarn(float *inverse, size_t n, double theta, double factor, double fast, double slow, double trained,
                  bool truncates) {
    double low = find_pair(fast, n, theta, trained), high = find_pair(slow, n, theta, trained);
    if (truncates) {
        low = floor(low);
        high = -floor(-high);
    }
    if (low < 0) low = 0;
    if (high > (double)(2 * n - 1)) high = (double)(2 * n - 1);
    if (low == high) high += 0.001;
    for (size_t i = 0; i < n; i++) {
        float ramp = ((float)i - (float)low) / (float)(high - low);
        float kept = 1.0f - (ramp < 0 ? 0 : ramp > 1 ? 1 : ramp), slower = inverse[i] / (float)factor;
        inverse[i] = slower * (1.0f - kept) + inverse[i] * kept;
    }
}

double fr_rope_yarn_magnitude(double factor, double weight) {
    return factor > 1 ? 0.1 * weight * fr_log_double(factor) + 1 : 1;
}

/* Returns the sine of r for |r| <= pi / 4 by its Taylor series. The first omitted term is below 2e-14. */
static inline double sine_reduced(double r) {
    double square = r * r, sum = 1.0 / 6227020800;
    sum = sum * square - 1.0 / 39916800;
    sum = sum * square + 1.0 / 362880;
    sum = sum * square - 1.0 / 5040;
    sum = sum * square + 1.0 / 120;
    sum = sum * square - 1.0 / 6;
    return r + r * (square * sum);
}

static inline double cosine_reduced(double r) {
    double square = r * r, sum = -1.0 / 87178291200;
    sum = sum * square + 1.0 / 479001600;
    sum = sum * square - 1.0 / 3628800;
    sum = sum * square + 1.0 / 40320;
    sum = sum * square - 1.0 / 720;
    sum = sum * square + 1.0 / 24;
    sum = sum * square - 0.5;
    return 1 + square * sum;
}

void fr_rope_angles(const float *inverse, size_t n, int64_t position, float *cosine, float *sine) {
    for (size_t i = 0; i < n; i++) {
        float angle = (float)position * inverse[i];
        double quarters = angle * TWO_OVER_PI + FR_DOUBLE_SHIFT - FR_DOUBLE_SHIFT;
        double r = ((angle - quarters * HALF_PI_1) - quarters * HALF_PI_2) - quarters * HALF_PI_3;
        double s = sine_reduced(r), c = cosine_reduced(r);
        int64_t quadrant = (int64_t)quarters;
        double s_here = quadrant & 1 ? c : s, c_here = quadrant & 1 ? s : c;
        sine[i] = (float)(quadrant & 2 ? -s_here : s_here);
        cosine[i] = (float)((quadrant + 1) & 2 ? -c_here : c_here);
    }
}
