/* Decodes block types to float32: one function for each type, which decodes one block.
 *
 * In: the bytes of a block as GGUF stores them, at any address. Out: its values (fr_dtype_block(type) of them) in
 * ascending order of columns. A function computes the type's formula in float32. It follows the order in which the
 * formula is written, and rounds once in each operation. Only dtype.c, which knows the sizes of all types, calls these
 * functions. */
#ifndef FR_QUANT_DECODE_H
#define FR_QUANT_DECODE_H

#include "quant/dtype.h"

#include <string.h>

typedef void fr_decode_fn(const uint8_t *block, float *y);

/* decode_simple.c: types with one scale in a block, and some with a minimum too */
fr_decode_fn fr_decode_q8_0, fr_decode_q4_0, fr_decode_q4_1, fr_decode_q5_0, fr_decode_q5_1, fr_decode_q1_0;
fr_decode_fn fr_decode_q2_0, fr_decode_pq2_0;

/* decode_codebook.c: 4-bit codes, each an index into a table of 16 values */
fr_decode_fn fr_decode_iq4_nl, fr_decode_iq4_xs, fr_decode_mxfp4, fr_decode_nvfp4;

/* decode_k.c: blocks of 256 values; each run of 16 or 32 values has a small integer scale, which is multiplied by the
 * block's d */
fr_decode_fn fr_decode_q2_k, fr_decode_q3_k, fr_decode_q4_k, fr_decode_q5_k, fr_decode_q6_k;

/* decode_grid.c: an index selects a point of a grid, which gives 4 or 8 neighbouring values */
fr_decode_fn fr_decode_iq1_s, fr_decode_iq1_m, fr_decode_iq2_xxs, fr_decode_iq2_xs, fr_decode_iq2_s;
fr_decode_fn fr_decode_iq3_xxs, fr_decode_iq3_s;

/* decode_ternary.c: values -1, 0, 1 */
fr_decode_fn fr_decode_tq1_0, fr_decode_tq2_0, fr_decode_ptq1_0;

static inline unsigned load_u16(const uint8_t *bytes) {
    return bytes[0] | (unsigned)bytes[1] << 8;
}

static inline uint32_t load_u32(const uint8_t *bytes) {
    return load_u16(bytes) | (uint32_t)load_u16(bytes + 2) << 16;
}

/* Reads a scale, the float16 at `bytes`. */
static inline float load_scale(const uint8_t *bytes) {
    return fr_f32_from_f16((uint16_t)load_u16(bytes));
}

#endif
