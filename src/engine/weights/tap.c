/* Taps: chooses the tensors whose products have their inputs summed up, and takes room for the sums.
 *
 * In: tensors as they are bound. Out: taps in their matrices (matrix.h), a list of them in the weights. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/weights/bound.h"

/* Returns true for the tensors of layers, and for the head if that is wanted. Tables are left out, and so are latent
 * attention's heads, which are applied in another order than the file's. */
static bool is_tapped(const fr_weights *weights, const fr_bound *bound) {
    const char *name = bound->tensor->name;
    bool heads = strstr(name, "attn_k_b.") || strstr(name, "attn_v_b.") || strstr(name, "attn_kv_b.");
    if (weights->tapping == FR_TAP_NONE || bound->access != FR_STREAMED || heads) return false;
    if (strcmp(name, "output.weight") == 0) return weights->tapping == FR_TAP_HEAD_TOO;
    return strncmp(name, "blk.", 4) == 0;
}

static fr_status add(fr_weights *weights, const fr_tensor *tensor, size_t matrices, size_t cols, fr_tapped **added) {
    size_t bytes = (weights->tapped_count + 1) * sizeof *weights->tapped;
    fr_tapped *list = realloc(weights->tapped, bytes);
    if (!list) return fr_fail_memory("a list of tensors", bytes);
    weights->tapped = list;
    fr_tapped *tapped = &list[weights->tapped_count];
    *tapped = (fr_tapped){tensor, matrices, cols, calloc(matrices, sizeof *tapped->taps)};
    double *squares = calloc(matrices * cols, sizeof *squares);
    if (!tapped->taps || !squares) {
        free(tapped->taps);
        free(squares);
        return fr_fail_memory("sums of squares", matrices * cols * sizeof *squares);
    }
    for (size_t i = 0; i < matrices; i++) tapped->taps[i].squares = squares + i * cols;
    weights->tapped_count++;
    *added = tapped;
    return FR_OK;
}

fr_status fr_bound_tap(fr_weights *weights, const fr_bound *bound, size_t count, size_t parts, fr_matrix *matrices) {
    fr_tapped *tapped = NULL;
    if (!is_tapped(weights, bound)) return FR_OK;
    FR_TRY(add(weights, bound->tensor, count / parts, matrices->cols, &tapped));
    for (size_t i = 0; i < count / parts; i++) matrices[i * parts].tap = &tapped->taps[i];
    return FR_OK;
}

void fr_taps_free(fr_weights *weights) {
    for (size_t i = 0; i < weights->tapped_count; i++) {
        free(weights->tapped[i].taps->squares);
        free(weights->tapped[i].taps);
    }
    free(weights->tapped);
}
