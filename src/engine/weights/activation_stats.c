/* Activation statistics: chooses the tensors whose inputs are summed up, and allocates the sums.
 *
 * In: tensors as they are bound. Out: sums in their matrices (matrix.h), and a list of them in the weights. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/weights/bound.h"

/* Returns true if the inputs of a tensor are summed up. This is done for the tensors of layers and, if wanted, for the
 * head. Tables are left out. The heads of latent attention are left out too, because they are applied in another order
 * than the file's. */
static bool is_watched(const fr_weights *weights, const fr_bound *bound) {
    const char *name = bound->tensor->name;
    bool heads = strstr(name, "attn_k_b.") || strstr(name, "attn_v_b.") || strstr(name, "attn_kv_b.");
    if (weights->activation_stats == FR_ACTIVATION_STATS_NONE || bound->access != FR_STREAMED || heads) return false;
    if (strcmp(name, "output.weight") == 0) return weights->activation_stats == FR_ACTIVATION_STATS_HEAD_TOO;
    return strncmp(name, "blk.", 4) == 0;
}

static fr_status add(fr_weights *weights, const fr_tensor *tensor, size_t matrices, size_t cols,
                     fr_watched_tensor **added) {
    size_t bytes = (weights->watched_count + 1) * sizeof *weights->watched;
    fr_watched_tensor *list = realloc(weights->watched, bytes);
    if (!list) return fr_fail_memory("a list of tensors", bytes);
    weights->watched = list;
    fr_watched_tensor *watched = &list[weights->watched_count];
    *watched = (fr_watched_tensor){tensor, matrices, cols, calloc(matrices, sizeof *watched->stats)};
    double *squares = calloc(matrices * cols, sizeof *squares);
    if (!watched->stats || !squares) {
        free(watched->stats);
        free(squares);
        return fr_fail_memory("sums of squares", matrices * cols * sizeof *squares);
    }
    for (size_t i = 0; i < matrices; i++) watched->stats[i].squares = squares + i * cols;
    weights->watched_count++;
    *added = watched;
    return FR_OK;
}

fr_status fr_bound_watch_activations(fr_weights *weights, const fr_bound *bound, size_t count, size_t parts,
                                     fr_matrix *matrices) {
    fr_watched_tensor *watched = NULL;
    if (!is_watched(weights, bound)) return FR_OK;
    FR_TRY(add(weights, bound->tensor, count / parts, matrices->cols, &watched));
    for (size_t i = 0; i < count / parts; i++) matrices[i * parts].stats = &watched->stats[i];
    return FR_OK;
}

void fr_activation_stats_free(fr_weights *weights) {
    for (size_t i = 0; i < weights->watched_count; i++) {
        free(weights->watched[i].stats->squares);
        free(weights->watched[i].stats);
    }
    free(weights->watched);
}
