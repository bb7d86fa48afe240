/* Computes exp and log in double with only + - * / and bit moves. So the result does not depend on a machine's libm,
 * and one build serves all instruction sets. The relative error is about 1e-15. The functions are meant for numbers
 * that are computed once for a row or a token, and not for each element. */
#ifndef FR_KERNELS_DOUBLE_MATH_H
#define FR_KERNELS_DOUBLE_MATH_H

#include <stdint.h>
#include <string.h>

/* If |x| < 2^51, adding this number to x and subtracting it again rounds x to an integer. */
#define FR_DOUBLE_SHIFT 0x1.8p52

/* FR_DOUBLE_LN2_HIGH is ln 2 cut to its first 32 bits, and FR_DOUBLE_LN2_LOW is the remainder. */
#define FR_DOUBLE_LN2_HIGH 0x1.62e42fee00000p-1
#define FR_DOUBLE_LN2_LOW  0x1.a39ef35793c76p-33

/* Returns log x for a normal x > 0. x is split as x = 2^n m with m in [sqrt(1/2), sqrt(2)). Then log m = 2 atanh(s),
 * with s = (m - 1) / (m + 1) and |s| < 0.172. */
static inline double fr_log_double(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t n = (int64_t)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffff) | (uint64_t)1023 << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        n++;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int k = 21; k >= 3; k -= 2) sum = (sum + 1.0 / k) * square;
    return (double)n * FR_DOUBLE_LN2_HIGH + ((double)n * FR_DOUBLE_LN2_LOW + 2 * (s + s * sum));
}

/* Splits x, |x| < 700, as x = n ln 2 + r with an integer n. Sets *r and returns 2^n. */
static inline double fr_reduce_double(double x, double *r) {
    double n = x * (1 / (FR_DOUBLE_LN2_HIGH + FR_DOUBLE_LN2_LOW)) + FR_DOUBLE_SHIFT - FR_DOUBLE_SHIFT, power;
    *r = (x - n * FR_DOUBLE_LN2_HIGH) - n * FR_DOUBLE_LN2_LOW;
    uint64_t bits = (uint64_t)((int64_t)n + 1023) << 52;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Returns e^x for |x| < 700. */
static inline double fr_exp_double(double x) {
    double r, power = fr_reduce_double(x, &r), sum = 1;
    for (int k = 14; k >= 1; k--) sum = 1 + sum * r / k;
    return sum * power;
}

/* Returns e^x with a relative error of about 1e-12, which is small enough for results that are rounded to float32. The
 * terms of the series are computed without divisions, so the function is fast enough to be called for each head of each
 * row. */
static inline double fr_exp_double_brief(double x) {
    static const double inverse_factorials[] = {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                                                1.0 / 120,     1.0 / 24,     1.0 / 6,     0.5,        1};
    double r, power = fr_reduce_double(x, &r), sum = 0;
    for (int k = 0; k < 10; k++) sum = (sum + inverse_factorials[k]) * r;
    return (1 + sum) * power;
}

#endif
