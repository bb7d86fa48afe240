/* Holds the constants of exp, tanh, gelu and the normal distribution, which are the same for every instruction set.
 * quant/NUMERICS.md has the formulas that use them and says where the polynomials come from. */
#ifndef FR_KERNELS_MATH_CONSTANTS_H
#define FR_KERNELS_MATH_CONSTANTS_H

/* exp is inf above FR_EXP_MAX and 0 below FR_EXP_MIN. Clamping x to this range keeps the exponent n of 2^n in range. */
#define FR_EXP_MAX 89.0f
#define FR_EXP_MIN -105.0f

/* tanh clamps |x| to this number. From 9.02 on, tanh is 1 as a float32. */
#define FR_TANH_MAX 10.0f

#define FR_LOG2E 0x1.715476p+0f

/* The factor by which clamped SwiGLU multiplies the gate before its sigmoid (fr_clamped_swiglu_fn). */
#define FR_SWIGLU_ALPHA 1.702f

/* If |t| < 2^22, the sum of t and this number has rint(t) in its low bits. */
#define FR_ROUND_SHIFT      0x1.8p+23f
#define FR_ROUND_SHIFT_BITS 0x4b400000u

/* ln 2 as the sum of two pieces. An fma computes x - n * FR_LN2_HIGH exactly for every n that occurs. */
#define FR_LN2_HIGH 0x1.62e43p-1f
#define FR_LN2_LOW  -0x1.05c61p-29f

/* Coefficients of e^r - 1 = r + r^2 (C2 + C3 r + ... + C7 r^5) for |r| <= ln(2) / 2. The relative error is 2^-30.8. */
#define FR_EXPM1_C2 0x1.0p-1f
#define FR_EXPM1_C3 0x1.555554p-3f
#define FR_EXPM1_C4 0x1.5554eap-5f
#define FR_EXPM1_C5 0x1.1113acp-7f
#define FR_EXPM1_C6 0x1.6d4c1p-10f
#define FR_EXPM1_C7 0x1.9c5054p-13f

/* Coefficients of the probability that a standard normal variable is below -w, for w >= 0: exp(-w^2 / 2) t (T0 + T1 t +
 * ... + T7 t^7) with t = 1 / (1 + STEP w). The relative error is 2^-22.5. */
#define FR_TAIL_STEP 0x1.333334p-2f
#define FR_TAIL_T0   0x1.ea0342p-4f
#define FR_TAIL_T1   0x1.ee6fdap-4f
#define FR_TAIL_T2   0x1.9a521ep-4f
#define FR_TAIL_T3   0x1.05833ap-3f
#define FR_TAIL_T4   -0x1.aa42f2p-5f
#define FR_TAIL_T5   0x1.a2ee94p-3f
#define FR_TAIL_T6   -0x1.3fcff4p-3f
#define FR_TAIL_T7   0x1.2230ecp-5f

#define FR_GELU_CUBIC 0.044715f
#define FR_GELU_SCALE 0x1.988454p-1f /* sqrt(2 / pi) */

#endif
