/* Tensors whose values are copied as they are bound, norms, biases, indices, frames: see weights.h. Their bytes are
 * needed before anything is placed. */
#include <math.h>
#include <string.h>

#include "formats/error.h"
#include "src/decoder/bound.h"

fr_status fr_bind_frames(fr_weights *weights, const char *prefix, const char *const *names, size_t frames,
                         const uint64_t *shape, fr_matrix *matrix) {
    size_t planes = shape[0] * shape[1], area = shape[2] * shape[3], cols = shape[1] * frames * area;
    fr_bound *bound;
    for (size_t t = 0; t < frames; t++) { /* each of them, before there is room for all */
        FR_TRY(fr_bound_find(weights, prefix, names[t], shape, 4, FR_LOOKED_UP, &bound));
        FR_TRY(fr_bound_check_float(weights, bound->tensor));
    }
    float *joined = fr_arena_take(&weights->vectors, planes * frames * area, sizeof *joined);
    FR_TRY(fr_arena_check(&weights->vectors, "a convolution's weights"));
    for (size_t t = 0; t < frames; t++) {
        FR_TRY(fr_bound_find(weights, prefix, names[t], shape, 4, FR_LOOKED_UP, &bound));
        const fr_tensor *tensor = bound->tensor;
        const uint8_t *plane = tensor->data;
        size_t bytes = fr_dtype_row_bytes(tensor->type, area);
        FR_TRY(fr_bound_fill(weights, tensor, 0, tensor->bytes));
        for (size_t i = 0; i < planes; i++, plane += bytes)
            fr_dtype_decode(tensor->type, plane, joined + (i * frames + t) * area, area);
    }
    *matrix = (fr_matrix){.data = (const uint8_t *)joined,
                          .type = FR_F32,
                          .features = shape[0],
                          .cols = cols,
                          .row_bytes = cols * sizeof *joined};
    return FR_OK;
}

fr_status fr_bind_vector(fr_weights *weights, const char *prefix, const char *name, size_t n, const float **vector) {
    fr_bound *bound;
    FR_TRY(fr_bound_find(weights, prefix, name, (uint64_t[]){n}, 1, FR_STREAMED, &bound));
    const fr_tensor *tensor = bound->tensor;
    FR_TRY(fr_bound_check_float(weights, tensor));
    FR_TRY(fr_bound_fill(weights, tensor, 0, tensor->bytes));
    float *copy = fr_arena_take(&weights->vectors, n, sizeof *copy);
    FR_TRY(fr_arena_check(&weights->vectors, "norm weights"));
    fr_dtype_decode(tensor->type, tensor->data, copy, n);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(copy[i]))
            return fr_fail(FR_INPUT, "%s: tensor %s has a value that is not finite at index %zu", weights->files->path,
                           tensor->name, i);
    *vector = copy;
    return FR_OK;
}

/* A tensor's value of an index. */
static int64_t integer_at(const fr_tensor *tensor, size_t index) {
    int64_t wide;
    int32_t narrow;
    const uint8_t *bytes = tensor->data;
    if (tensor->type == FR_I64) {
        memcpy(&wide, bytes + index * sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&narrow, bytes + index * sizeof narrow, sizeof narrow);
    return narrow;
}

/* step: by how much a value grows from index to index where the tensor has the same. */
static fr_status bind_integers(fr_weights *weights, const char *prefix, const char *name, size_t n, int64_t limit,
                               int64_t step, const int32_t **indices) {
    fr_bound *bound;
    FR_TRY(fr_bound_find(weights, prefix, name, (uint64_t[]){n}, 1, FR_STREAMED, &bound));
    const fr_tensor *tensor = bound->tensor;
    if (tensor->type != FR_I32 && tensor->type != FR_I64)
        return fr_fail(FR_INPUT, "%s: tensor %s has type %s, expected I32 or I64", weights->files->path, tensor->name,
                       fr_dtype_name(tensor->type));
    FR_TRY(fr_bound_fill(weights, tensor, 0, tensor->bytes));
    int32_t *copy = fr_arena_take(&weights->vectors, n, sizeof *copy);
    FR_TRY(fr_arena_check(&weights->vectors, "indices"));
    for (size_t i = 0; i < n; i++) {
        int64_t value = integer_at(tensor, i), low = -step * (int64_t)i;
        if (value < low || value >= low + limit)
            return fr_fail(FR_INPUT, "%s: tensor %s has %lld at index %zu, expected %lld to %lld", weights->files->path,
                           tensor->name, (long long)value, i, (long long)low, (long long)(low + limit - 1));
        copy[i] = (int32_t)(value - low);
    }
    *indices = copy;
    return FR_OK;
}

fr_status fr_bind_indices(fr_weights *weights, const char *prefix, const char *name, size_t n, int64_t limit,
                          const int32_t **indices) {
    return bind_integers(weights, prefix, name, n, limit, 0, indices);
}

fr_status fr_bind_offsets(fr_weights *weights, const char *prefix, const char *name, size_t n, int64_t limit,
                          const int32_t **indices) {
    return bind_integers(weights, prefix, name, n, limit, 1, indices);
}
