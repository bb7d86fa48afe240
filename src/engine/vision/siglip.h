/* The parts of SigLIP that several kinds of vision towers have: layers with LayerNorms, biases and a feed-forward
 * without a gate, one learned position for each patch of a square, a LayerNorm after the last layer.
 *
 * In: a checkpoint's vision_config and tensors. Out: these parts of an fr_vision; each kind of tower has its own parts
 * after the last LayerNorm (tower_gemma3.c, tower_idefics3.c). Source: transformers 5.24, models siglip and
 * smolvlm. */
#ifndef FR_SRC_ENGINE_VISION_SIGLIP_H
#define FR_SRC_ENGINE_VISION_SIGLIP_H

#include "src/engine/vision/tower.h"

/* The tensors outside of the layers, including those that only one kind of tower has. vision->own points to them. */
typedef struct fr_siglip {
    fr_matrix positions; /* [positions * positions, hidden] a learned embedding of each place */
    fr_vision_norm last; /* [hidden] the norm after the layers */
    const float *norm;   /* [hidden] Gemma 3: weights of the norm of a token, which is the mean of its patches */
    fr_matrix project;   /* the matrix that computes a token's row */
} fr_siglip;

/* The sizes that a tower has if its vision_config does not give them. */
typedef struct fr_siglip_sizes {
    size_t hidden, layers, heads, ffn, patch;
} fr_siglip_sizes;

extern const fr_tower_names fr_siglip_names;
extern const double fr_siglip_half[FR_VISION_CHANNELS]; /* the usual mean and deviation of a tower's pixels */

/* Reads the layers' sizes and the width of rows from config.json or from GGUF, and the side of a picture in pixels. */
fr_status fr_siglip_read(const fr_tower_source *source, const fr_siglip_sizes *usual, fr_vision_config *config,
                         size_t *side);

/* Allocates vision->own, and binds the embedding of patches, the positions and the last norm. */
fr_status fr_siglip_bind(const fr_tower_binder *binder, fr_vision *vision, fr_siglip **own);

/* Adds entry `index` of the table of positions to x. `spare` has room for [hidden]. */
void fr_siglip_add_position(const fr_vision *vision, size_t index, float *spare, float *x);

/* Gives the square root of a number, rounded down. */
size_t fr_siglip_root(size_t number);

#endif
