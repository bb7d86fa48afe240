/* The points of the IQ types' grids: facts of the file format, made by tests/references/iq_grids.py. */
#ifndef FR_QUANT_IQ_GRIDS_H
#define FR_QUANT_IQ_GRIDS_H

#include <stdint.h>

/* 8 coordinates of 2 bits, the first lowest: 0, 1, 2 for -1, 0, 1 (IQ1) or 8, 25, 43 (IQ2). */
extern const uint16_t fr_grid_iq1[2048], fr_grid_iq2_xxs[256], fr_grid_iq2_xs[512], fr_grid_iq2_s[1024];

/* 4 coordinates of 4 bits, the first lowest: 0 to 7. */
extern const uint16_t fr_grid_iq3_xxs[256], fr_grid_iq3_s[512];

#endif
