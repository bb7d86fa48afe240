/* Macros for what the kernels ask of gcc and clang beyond C: to inline, and to unroll. */
#ifndef FR_KERNELS_COMPILER_H
#define FR_KERNELS_COMPILER_H

/* Functions that take a function, or a count that has to be a constant, only become fast where both are inlined. */
#define FR_INLINE static inline __attribute__((always_inline))

/* A for loop of at most 16 constant rounds over an array, unrolled so that the array lives in registers. Neither
 * compiler obeys the other's pragma. */
#ifdef __clang__
#define FR_UNROLLED_FOR(...) _Pragma("clang loop unroll(full)") for (__VA_ARGS__)
#else
#define FR_UNROLLED_FOR(...) _Pragma("GCC unroll 16") for (__VA_ARGS__)
#endif

#endif
