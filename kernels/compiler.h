/* Macros for two things that kernels ask of gcc and clang beyond C: to inline, and to unroll. */
#ifndef FR_KERNELS_COMPILER_H
#define FR_KERNELS_COMPILER_H

/* Forces inlining. A function that takes a function pointer or a count as a constant is only fast if the compiler sees
 * both at the place of the call. */
#define FR_INLINE static inline __attribute__((always_inline))

/* A for loop of at most 16 constant rounds over an array, unrolled so that the array stays in registers. gcc and clang
 * each ignore the other's pragma. */
#ifdef __clang__
#define FR_UNROLLED_FOR(...) _Pragma("clang loop unroll(full)") for (__VA_ARGS__)
#else
#define FR_UNROLLED_FOR(...) _Pragma("GCC unroll 16") for (__VA_ARGS__)
#endif

#endif
