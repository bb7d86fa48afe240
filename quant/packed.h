/* Packs weights in the layouts that integer matmul kernels read: 16 outputs side by side. Most types take as many bytes
 * as in the file. Types whose columns do not have codes of their own in the file get them here and take more: IQ1 to
 * IQ3, which store points of a grid, and TQ1_0 and PTQ1_0, which store base-3 digits.
 *
 * In: rows of a block type as GGUF stores them. Out: tiles. A tile is 16 neighbouring rows of a matrix ("features"),
 * their blocks in ascending order of columns; a matrix of `features` rows is its tiles one after the other. If features
 * is not a multiple of 16, the last tile's missing rows are zero bytes. One output is one SIMD lane of 32 bits. A line
 * of 64 bytes is a zmm, two ymm or four NEON registers of features 0..15. Lane o of a line holds four values of feature
 * o whose columns are neighbours ("group" g of a run of 32: columns 4g to 4g + 3).
 *
 * d, m, dmin are the file's 16-bit floats, one for each feature. Byte (o, i) is byte 4 * o + i of a line. The layouts
 * of codes in lines are:
 *
 *     "codes" (256 bytes, 32 columns x 4 bits): 4 lines; byte (o, i) of line j has column 4j + i in its low half and
 *         column 16 + 4j + i in its high half
 *     "fifths" (64 bytes, 32 columns x 1 bit): one line; bit g of byte (o, i) is the fifth bit of column 4g + i
 *
 *     "pairs" (128 bytes, 32 columns x 2 bits): 2 lines; bits 2j, 2j + 1 of byte (o, i) of line h are column
 *         16h + 4j + i
 *
 * The layouts of blocks in tiles are, with x | y << n for a byte that has y from bit n on and x below:
 *
 *     type      a block of a tile, in this order
 *     Q8_0      d[16], 8 lines: byte (o, i) of line g is column 4g + i, stored as value + 128
 *     Q4_0      d[16], codes
 *     Q4_1      d[16], m[16], codes
 *     Q5_0      d[16], fifths, codes
 *     Q5_1      d[16], m[16], fifths, codes
 *     IQ4_NL    d[16], codes
 *     MXFP4     e[16] (bytes), codes
 *     Q4_K      d[16], dmin[16], scales, then for each run of 32 columns: codes
 *     Q5_K      d[16], dmin[16], scales, then for each run: fifths, codes
 *               scales (192 bytes): 8 rows of 16 bytes: byte o of row s is the low 4 bits of scale s | those of
 *               minimum s << 4; then 4 rows: byte o of row t is the two high bits of scale 2t | minimum 2t << 2
 *               | scale 2t + 1 << 4 | minimum 2t + 1 << 6
 *     Q6_K      d[16], 16 rows of 16 scales (signed bytes; row h scales columns 16h .. 16h + 15), then for each run of
 *               32 columns: codes (the low 4 bits), pairs (the high 2)
 *     IQ4_XS    d[16], scales, then for each run: codes
 *               scales (96 bytes): 4 rows: byte o of row t is the low 4 bits of scale 2t | those of scale 2t + 1 << 4;
 *               then 2 rows: bits 2j, 2j + 1 of byte o of row u are the high bits of scale 4u + j
 *     Q2_K      d[16], dmin[16], 16 rows: byte o of row h is the scale of columns 16h .. 16h + 15 | their minimum << 4;
 *               then for each run: pairs
 *     Q3_K      d[16], scales as in Q4_K, but with the scale of a run's first half instead of a scale and that of its
 *               second half instead of a minimum; then for each run: thirds (third bits, laid out as fifths), pairs
 *     IQ3_XXS   d[16], scales, then for each run: codes (indices of fr_code_values; the highest bit is the sign)
 *               scales (64 bytes): 4 rows: byte o of row t is scale 2t | scale 2t + 1 << 4
 *     IQ3_S     as IQ3_XXS
 *     IQ2_XXS   d[16], scales as in IQ3_XXS, then for each run: thirds (1: minus), pairs (a coordinate)
 *     IQ2_XS    d[16], scales (128 bytes): 8 rows as in IQ3_XXS, for 16 scales; then as IQ2_XXS
 *     IQ2_S     as IQ2_XS
 *     IQ1_S     as IQ2_XXS; thirds are 1 if the delta is negative
 *     IQ1_M     as IQ2_XS; thirds as in IQ1_S
 *     TQ2_0     d[16], for each run: pairs
 *     TQ1_0     as TQ2_0
 *     Q2_0      d[16], for each of 2 runs: pairs
 *     Q1_0      d[16], for each of 4 runs: a line of bits (as fifths)
 *     PQ2_0     d[16], for each of 4 runs: pairs
 *     PTQ1_0    as PQ2_0
 *     NVFP4     2 rows of 16 scales (bytes; row h scales columns 16h .. 16h + 15), codes; a file's block of 64 columns
 *               is two of a tile. A scale is an E4M3 number without a sign: 0 to 0x7e, and 0x7f for the file's 0xff. So
 *               its bits shifted left by 7 are a float16 of 2^-8 times the number. */
#ifndef FR_QUANT_PACKED_H
#define FR_QUANT_PACKED_H

#include "quant/dtype.h"

#define FR_TILE_FEATURES   16
#define FR_BLOCK_BYTES_MAX 256 /* bytes; no block of a type that can be packed is longer */

/* Returns true if a type has a packed layout: FR_FLOAT_TYPES <= type < FR_KERNEL_TYPES. */
bool fr_packs(fr_dtype type);

/* Returns the number of columns in a block of a tile. Such a block is a block of the file, or a part of one. */
size_t fr_tile_block(fr_dtype type);

/* Returns the bytes that a row of `cols` values takes in its tile. */
size_t fr_packed_row_bytes(fr_dtype type, size_t cols);

/* Returns the bytes of `features` packed rows of `cols` values. */
size_t fr_packed_bytes(fr_dtype type, size_t features, size_t cols);

/* Packs one tile: `features` (1 to 16) rows of cols values, which are row_bytes apart. */
void fr_pack_tile(fr_dtype type, uint8_t *tile, const uint8_t *rows, size_t row_bytes, size_t features, size_t cols);

/* Unpacks row `feature` (0 to 15) of a tile to the bytes that GGUF stores. */
void fr_unpack_row(fr_dtype type, uint8_t *row, const uint8_t *tile, size_t feature, size_t cols);

/* Holds a block of one output feature, unpacked from a tile. Parts that its type does not have are zero. */
typedef struct fr_block_parts {
    uint16_t d, m;      /* float16 bits; for K types m is dmin, for MXFP4 d is the exponent byte */
    uint8_t scales[16]; /* 16 are used by Q2_K, Q3_K, IQ2_XS, IQ2_S, IQ1_M and Q6_K (signed), 2 by NVFP4, 8 by others */
    uint8_t mins[16];   /* 16 are used by Q2_K, 8 by others */
    uint8_t codes[256]; /* unsigned, as the tile stores them; no offset is subtracted and no table is used */
} fr_block_parts;

/* Reads block number `block` (from 0) of row `feature` of a tile. */
void fr_tile_parts(fr_dtype type, fr_block_parts *parts, const uint8_t *tile, size_t block, size_t feature);

#endif
