/* Packs and unpacks grouped codes: rows of small integers with a scale for each group of columns, as quantizers of
 * safetensors folders write them (AWQ, GPTQ, compressed-tensors, MLX). Integer matmul kernels read them in tiles.
 *
 * In: the arrays of a row, which a reader of a folder's storage unpacks (formats/). Out: the values that the row
 * represents, and packed tiles. Each value is computed by one or two rounded float32 operations from the stored scales,
 * which are exact as float32. The quantizers' own packages compute the same.
 *
 * A tile is 16 neighbouring rows of a matrix side by side. Its lines of codes are those of quant/packed.h: "codes" for
 * 4 bits, "fifths" and codes for 5, codes and "pairs" for 6, pairs for 2, "thirds" and pairs for 3, 8 lines of bytes
 * for 8. A tile is a sequence of blocks. A block covers a group of columns; a group of more than 1024 columns is split
 * into blocks of 1024:
 *
 *     scales     16 of the file's floats: 2 bytes each (F16, BF16), or 4 (F32)
 *     zeros      with FR_OFFSET_ZERO; codes of up to 4 bits: 8 bytes, row i in the low half of byte i, row 8 + i in its
 *                high half; wider codes: 16 bytes
 *     biases     with FR_OFFSET_BIAS; 16 floats like the scales
 *     codes      for each run of 32 columns, 64 bytes for each bit of a code
 *
 * The last block of a row may have fewer runs. In its last run, columns past the end have code 0, and the activations
 * there are 0. If the number of a matrix's rows is not a multiple of 16, the missing rows of the last tile have scales,
 * biases and codes of 0. */
#ifndef FR_QUANT_GROUPED_H
#define FR_QUANT_GROUPED_H

#include "quant/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Says how a value is computed from a code and the scale of its group. */
typedef enum fr_group_offset {
    FR_OFFSET_CENTRE, /* value = (code - 2^(bits - 1)) * scale */
    FR_OFFSET_ZERO,   /* value = (code - zero) * scale; zero is an integer from 0 to 2^bits - 1 */
    FR_OFFSET_BIAS    /* value = code * scale + bias: the product is rounded, then the sum */
} fr_group_offset;

/* Describes the grouped codes of a matrix. */
typedef struct fr_grouping {
    uint8_t bits; /* bits of a code: 2, 3, 4, 5, 6 or 8 */
    uint8_t offset;
    uint8_t scale_type; /* FR_F32, FR_F16 or FR_BF16: the type of scales and biases */
    uint32_t group;     /* columns of a group; the last group of a row may be shorter */
} fr_grouping;

/* Points to the arrays of one row. In the comments below, `groups` is ceil(cols / group). */
typedef struct fr_grouped_row {
    uint8_t *codes; /* [cols], each below 2^bits */
    float *scales;  /* [groups] */
    uint8_t *zeros; /* [groups]; used with FR_OFFSET_ZERO */
    float *biases;  /* [groups]; used with FR_OFFSET_BIAS */
} fr_grouped_row;

/* Expands EACH(bits, ...) for every number of bits that a code may have. */
#define FR_GROUPED_CODES(EACH, ...) \
    EACH(2, __VA_ARGS__)            \
    EACH(3, __VA_ARGS__)            \
    EACH(4, __VA_ARGS__)            \
    EACH(5, __VA_ARGS__)            \
    EACH(6, __VA_ARGS__)            \
    EACH(8, __VA_ARGS__)

enum {
    FR_GROUPED_RUN = 32,     /* columns of a run */
    FR_GROUPED_LONGEST = 32, /* largest number of runs in a block */
    FR_GROUPED_BITS_MAX = 8
};

/* Holds the sizes of a matrix's tiles. They follow from the grouping of the codes and the number of columns. */
typedef struct fr_grouped_tiles {
    fr_grouping form;
    size_t block_runs, runs, blocks; /* block_runs: runs of a block; runs: runs of a row; blocks: blocks of a row */
    size_t head_bytes, block_bytes;  /* head_bytes: bytes of a block's scales, and of its zeros or biases; block_bytes:
                                      * bytes of the whole block */
    size_t tile_bytes;
} fr_grouped_tiles;

/* Gives the sizes of tiles for rows of `cols` columns. Returns false if `form` is not valid, or if a tile would take
 * more than SIZE_MAX / 2 bytes. A group must be a whole number of runs of 32 columns, unless it covers the whole row. A
 * group longer than 1024 columns must be a multiple of 1024 columns. Returns false for other groups, too. */
bool fr_grouped_layout(fr_grouped_tiles *tiles, const fr_grouping *form, size_t cols);

/* Returns the bytes of the tiles of `rows` rows, or 0 if they would be more than SIZE_MAX / 2. */
size_t fr_grouped_bytes(const fr_grouped_tiles *tiles, size_t rows);

/* Packs one tile of `count` (1 to 16) rows. */
void fr_grouped_pack(const fr_grouped_tiles *tiles, uint8_t *tile, const fr_grouped_row *rows, size_t count,
                     size_t cols);

/* Holds a block of one row of a tile, unpacked. */
typedef struct fr_grouped_block {
    float scale, bias; /* bias: 0 without FR_OFFSET_BIAS */
    uint8_t zero;      /* the zero point; the centre with FR_OFFSET_CENTRE, 0 with FR_OFFSET_BIAS */
    uint8_t codes[FR_GROUPED_LONGEST * FR_GROUPED_RUN];
} fr_grouped_block;

/* Reads block number `block` (from 0) of row `feature` (0 to 15) of a tile, and returns the number of the block's
 * runs. */
size_t fr_grouped_parts(const fr_grouped_tiles *tiles, fr_grouped_block *parts, const uint8_t *tile, size_t block,
                        size_t feature);

/* Decodes row `feature` (0 to 15) of a tile to its values. */
void fr_grouped_decode(const fr_grouped_tiles *tiles, float *values, const uint8_t *tile, size_t feature, size_t cols);

#endif
