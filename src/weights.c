/* Tensors bound by name with their shapes checked: see weights.h. */
#include "src/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/error.h"

#define MAX_NAME 256

/* Room for the float32 copies: every tensor of one dimension, and indices, at 4 bytes a value. */
static size_t vector_room(const fr_tensors *tensors) {
    fr_arena measure = {0};
    for (size_t i = 0; i < tensors->count; i++)
        if (tensors->items[i].dims == 1) fr_arena_take(&measure, tensors->items[i].shape[0], sizeof(float));
    return measure.used;
}

fr_status fr_weights_open(fr_weights *weights, const fr_checkpoint *files) {
    *weights = (fr_weights){.files = files};
    size_t count = files->tensors.count + 1;
    weights->bound = calloc(count, sizeof *weights->bound);
    if (!weights->bound) return fr_fail_memory("tensor list", count * sizeof *weights->bound);
    return fr_arena_open(&weights->vectors, vector_room(&files->tensors), "norm weights");
}

void fr_weights_close(fr_weights *weights) {
    fr_arena_close(&weights->vectors);
    free(weights->bound);
    *weights = (fr_weights){0};
}

/* "[8, 128, 32]" into text. */
static const char *shape_text(const uint64_t *shape, size_t dims, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "[");
    for (size_t i = 0; i < dims && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%llu", i ? ", " : "", (unsigned long long)shape[i]);
    if (used < size) snprintf(text + used, size - used, "]");
    return text;
}

bool fr_weights_has(const fr_weights *weights, const char *prefix, const char *name) {
    char full[MAX_NAME];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return fr_tensors_find(&weights->files->tensors, full) != NULL;
}

/* Finds a tensor of an exact shape and notes it as bound. */
static fr_status bind(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape, uint32_t dims,
                      fr_access access, const fr_tensor **tensor) {
    char full[MAX_NAME], wanted[128], found[128];
    const fr_tensor *t;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    FR_TRY(fr_checkpoint_tensor(weights->files, full, &t));
    if (t->dims != dims || memcmp(t->shape, shape, dims * sizeof *shape) != 0)
        return fr_fail(FR_INPUT, "%s: tensor %s has shape %s, the configuration asks for %s", weights->files->path,
                       full, shape_text(t->shape, t->dims, found, sizeof found),
                       shape_text(shape, dims, wanted, sizeof wanted));
    size_t rows = dims < 2 ? 1 : (size_t)shape[dims - 2];
    for (size_t i = 0; i < weights->count; i++) {
        if (weights->bound[i].tensor != t) continue;
        if (access == FR_STREAMED) weights->bound[i].access = access; /* a table that is also the LM head */
        *tensor = t;
        return FR_OK;
    }
    weights->bound[weights->count++] = (fr_bound){.tensor = t, .rows = rows, .access = access};
    weights->bytes += t->bytes;
    *tensor = t;
    return FR_OK;
}

static fr_status check_float(const fr_weights *weights, const fr_tensor *tensor) {
    if (tensor->type < FR_FLOAT_TYPES) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s has type %s, expected F32, F16 or BF16", weights->files->path, tensor->name,
                   fr_dtype_name(tensor->type));
}

fr_status fr_bind_stack(fr_weights *weights, const char *prefix, const char *name, size_t count, size_t outs,
                        size_t cols, fr_matrix *matrices) {
    const fr_tensor *tensor;
    FR_TRY(bind(weights, prefix, name, (uint64_t[]){count, outs, cols}, 3, FR_STREAMED, &tensor));
    FR_TRY(check_float(weights, tensor));
    size_t row_bytes = fr_dtype_row_bytes(tensor->type, cols);
    for (size_t i = 0; i < count; i++)
        matrices[i] = (fr_matrix){.data = (const uint8_t *)tensor->data + i * outs * row_bytes,
                                  .type = tensor->type,
                                  .outs = outs,
                                  .cols = cols,
                                  .row_bytes = row_bytes};
    return FR_OK;
}

fr_status fr_bind_matrix(fr_weights *weights, const char *prefix, const char *name, size_t outs, size_t cols,
                         fr_access access, fr_matrix *matrix) {
    const fr_tensor *tensor;
    FR_TRY(bind(weights, prefix, name, (uint64_t[]){outs, cols}, 2, access, &tensor));
    FR_TRY(check_float(weights, tensor));
    *matrix = (fr_matrix){.data = tensor->data,
                          .type = tensor->type,
                          .outs = outs,
                          .cols = cols,
                          .row_bytes = fr_dtype_row_bytes(tensor->type, cols)};
    return FR_OK;
}

/* Vectors are decoded while the model is opened, so their bytes are needed before fr_weights_place. */
static fr_status fill(const fr_weights *weights, const fr_tensor *tensor, size_t begin, size_t end) {
    const fr_map *map = &weights->files->files[tensor->file];
    size_t at = (size_t)((const uint8_t *)tensor->data - map->bytes);
    return end > begin ? fr_map_fill(map, at + begin, at + end) : FR_OK;
}

fr_status fr_bind_vector(fr_weights *weights, const char *prefix, const char *name, size_t n, const float **vector) {
    const fr_tensor *tensor;
    FR_TRY(bind(weights, prefix, name, (uint64_t[]){n}, 1, FR_STREAMED, &tensor));
    FR_TRY(check_float(weights, tensor));
    FR_TRY(fill(weights, tensor, 0, tensor->bytes));
    float *copy = fr_arena_take(&weights->vectors, n, sizeof *copy);
    fr_dtype_decode(tensor->type, tensor->data, copy, n);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(copy[i]))
            return fr_fail(FR_INPUT, "%s: tensor %s has a value that is not finite at index %zu", weights->files->path,
                           tensor->name, i);
    *vector = copy;
    return FR_OK;
}

fr_status fr_bind_indices(fr_weights *weights, const char *prefix, const char *name, size_t n, int64_t limit,
                          const int32_t **indices) {
    const fr_tensor *tensor;
    FR_TRY(bind(weights, prefix, name, (uint64_t[]){n}, 1, FR_STREAMED, &tensor));
    if (tensor->type != FR_I32 && tensor->type != FR_I64)
        return fr_fail(FR_INPUT, "%s: tensor %s has type %s, expected I32 or I64", weights->files->path, tensor->name,
                       fr_dtype_name(tensor->type));
    FR_TRY(fill(weights, tensor, 0, tensor->bytes));
    int32_t *copy = fr_arena_take(&weights->vectors, n, sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        int64_t value;
        if (tensor->type == FR_I64) {
            memcpy(&value, (const uint8_t *)tensor->data + i * sizeof value, sizeof value);
        } else {
            int32_t narrow;
            memcpy(&narrow, (const uint8_t *)tensor->data + i * sizeof narrow, sizeof narrow);
            value = narrow;
        }
        if (value < 0 || value >= limit)
            return fr_fail(FR_INPUT, "%s: tensor %s has %lld at index %zu, expected 0 to %lld", weights->files->path,
                           tensor->name, (long long)value, i, (long long)limit - 1);
        copy[i] = (int32_t)value;
    }
    *indices = copy;
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- placing */

typedef struct placing {
    const fr_weights *weights;
    fr_progress_fn *progress;
    void *context;
    fr_status status[FR_MAX_THREADS];
} placing;

/* Whether a load should bring this tensor in: look-up tables of a mapped file come in row by row as they are used. */
static bool wanted_now(const fr_weights *weights, const fr_bound *bound) {
    return bound->access == FR_STREAMED || weights->files->files[bound->tensor->file].fd >= 0;
}

/* A thread's share of one tensor: the rows it will read, of each matrix of a stack. */
static fr_status place_tensor(const fr_weights *weights, const fr_bound *bound, const fr_team *team) {
    const fr_tensor *tensor = bound->tensor;
    size_t begin, end, stacks = tensor->dims == 3 ? tensor->shape[0] : 1;
    fr_partition(bound->rows, FR_OUT_UNIT, team->index, team->count, &begin, &end);
    size_t stack_bytes = stacks ? tensor->bytes / stacks : 0;
    size_t row_bytes = bound->rows ? stack_bytes / bound->rows : 0;
    for (size_t s = 0; s < stacks; s++)
        FR_TRY(fill(weights, tensor, s * stack_bytes + begin * row_bytes, s * stack_bytes + end * row_bytes));
    return FR_OK;
}

static void place(void *context, const fr_team *team) {
    placing *job = context;
    const fr_weights *weights = job->weights;
    uint64_t done = 0;
    for (size_t i = 0; i < weights->count; i++) {
        const fr_bound *bound = &weights->bound[i];
        if (wanted_now(weights, bound) && job->status[team->index] == FR_OK)
            job->status[team->index] = place_tensor(weights, bound, team);
        done += bound->tensor->bytes;
        if (team->index == 0 && job->progress) job->progress(job->context, done, weights->bytes);
    }
}

fr_status fr_weights_place(const fr_weights *weights, fr_pool *pool, fr_progress_fn *progress, void *context) {
    placing job = {.weights = weights, .progress = progress, .context = context};
    fr_pool_run(pool, place, &job);
    for (size_t t = 0; t < FR_MAX_THREADS; t++)
        if (job.status[t] != FR_OK)
            return fr_fail(job.status[t], "%s: a weight file could not be read to its end", weights->files->path);
    return FR_OK;
}

fr_status fr_weights_lock(const fr_weights *weights) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < weights->count; i++) {
        const fr_tensor *tensor = weights->bound[i].tensor;
        uintptr_t begin = (uintptr_t)tensor->data / page * page;
        if (tensor->bytes && mlock((const void *)begin, (uintptr_t)tensor->data + tensor->bytes - begin) != 0)
            return fr_fail(FR_MACHINE,
                           "%s: can't lock %llu MB of weights in memory: raise `ulimit -l` or leave out --mlock",
                           weights->files->path, (unsigned long long)(weights->bytes >> 20));
    }
    return FR_OK;
}
