/* Binds the matrices of latent attention's heads: see latent_heads.h. */
#include "src/engine/layers/latent_heads.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "quant/packed.h"
#include "src/engine/weights/bound.h"

static fr_status take_matrices(size_t count, fr_matrix **matrices) {
    *matrices = calloc(count, sizeof **matrices);
    return *matrices ? FR_OK : fr_fail_memory("attention heads", count * sizeof **matrices);
}

fr_status fr_latent_bind_heads(fr_weights *weights, const char *prefix, const char *name, size_t heads, size_t features,
                               size_t cols, fr_matrix **matrices) {
    FR_TRY(take_matrices(heads, matrices));
    return fr_bind_heads(weights, prefix, name, heads, features, cols, *matrices);
}

/* If the matrices were bound as tiles, checks that the rows of k_b fill whole tiles in each head, and that the rows of
 * v_b do so too. */
static fr_status check_tiles(const fr_weights *weights, const char *prefix, const char *name, const fr_mla_spec *mla,
                             const fr_matrix *bound) {
    if (!bound->packed || (mla->nope % FR_TILE_FEATURES == 0 && mla->value_dim % FR_TILE_FEATURES == 0)) return FR_OK;
    return fr_fail(
        FR_UNBUILT, "%s: tensor %s%s of type %s with heads of %zu and %zu rows is not built: multiples of %d are",
        weights->files->path, prefix, name, fr_dtype_name(bound->type), mla->nope, mla->value_dim, FR_TILE_FEATURES);
}

/* Makes the k_b of each head refer to the head's matrix [latent, nope] in the transposed copy. nope: number of a key's
 * values that are not rotated. */
static void point_keys(fr_latent_heads *heads, size_t count, size_t latent, size_t nope) {
    for (size_t h = 0; h < count; h++)
        heads->k_b[h] = (fr_matrix){.data = (const uint8_t *)(heads->copy + h * latent * nope),
                                    .type = FR_F32,
                                    .features = latent,
                                    .cols = nope,
                                    .row_bytes = nope * sizeof(float)};
}

fr_status fr_latent_bind_whole(fr_weights *weights, const char *prefix, const char *name, const fr_layer_spec *layer,
                               fr_latent_heads *heads) {
    size_t count = layer->attention.heads, latent = layer->attention.latent, nope = layer->mla.nope;
    size_t each = nope + layer->mla.value_dim;
    FR_TRY(take_matrices(count, &heads->kv_b));
    FR_TRY(fr_bind_parts(weights, prefix, name, count, each, latent, heads->kv_b));
    FR_TRY(check_tiles(weights, prefix, name, &layer->mla, heads->kv_b));
    FR_TRY(take_matrices(count, &heads->k_b));
    FR_TRY(take_matrices(count, &heads->v_b));
    heads->copy = calloc(count * latent * nope, sizeof *heads->copy);
    if (!heads->copy) return fr_fail_memory("transposed key heads", count * latent * nope * sizeof *heads->copy);
    point_keys(heads, count, latent, nope);
    for (size_t h = 0; h < count; h++) {
        heads->v_b[h] = fr_matrix_features(&heads->kv_b[h], nope, each);
        heads->kv_b[h] = fr_matrix_features(&heads->kv_b[h], 0, nope);
    }
    return fr_weights_transpose(weights, heads->kv_b, count, heads->copy);
}
