/* The IQ1, IQ2 and IQ3 types with a code a column: what packing makes of points of a grid and their signs or deltas.
 *
 * In: a block as GGUF stores it. Out: 256 codes, a coordinate of the grid (2 bits of IQ1 and IQ2, 3 of IQ3) and above
 * it a bit that is set for minus; the block's scales of 3 or 4 bits, 8 or 16; d's bits; and the inverse. */
#ifndef FR_QUANT_GRID_CODES_H
#define FR_QUANT_GRID_CODES_H

#include "quant/dtype.h"

/* type: FR_IQ2_XXS to FR_IQ1_M. */
void fr_grid_take(fr_dtype type, const uint8_t *block, uint16_t *d, uint8_t *codes, uint8_t *scales);

/* Adds what they say to a block of zeros. Codes that are no point of the grid give its next one. */
void fr_grid_put(fr_dtype type, uint8_t *block, uint16_t d, const uint8_t *codes, const uint8_t *scales);

#endif
