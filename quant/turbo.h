/* Defines the types turbo4 and turbo3, which are only for keys and values in the cache. They store heads that were
 * rotated.
 *
 * The rotation (kernels/turbo.h) makes the values of a head about normally distributed, whatever they were before. So
 * one table of values, Lloyd and Max's for the normal distribution, suits every head. This is the quantizer for the
 * mean square error of TurboQuant (Zandieh, Daliri, Hadian and Mirrokni 2025, arXiv:2504.19874), with a Hadamard
 * transform in place of a random rotation.
 *
 * A block is 32 values of the rotated head: a scale d, a float16, then the codes. A code is an index into a table of
 * integers, which kernels look up as bytes; its highest bit is the sign. Value i is d times the entry of the table for
 * code i.
 *
 *     turbo4   18 bytes: d; byte i has the code of value i in its low half, and that of value i + 16 in its high half
 *     turbo3   14 bytes: d; 8 bytes, of which byte i has the low two bits of the codes of values i, i + 8, i + 16 and
 *              i + 24, the first in its lowest bits; 4 bytes, of whose 32 bits bit i is the highest bit of the code of
 *              value i
 *
 * In: blocks. Out: values of the rotated head. */
#ifndef FR_QUANT_TURBO_H
#define FR_QUANT_TURBO_H

#include "quant/decode.h"

/* No file has these types, so they are not among the types of dtype.h. Their numbers follow FR_DTYPE_COUNT, which means
 * that there is no type. Functions of dtype.h that take a type take these two types as well, but fr_dtype_from_name
 * never returns them. */
#define FR_TURBO4 ((fr_dtype)(FR_DTYPE_COUNT + 1))
#define FR_TURBO3 ((fr_dtype)(FR_DTYPE_COUNT + 2))

enum { FR_TYPES_END = FR_DTYPE_COUNT + 3, FR_TURBO_BLOCK = 32 };

/* The tables have an integer for each code. The unit of the integers was chosen so that rounding to integers adds the
 * least error. A standard deviation of the normal distribution is FR_TURBO4_UNIT or FR_TURBO3_UNIT units. The mean
 * square error of a normal distribution is 0.00951 with 16 codes (turbo4) and 0.03455 with 8 codes (turbo3). With
 * tables that are not rounded to integers it is 0.00950 and 0.03455. The paper's bound, sqrt(3) pi / 2 / 4^bits, is
 * 0.01063 and 0.04251. */
#define FR_TURBO4_UNIT  38.143F
#define FR_TURBO3_UNIT  40.906F
#define FR_TURBO4_TABLE 5, 15, 25, 36, 48, 62, 79, 104, -5, -15, -25, -36, -48, -62, -79, -104
#define FR_TURBO3_TABLE 10, 31, 55, 88, -10, -31, -55, -88

/* Returns true for turbo4 and turbo3. */
static inline bool fr_turbo(fr_dtype type) {
    return type == FR_TURBO4 || type == FR_TURBO3;
}

fr_decode_fn fr_decode_turbo4, fr_decode_turbo3;

#endif
