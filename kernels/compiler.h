/* Defines macros for two things that kernels ask of gcc and clang beyond C: to inline, and to unroll. */
#ifndef FR_KERNELS_COMPILER_H
#define FR_KERNELS_COMPILER_H

/* Forces inlining. Kernels take function pointers and counts as constants, and are fast only if the compiler sees the
 * constant in each call. */
#define FR_INLINE static inline __attribute__((always_inline))

/* A for loop over an array that goes a constant number of times, at most 16. It is unrolled so that the array stays in
 * registers. gcc and clang each ignore the other's pragma. */
#ifdef __clang__
#define FR_UNROLLED_FOR(...) _Pragma("clang loop unroll(full)") for (__VA_ARGS__)
#else
#define FR_UNROLLED_FOR(...) _Pragma("GCC unroll 16") for (__VA_ARGS__)
#endif

#endif
