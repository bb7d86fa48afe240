/* Defines macros for two things that kernels ask of gcc and clang beyond C: to inline, and to unroll. */
#ifndef FR_KERNELS_COMPILER_H
#define FR_KERNELS_COMPILER_H

/* Forces inlining. A function that takes a function pointer or a count as a constant is fast only if the compiler sees
 * the constant in each call. */
#define FR_INLINE static inline __attribute__((always_inline))

/* A for loop that goes at most 16 times, a constant number, over an array. It is unrolled so that the array stays in
 * registers. gcc and clang each ignore the other's pragma. */
#ifdef __clang__
#define FR_UNROLLED_FOR(...) _Pragma("clang loop unroll(full)") for (__VA_ARGS__)
#else
#define FR_UNROLLED_FOR(...) _Pragma("GCC unroll 16") for (__VA_ARGS__)
#endif

#endif
