/* Binds tensors whose values are copied when they are bound: norms, biases, indices, frames (see weights.h). The arena
 * of these copies is filled before any weights are placed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/storage.h"
#include "kernels/double_math.h"
#include "src/engine/weights/bound.h"

fr_status fr_bind_frames(fr_weights *weights, const char *prefix, const char *const *names, size_t frames,
                         const uint64_t *shape, fr_matrix *matrix) {
    size_t planes = shape[0] * shape[1], area = shape[2] * shape[3], cols = shape[1] * frames * area;
    fr_bound *bound;
    for (size_t t = 0; t < frames; t++) { /* check all frames before taking room for them */
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

float fr_value_of(fr_values values, float written) {
    if (values == FR_LESS_ONE) return 1.0f + written;
    if (values != FR_LOG_OF_MINUS && values != FR_LOG_OF) return written;
    float value = written > 88.0f ? INFINITY : written < -100.0f ? 0.0f : (float)fr_exp_double((double)written);
    return values == FR_LOG_OF ? value : -value;
}

static fr_status check_finite(const fr_weights *weights, const fr_tensor *tensor, const float *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return fr_fail(FR_INPUT, "%s: tensor %s has a value that is not finite at index %zu", weights->files->path,
                           tensor->name, i);
    return FR_OK;
}

/* Reads a float tensor of n values into memory, and reserves room for its float32 copy. */
static fr_status take_floats(fr_weights *weights, const fr_tensor *tensor, size_t n, float **copy) {
    FR_TRY(fr_bound_check_float(weights, tensor));
    FR_TRY(fr_bound_fill(weights, tensor, 0, tensor->bytes));
    *copy = fr_arena_take(&weights->vectors, n, sizeof **copy);
    return fr_arena_check(&weights->vectors, "norm weights");
}

fr_status fr_bind_values(fr_weights *weights, const char *prefix, const char *name, size_t n, fr_values values,
                         const float **vector) {
    fr_bound *bound;
    float *copy;
    FR_TRY(fr_bound_find(weights, prefix, name, (uint64_t[]){n}, 1, FR_STREAMED, &bound));
    FR_TRY(take_floats(weights, bound->tensor, n, &copy));
    fr_dtype_decode(bound->tensor->type, bound->tensor->data, copy, n);
    for (size_t i = 0; i < n; i++) copy[i] = fr_value_of(values, copy[i]);
    *vector = copy;
    return check_finite(weights, bound->tensor, copy, n);
}

void fr_spell_numbered(const char *pattern, size_t number, char *name, size_t size) {
    const char *star = strchr(pattern, '*');
    snprintf(name, size, "%.*s%zu%s", (int)(star - pattern), pattern, number, star + 1);
}

fr_status fr_bind_numbered(fr_weights *weights, const char *prefix, const char *pattern, size_t count, size_t n,
                           const float **vectors) {
    char name[FR_TENSOR_NAME];
    fr_bound *bound;
    for (size_t i = 0; i < count; i++) { /* check all vectors before taking room for them */
        fr_spell_numbered(pattern, i, name, sizeof name);
        FR_TRY(fr_bound_find(weights, prefix, name, (uint64_t[]){n}, 1, FR_STREAMED, &bound));
        FR_TRY(fr_bound_check_float(weights, bound->tensor));
    }
    float *joined = fr_arena_take(&weights->vectors, count * n, sizeof *joined);
    FR_TRY(fr_arena_check(&weights->vectors, "norm weights"));
    for (size_t i = 0; i < count; i++) {
        fr_spell_numbered(pattern, i, name, sizeof name);
        FR_TRY(fr_bound_find(weights, prefix, name, (uint64_t[]){n}, 1, FR_STREAMED, &bound));
        FR_TRY(fr_bound_fill(weights, bound->tensor, 0, bound->tensor->bytes));
        fr_dtype_decode(bound->tensor->type, bound->tensor->data, joined + i * n, n);
        FR_TRY(check_finite(weights, bound->tensor, joined + i * n, n));
    }
    *vectors = joined;
    return FR_OK;
}

fr_status fr_bind_vector(fr_weights *weights, const char *prefix, const char *name, size_t n, const float **vector) {
    return fr_bind_values(weights, prefix, name, n, FR_AS_THEY_ARE, vector);
}

fr_status fr_bind_head_values(fr_weights *weights, const char *prefix, const char *name, size_t n, size_t keys,
                              size_t head, const float **vector) {
    fr_bound *bound;
    float *copy;
    size_t all = n + 2 * keys;
    FR_TRY(fr_bound_find(weights, prefix, name, (uint64_t[]){all}, 1, FR_STREAMED, &bound));
    FR_TRY(take_floats(weights, bound->tensor, all, &copy));
    float *stored = malloc(all * sizeof *stored);
    if (!stored) return fr_fail_memory("biases of heads", all * sizeof *stored);
    fr_dtype_decode(bound->tensor->type, bound->tensor->data, stored, all);
    for (size_t i = 0; i < all; i++) copy[i] = stored[fr_row_by_heads(i, all, head, keys / head)];
    free(stored);
    *vector = copy;
    return check_finite(weights, bound->tensor, copy, all);
}

fr_status fr_bind_values_in_rows(fr_weights *weights, const char *prefix, const char *name, size_t n, fr_values values,
                                 const float **vector) {
    char full[FR_TENSOR_NAME];
    float *copy;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const fr_tensor *tensor = fr_tensors_find(&weights->files->tensors, full);
    uint64_t count = 1;
    for (uint32_t d = 0; tensor && d < tensor->dims && count <= n; d++)
        count = tensor->shape[d] <= n ? count * tensor->shape[d] : 0;
    /* In Kimi Linear's folders the tensor has four dimensions, all but one of size 1. */
    uint32_t least = weights->files->gguf ? 2 : 4;
    if (!tensor || tensor->dims < least || count != n) return fr_bind_values(weights, prefix, name, n, values, vector);
    FR_TRY(fr_bind_array(weights, prefix, name, tensor->shape, tensor->dims, vector));
    copy = (float *)*vector; /* the arena's own copy */
    for (size_t i = 0; i < n; i++) copy[i] = fr_value_of(values, copy[i]);
    return check_finite(weights, tensor, copy, n);
}

/* Decodes a quantized matrix whose values are needed as floats. */
static fr_status take_stored(fr_weights *weights, const fr_tensor *tensor, float **copy) {
    const fr_storage *storage = tensor->storage;
    const fr_tensor *parts[FR_STORAGE_PARTS];
    size_t count = fr_storage_parts(storage, parts);
    for (size_t i = 0; i < count; i++) FR_TRY(fr_bound_fill(weights, parts[i], 0, parts[i]->bytes));
    FR_TRY(fr_storage_check(storage, 0, storage->rows, weights->files->path));
    *copy = fr_arena_take(&weights->vectors, storage->rows * storage->cols, sizeof **copy);
    FR_TRY(fr_arena_check(&weights->vectors, "norm weights"));
    for (size_t r = 0; r < storage->rows; r++)
        fr_storage_decode(storage, r, 0, storage->cols, *copy + r * storage->cols);
    return FR_OK;
}

fr_status fr_bind_array(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape, uint32_t dims,
                        const float **values) {
    size_t n = 1;
    fr_bound *bound;
    float *copy;
    for (uint32_t d = 0; d < dims; d++) n *= shape[d];
    FR_TRY(fr_bound_find(weights, prefix, name, shape, dims, FR_STREAMED, &bound));
    if (bound->tensor->type == FR_STORED) {
        FR_TRY(take_stored(weights, bound->tensor, &copy));
    } else {
        FR_TRY(take_floats(weights, bound->tensor, n, &copy));
        fr_dtype_decode(bound->tensor->type, bound->tensor->data, copy, n);
    }
    *values = copy;
    return check_finite(weights, bound->tensor, copy, n);
}

fr_status fr_bind_scalar(fr_weights *weights, const char *prefix, const char *name, float *value) {
    char full[FR_TENSOR_NAME];
    const float *values;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const fr_tensor *tensor = fr_tensors_find(&weights->files->tensors, full);
    uint32_t dims = tensor && tensor->dims == 0 ? 0 : 1;
    FR_TRY(fr_bind_array(weights, prefix, name, (uint64_t[]){1}, dims, &values));
    *value = *values;
    return FR_OK;
}

fr_status fr_bind_columns(fr_weights *weights, const char *prefix, const char *name, size_t features, size_t cols,
                          fr_matrix *matrix) {
    fr_bound *bound;
    float *turned;
    FR_TRY(fr_bound_find(weights, prefix, name, (uint64_t[]){cols, features}, 2, FR_STREAMED, &bound));
    FR_TRY(take_floats(weights, bound->tensor, features * cols, &turned));
    const fr_tensor *tensor = bound->tensor;
    const uint8_t *bytes = tensor->data;
    float *row = malloc(features * sizeof *row);
    if (!row) return fr_fail_memory("a row of a projector", features * sizeof *row);
    for (size_t c = 0; c < cols; c++, bytes += fr_dtype_row_bytes(tensor->type, features)) {
        fr_dtype_decode(tensor->type, bytes, row, features);
        for (size_t i = 0; i < features; i++) turned[i * cols + c] = row[i];
    }
    free(row);
    *matrix = (fr_matrix){.data = (const uint8_t *)turned,
                          .type = FR_F32,
                          .features = features,
                          .cols = cols,
                          .row_bytes = cols * sizeof *turned};
    return check_finite(weights, tensor, turned, features * cols);
}

fr_status fr_bind_row(fr_weights *weights, const char *prefix, const char *name, size_t n, const float **vector) {
    char full[FR_TENSOR_NAME];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const fr_tensor *tensor = fr_tensors_find(&weights->files->tensors, full);
    if (tensor && tensor->dims == 1) return fr_bind_vector(weights, prefix, name, n, vector);
    return fr_bind_array(weights, prefix, name, (uint64_t[]){1, n}, 2, vector);
}

fr_status fr_bind_vectors(fr_weights *weights, const char *prefix, const char *name, size_t count, size_t n,
                          size_t parts, const float **vectors) {
    fr_bound *bound;
    float *out, *row;
    FR_TRY(fr_bound_find(weights, prefix, name, (uint64_t[]){count, parts * n}, 2, FR_STREAMED, &bound));
    FR_TRY(take_floats(weights, bound->tensor, count * parts * n, &out));
    const fr_tensor *tensor = bound->tensor;
    const uint8_t *bytes = tensor->data;
    row = malloc(parts * n * sizeof *row);
    if (!row) return fr_fail_memory("a row of biases", parts * n * sizeof *row);
    for (size_t c = 0; c < count; c++, bytes += fr_dtype_row_bytes(tensor->type, parts * n)) {
        fr_dtype_decode(tensor->type, bytes, row, parts * n);
        for (size_t i = 0; i < parts * n; i++) out[(i % parts * count + c) * n + i / parts] = row[i];
    }
    free(row);
    for (size_t p = 0; p < parts; p++) vectors[p] = out + p * count * n;
    return check_finite(weights, tensor, out, count * parts * n);
}

fr_status fr_bind_conv(fr_weights *weights, const char *prefix, const char *name, size_t channels, size_t conv_kernel,
                       const float **turned) {
    fr_bound *bound;
    float *out, row[FR_CONV_KERNEL_MAX];
    uint32_t dims = weights->files->gguf ? 2 : 3;           /* in folders the tensor is a convolution with one channel
                                                             * per group */
    bool last = dims == 2 || weights->files->channels_last; /* if true, the dimension of size 1, if there is one, comes
                                                             * last */
    const uint64_t shape[] = {channels, last ? conv_kernel : 1, last ? 1 : conv_kernel};
    const uint64_t whole[] = {1, channels, 1,
                              conv_kernel}; /* a few families' GGUF files have this shape, or leave out the first
                                             * dimensions */
    char full[FR_TENSOR_NAME];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const fr_tensor *stored = fr_tensors_find(&weights->files->tensors, full);
    size_t before = dims == 2 && stored && stored->dims > 2 && stored->dims <= 4 ? 4 - stored->dims : 4;
    FR_TRY(fr_bound_find(weights, prefix, name, before < 4 ? whole + before : shape,
                         before < 4 ? 4 - (uint32_t)before : dims, FR_STREAMED, &bound));
    FR_TRY(take_floats(weights, bound->tensor, channels * conv_kernel, &out));
    const fr_tensor *tensor = bound->tensor;
    const uint8_t *bytes = tensor->data;
    for (size_t c = 0; c < channels; c++, bytes += fr_dtype_row_bytes(tensor->type, conv_kernel)) {
        fr_dtype_decode(tensor->type, bytes, row, conv_kernel);
        for (size_t t = 0; t < conv_kernel; t++) out[t * channels + c] = row[t];
    }
    *turned = out;
    return check_finite(weights, tensor, out, channels * conv_kernel);
}

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

/* Binds integers. step: the tensor stores value - step * index, so step * index is added here. */
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
