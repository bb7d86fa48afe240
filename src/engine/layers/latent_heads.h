/* Binds the matrices of latent attention's heads, from two tensors or from one that contains both (layer.h).
 *
 * In: a tensor's name, sizes. Out: fr_latent_heads, or an error line that names the tensor. */
#ifndef FR_SRC_ENGINE_LAYERS_LATENT_HEADS_H
#define FR_SRC_ENGINE_LAYERS_LATENT_HEADS_H

#include "src/engine/layers/layer.h"
#include "src/engine/weights/weights.h"

/* Binds the tensor PREFIX + NAME of shape [heads, features, cols] as an array of matrices, one for each head. The array
 * is allocated with malloc. */
fr_status fr_latent_bind_heads(fr_weights *weights, const char *prefix, const char *name, size_t heads, size_t features,
                               size_t cols, fr_matrix **matrices);

/* Binds the tensor PREFIX + NAME of shape [heads * (nope + value_dim), latent]. The parts of the keys (nope rows in
 * each head) are transposed when weights are placed. */
fr_status fr_latent_bind_whole(fr_weights *weights, const char *prefix, const char *name, const fr_layer_spec *layer,
                               fr_latent_heads *heads);

#endif
