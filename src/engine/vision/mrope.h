/* Multi-axis rotary positions: the positions of a prompt's tokens on the axes time, height and width.
 *
 * In: ids and the pictures' grids. Out: three positions for each token. A text token has the same number on all axes.
 * Let n be the number that a text token in place of a picture would have. All tokens of the picture have the time n;
 * their height and width are n plus their row and column. The text after the picture continues at n plus the longer of
 * the picture's two sides. Wang et al. 2024, arXiv:2409.12191. A picture in several runs of tokens has positions as if
 * each run were a picture of its own. */
#ifndef FR_SRC_ENGINE_VISION_MROPE_H
#define FR_SRC_ENGINE_VISION_MROPE_H

#include "forerun.h"

#define FR_MROPE_AXES 3 /* time, height, width */

/* The size of a picture in tokens, which are ordered row by row. */
typedef struct fr_image_grid {
    size_t rows, columns;
    /* if texts come between a picture's tokens: the number of runs, which have equally many rows; 0: one run */
    size_t runs;
} fr_image_grid;

/* Gives the number of rows in each run of a picture. */
static inline size_t fr_image_grid_run_rows(fr_image_grid grid) {
    return grid.runs ? grid.rows / grid.runs : grid.rows;
}

/* Computes the positions of `count` tokens. positions[i] gets the positions of token i; if positions is NULL, they are
 * not written. *next gets the position of the token after the last, which is the same on every axis. The runs of
 * image_id in `ids` belong to the pictures in their order. Fails with FR_INPUT if there are too few or too many runs,
 * or if a run's number of tokens differs from that of its picture's runs. */
fr_status fr_mrope_positions(const int32_t *ids, size_t count, int32_t image_id, const fr_image_grid *grids,
                             size_t images, int32_t (*positions)[FR_MROPE_AXES], int64_t *next);

#endif
