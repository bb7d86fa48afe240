/* Converts blocks of the IQ1, IQ2 and IQ3 types to one code per column for packing, and back. Blocks of these types
 * store points of a grid with signs or deltas.
 *
 * In: a block as GGUF stores it. Out: 256 codes; the block's 8 or 16 scales of 3 or 4 bits; the bits of d. A code is a
 * coordinate of the grid, in 2 bits for IQ1 and IQ2 or 3 bits for IQ3. The next higher bit is set if the column's sign
 * or delta is negative. */
#ifndef FR_QUANT_GRID_CODES_H
#define FR_QUANT_GRID_CODES_H

#include "quant/dtype.h"

/* Reads a block. type: FR_IQ2_XXS to FR_IQ1_M. */
void fr_grid_take(fr_dtype type, const uint8_t *block, uint16_t *d, uint8_t *codes, uint8_t *scales);

/* Writes a block, whose bytes must be 0 before the call. Codes that are not a point of the grid become some other
 * point. */
void fr_grid_put(fr_dtype type, uint8_t *block, uint16_t d, const uint8_t *codes, const uint8_t *scales);

#endif
