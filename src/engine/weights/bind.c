/* Binds matrices by name and checks their shapes: see weights.h. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "quant/packed.h"
#include "src/engine/weights/bound.h"

/* Finds a stack that the file does not store as rows. With FR_LAYOUT_MX the stack is in two tensors, one of codes and
 * one of exponents. With any other layout the stack is in one tensor, whose matrices are stored by columns. */
static fr_status find_copied(fr_weights *weights, const char *prefix, const char *name, fr_stack_layout layout,
                             size_t count, size_t rows, size_t cols, fr_bound **bound) {
    const uint64_t shape[] = {count, rows, cols / FR_MX_BLOCK, FR_MX_BLOCK / 2}, turned[] = {count, cols, rows};
    char scales[FR_TENSOR_NAME];
    if (layout != FR_LAYOUT_MX) {
        const uint64_t flat[] = {count * cols, rows};
        char full[FR_TENSOR_NAME];
        snprintf(full, sizeof full, "%s%s", prefix, name);
        const fr_tensor *t = fr_tensors_find(&weights->files->tensors, full);
        bool two = t && t->dims == 2 && layout == FR_LAYOUT_COLUMNS;
        FR_TRY(fr_bound_find(weights, prefix, name, two ? flat : turned, two ? 2 : 3, FR_STREAMED, bound));
        return fr_bound_check_float(weights, (*bound)->tensor);
    }
    if (cols % FR_MX_BLOCK)
        return fr_fail(FR_INPUT, "%s: tensor %s%s: %zu columns are no whole blocks of %d", weights->files->path, prefix,
                       name, cols, FR_MX_BLOCK);
    snprintf(scales, sizeof scales, "%.*s_scales", (int)(strlen(name) - strlen("_blocks")), name);
    FR_TRY(fr_bound_find_codes(weights, prefix, scales, shape, 3, FR_LOOKED_UP, bound));
    const fr_tensor *exponents = (*bound)->tensor;
    (*bound)->of_codes = true;
    FR_TRY(fr_bound_find_codes(weights, prefix, name, shape, 4, FR_STREAMED, bound));
    (*bound)->exponents = exponents;
    return FR_OK;
}

fr_status fr_bind_stack(fr_weights *weights, const char *prefix, const char *name, fr_stack_layout layout, size_t count,
                        size_t parts, size_t features, size_t cols, fr_matrix *matrices) {
    fr_bound *bound;
    if (layout != FR_LAYOUT_ROWS) {
        FR_TRY(find_copied(weights, prefix, name, layout, count, parts * features, cols, &bound));
        bound->chosen = true;
        bound->layout = layout;
        bound->parts = parts;
        return fr_copied_bind(weights, bound, count * parts, features, cols, matrices);
    }
    FR_TRY(fr_bound_find(weights, prefix, name, (uint64_t[]){count, parts * features, cols}, 3, FR_STREAMED, &bound));
    bound->chosen = true;
    return fr_bound_cut(weights, bound, count * parts, parts, features, cols, matrices);
}

fr_status fr_bind_heads(fr_weights *weights, const char *prefix, const char *name, size_t count, size_t features,
                        size_t cols, fr_matrix *matrices) {
    fr_bound *bound;
    char full[FR_TENSOR_NAME];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const fr_tensor *t = fr_tensors_find(&weights->files->tensors, full);
    /* in a quantized folder one storage describes the rows of all heads */
    if (t && t->storage) return fr_bind_parts(weights, prefix, name, count, features, cols, matrices);
    FR_TRY(fr_bound_find(weights, prefix, name, (uint64_t[]){count, features, cols}, 3, FR_STREAMED, &bound));
    return fr_bound_cut(weights, bound, count, 1, features, cols, matrices);
}

fr_status fr_bind_parts(fr_weights *weights, const char *prefix, const char *name, size_t parts, size_t features,
                        size_t cols, fr_matrix *matrices) {
    fr_bound *bound;
    FR_TRY(fr_bound_find(weights, prefix, name, (uint64_t[]){parts * features, cols}, 2, FR_STREAMED, &bound));
    return fr_bound_cut(weights, bound, parts, parts, features, cols, matrices);
}

fr_status fr_bind_rows(fr_weights *weights, const char *prefix, const char *name, const size_t *features, size_t parts,
                       size_t cols, fr_matrix *matrices) {
    fr_bound *bound;
    fr_matrix whole;
    size_t rows = 0, first = 0;
    for (size_t p = 0; p < parts; p++) rows += features[p];
    FR_TRY(fr_bound_find(weights, prefix, name, (uint64_t[]){rows, cols}, 2, FR_STREAMED, &bound));
    for (size_t p = 0, at = 0; p < parts; at += features[p++]) bound->unpacked |= at % FR_TILE_FEATURES != 0;
    FR_TRY(fr_bound_cut(weights, bound, 1, 1, rows, cols, &whole));
    for (size_t p = 0; p < parts; first += features[p++]) {
        if (whole.packed && first % FR_TILE_FEATURES)
            return fr_fail(FR_UNBUILT, "%s: tensor %s is not built: its part %zu begins within a tile of %d rows",
                           weights->files->path, bound->tensor->name, p, FR_TILE_FEATURES);
        matrices[p] = whole;
        matrices[p].features = features[p];
        matrices[p].first += first;
        if (p > 0) matrices[p].stats = NULL; /* all parts read the same rows, so the sums are kept only once */
        matrices[p].data += fr_matrix_features_bytes(&whole, first);
    }
    return FR_OK;
}

fr_status fr_bind_copied_rows(fr_weights *weights, const char *prefix, const char *name, fr_stack_layout layout,
                              const size_t *features, size_t parts, size_t head, size_t cols, fr_matrix *matrices) {
    fr_bound *bound;
    fr_matrix whole;
    size_t rows = 0, first = 0;
    bool turned = layout == FR_LAYOUT_HALVES;
    for (size_t p = 0; p < parts; p++) rows += features[p];
    const uint64_t shape[] = {turned ? cols : rows, turned ? rows : cols};
    FR_TRY(fr_bound_find(weights, prefix, name, shape, 2, FR_STREAMED, &bound));
    FR_TRY(fr_bound_check_float(weights, bound->tensor));
    bound->layout = layout;
    bound->parts = 1;
    bound->head = head;
    bound->key_heads = layout == FR_LAYOUT_HEADS ? features[1] / head : 0;
    FR_TRY(fr_copied_bind(weights, bound, 1, rows, cols, &whole));
    for (size_t p = 0; p < parts; first += features[p++]) {
        matrices[p] = whole;
        matrices[p].features = features[p];
        matrices[p].first = first;
        matrices[p].data += fr_matrix_features_bytes(&whole, first);
    }
    return FR_OK;
}

/* Sets *sorted to whether the file says that it stores this tensor's rows in another order. */
static fr_status sorted_in_file(const fr_weights *weights, const char *name, bool *sorted) {
    fr_text value = {0};
    if (weights->files->gguf) FR_TRY(fr_gguf_text(weights->files->gguf, FR_KEY_SORTED, &value));
    *sorted = value.bytes && value.length == strlen(name) && memcmp(value.bytes, name, value.length) == 0;
    return FR_OK;
}

static fr_status bind_matrix(fr_weights *weights, const char *prefix, const char *name, size_t features, size_t cols,
                             fr_access access, fr_bound **bound, fr_matrix *matrix) {
    FR_TRY(fr_bound_find(weights, prefix, name, (uint64_t[]){features, cols}, 2, access, bound));
    return fr_bound_cut(weights, *bound, 1, 1, features, cols, matrix);
}

fr_status fr_bind_matrix(fr_weights *weights, const char *prefix, const char *name, size_t features, size_t cols,
                         fr_access access, fr_matrix *matrix) {
    fr_bound *bound;
    bool sorted;
    FR_TRY(bind_matrix(weights, prefix, name, features, cols, access, &bound, matrix));
    FR_TRY(sorted_in_file(weights, bound->tensor->name, &sorted));
    if (!sorted || !bound->tensor->packed) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s is packed in the order of clusters, which the configuration doesn't have",
                   weights->files->path, bound->tensor->name);
}

fr_status fr_bind_router(fr_weights *weights, const char *prefix, const char *name, size_t features, size_t cols,
                         fr_matrix *matrix) {
    fr_bound *bound;
    FR_TRY(fr_bound_find(weights, prefix, name, (uint64_t[]){features, cols}, 2, FR_STREAMED, &bound));
    bound->unpacked = true;
    return fr_bound_cut(weights, bound, 1, 1, features, cols, matrix);
}

fr_status fr_bind_expert(fr_weights *weights, const char *prefix, const char *name, size_t features, size_t cols,
                         fr_matrix *matrix) {
    fr_bound *bound;
    FR_TRY(bind_matrix(weights, prefix, name, features, cols, FR_STREAMED, &bound, matrix));
    bound->chosen = true;
    return FR_OK;
}

fr_status fr_bind_sorted(fr_weights *weights, const char *prefix, const char *name, const int32_t *order,
                         size_t features, size_t cols, fr_matrix *matrix, bool *sorted) {
    char full[FR_TENSOR_NAME];
    const fr_tensor *tensor;
    fr_bound *bound;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    FR_TRY(fr_checkpoint_tensor(weights->files, full, &tensor));
    FR_TRY(sorted_in_file(weights, tensor->name, sorted));
    if (tensor->packed && !*sorted)
        return fr_fail(FR_INPUT, "%s: tensor %s is packed, and nothing says in which order: pack the drafter again",
                       weights->files->path, tensor->name);
    *sorted = tensor->packed || fr_bound_packs(tensor);
    FR_TRY(bind_matrix(weights, prefix, name, features, cols, *sorted ? FR_STREAMED : FR_LOOKED_UP, &bound, matrix));
    if (bound->packed) bound->order = order;
    return FR_OK;
}

fr_status fr_bind_convolution(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape,
                              uint32_t dims, fr_matrix *matrix) {
    fr_bound *bound;
    size_t cols = 1;
    FR_TRY(fr_bound_find(weights, prefix, name, shape, dims, FR_STREAMED, &bound));
    FR_TRY(fr_bound_check_float(weights, bound->tensor));
    for (uint32_t i = 1; i < dims; i++) cols *= shape[i];
    bound->rows = shape[0];
    *matrix = (fr_matrix){.data = bound->tensor->data,
                          .type = bound->tensor->type,
                          .features = shape[0],
                          .cols = cols,
                          .row_bytes = fr_dtype_row_bytes(bound->tensor->type, cols)};
    return FR_OK;
}
