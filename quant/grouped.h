/* Grouped codes: rows of small integers with a scale for each group of columns, as quantizers of safetensors folders
 * write them (AWQ, GPTQ, compressed-tensors, MLX).
 *
 * In: the arrays of a row, which a reader of a folder's storage unpacks (formats/). Out: the values that the row
 * stands for. Each value is one or two rounded float32 operations on the stored scales, which are exact as float32;
 * the quantizers' own packages compute the same. */
#ifndef FR_QUANT_GROUPED_H
#define FR_QUANT_GROUPED_H

#include "quant/dtype.h"

/* An offset is taken from a code, or added to its product with the scale. */
typedef enum fr_group_offset {
    FR_OFFSET_CENTRE, /* value = (code - 2^(bits - 1)) * scale */
    FR_OFFSET_ZERO,   /* value = (code - zero) * scale; zero is an integer from 0 to 2^bits - 1 */
    FR_OFFSET_BIAS    /* value = code * scale + bias: the product is rounded, then the sum */
} fr_group_offset;

/* The form of a matrix of grouped codes. */
typedef struct fr_grouping {
    uint8_t bits; /* of a code: 2, 3, 4, 5, 6 or 8 */
    uint8_t offset;
    uint8_t scale_type; /* FR_F32, FR_F16 or FR_BF16: of scales and biases in the file */
    uint32_t group;     /* columns of a group; the last one of a row may be shorter */
} fr_grouping;

/* A row's arrays. groups is ceil(cols / group). */
typedef struct fr_grouped_row {
    uint8_t *codes; /* [cols], each below 2^bits */
    float *scales;  /* [groups] */
    uint8_t *zeros; /* [groups]; read with FR_OFFSET_ZERO */
    float *biases;  /* [groups]; read with FR_OFFSET_BIAS */
} fr_grouped_row;

#endif
