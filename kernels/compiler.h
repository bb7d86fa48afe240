/* Defines macros for two requests that C has no words for and that gcc and clang understand: to inline a function, and
 * to unroll a loop. */
#ifndef FR_KERNELS_COMPILER_H
#define FR_KERNELS_COMPILER_H

/* Forces inlining. Kernels take function pointers and counts as constants, and are fast only if the compiler sees the
 * constant in each call. */
#define FR_INLINE static inline __attribute__((always_inline))

/* A for loop over an array with a constant number of steps, at most 16. The loop is unrolled so that the array stays in
 * registers. gcc and clang have different pragmas for this, and each ignores the other's. */
#ifdef __clang__
#define FR_UNROLLED_FOR(...) _Pragma("clang loop unroll(full)") for (__VA_ARGS__)
#else
#define FR_UNROLLED_FOR(...) _Pragma("GCC unroll 16") for (__VA_ARGS__)
#endif

#endif
