/* Declares the points of the IQ types' grids, which the file format defines. tests/references/iq_grids.py wrote
 * them. */
#ifndef FR_QUANT_IQ_GRIDS_H
#define FR_QUANT_IQ_GRIDS_H

#include <stdint.h>

/* Each number is a point with 8 coordinates of 2 bits, the first in the lowest bits. The coordinates 0, 1, 2 mean -1,
 * 0, 1 in IQ1 and 8, 25, 43 in IQ2. */
extern const uint16_t fr_grid_iq1[2048], fr_grid_iq2_xxs[256], fr_grid_iq2_xs[512], fr_grid_iq2_s[1024];

/* Each number is a point with 4 coordinates of 4 bits, the first in the lowest bits. A coordinate is 0 to 7, the index
 * of its magnitude. */
extern const uint16_t fr_grid_iq3_xxs[256], fr_grid_iq3_s[512];

#endif
