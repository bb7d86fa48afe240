/* Converts the IQ1, IQ2 and IQ3 types to one code per column and back, for packing. Their blocks have points of a
 * grid, with signs or deltas.
 *
 * In: a block as GGUF stores it. Out: 256 codes, each a coordinate of the grid (2 bits for IQ1 and IQ2, 3 for IQ3),
 * with one more bit above it that is set for minus; the block's 8 or 16 scales of 3 or 4 bits; the bits of d. */
#ifndef FR_QUANT_GRID_CODES_H
#define FR_QUANT_GRID_CODES_H

#include "quant/dtype.h"

/* Reads a block. type: FR_IQ2_XXS to FR_IQ1_M. */
void fr_grid_take(fr_dtype type, const uint8_t *block, uint16_t *d, uint8_t *codes, uint8_t *scales);

/* Writes a block, whose bytes must be 0 before. Codes that are no point of the grid give the grid's next point. */
void fr_grid_put(fr_dtype type, uint8_t *block, uint16_t d, const uint8_t *codes, const uint8_t *scales);

#endif
