/* Multi-axis rotary positions: the places of the tokens of a prompt with pictures on the axes time, height and width.
 *
 * In: ids and the pictures' grids. Out: three positions for each token. A text token has one number on all axes; a
 * picture's tokens all have one time, and from that number on their height and width count its rows and columns; the
 * text after it goes on after the longer of its sides. Wang et al. 2024, arXiv:2409.12191. */
#ifndef FR_SRC_ENGINE_VISION_MROPE_H
#define FR_SRC_ENGINE_VISION_MROPE_H

#include "forerun.h"

#define FR_MROPE_AXES 3 /* time, height, width */

/* A picture's tokens, row by row. */
typedef struct fr_image_grid {
    size_t rows, columns;
} fr_image_grid;

/* Writes the positions of token i to positions[i], unless positions is NULL, and the position of the token after the
 * last, which is the same on every axis, to *next. Each run of image_id is one picture; FR_INPUT if a run's length is
 * not its picture's, or if runs and pictures differ in number. */
fr_status fr_mrope_positions(const int32_t *ids, size_t count, int32_t image_id, const fr_image_grid *grids,
                             size_t images, int32_t (*positions)[FR_MROPE_AXES], int64_t *next);

#endif
