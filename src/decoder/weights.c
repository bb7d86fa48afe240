/* Tensors bound by name with their shapes checked: see weights.h. */
#include "src/decoder/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/error.h"
#include "quant/packed.h"

#define MAX_NAME  256
#define PACK_STEP ((size_t)1 << 20) /* bytes of a file that are brought in, packed and given back at a time */

/* Room for the float32 copies at 4 bytes a value: every tensor of one dimension, indices too, and every one that may be
 * a frame's convolution. */
static size_t vector_room(const fr_tensors *tensors) {
    fr_arena measure = {0};
    for (size_t i = 0; i < tensors->count; i++) {
        const fr_tensor *t = &tensors->items[i];
        bool convolution = t->dims == 4 && t->type < FR_FLOAT_TYPES;
        if (t->dims == 1) fr_arena_take(&measure, t->shape[0], sizeof(float));
        if (convolution) fr_arena_take(&measure, t->bytes / fr_dtype_row_bytes(t->type, 1), sizeof(float));
    }
    return measure.used;
}

/* Whether binding a tensor as streamed makes a packed copy of it. */
static bool needs_packing(const fr_tensor *tensor) {
    return fr_packs(tensor->type) && !tensor->packed && tensor->dims >= 2;
}

/* Room for packed copies of all tensors that could want one: pages that nobody touches cost nothing. A matrix, or each
 * entry of a stack, may be cut in two, each with up to a tile of padding less one out. */
static size_t packed_room(const fr_tensors *tensors) {
    fr_arena measure = {0};
    for (size_t i = 0; i < tensors->count; i++) {
        const fr_tensor *t = &tensors->items[i];
        if (!needs_packing(t)) continue;
        size_t entries = t->dims == 3 ? 2 * t->shape[0] : 2, outs = t->shape[t->dims - 2], cols = t->shape[t->dims - 1];
        fr_arena_take(&measure, entries, fr_packed_bytes(t->type, (outs + 1) / 2, cols));
    }
    return measure.used;
}

fr_status fr_weights_open(fr_weights *weights, const fr_checkpoint *files) {
    *weights = (fr_weights){.files = files};
    size_t count = files->tensors.count + 1;
    weights->bound = calloc(count, sizeof *weights->bound);
    if (!weights->bound) return fr_fail_memory("tensor list", count * sizeof *weights->bound);
    FR_TRY(fr_arena_open(&weights->vectors, vector_room(&files->tensors), "norm weights"));
    return fr_arena_open(&weights->packed, packed_room(&files->tensors), "packed weights");
}

void fr_weights_close(fr_weights *weights) {
    fr_arena_close(&weights->vectors);
    fr_arena_close(&weights->packed);
    free(weights->bound);
    fr_notes_free(&weights->notes);
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

/* Finds a tensor of an exact shape and notes it as bound; the note stands until the next call. */
static fr_status bind(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape, uint32_t dims,
                      fr_access access, fr_bound **bound) {
    char full[MAX_NAME], wanted[128], found[128];
    const fr_tensor *t;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    FR_TRY(fr_checkpoint_tensor(weights->files, full, &t));
    if (t->dims != dims || memcmp(t->shape, shape, dims * sizeof *shape) != 0)
        return fr_fail(FR_INPUT, "%s: tensor %s has shape %s, the configuration asks for %s", weights->files->path,
                       full, shape_text(t->shape, t->dims, found, sizeof found),
                       shape_text(shape, dims, wanted, sizeof wanted));
    if (t->type >= FR_WEIGHT_TYPES && dims > 1)
        return fr_fail(FR_INPUT, "%s: tensor %s has type %s, expected a type of weights", weights->files->path, full,
                       fr_dtype_name(t->type));
    for (size_t i = 0; i < weights->count; i++) {
        *bound = &weights->bound[i];
        if ((*bound)->tensor != t) continue;
        if (access == FR_STREAMED) (*bound)->access = access; /* a table that is also the LM head */
        return FR_OK;
    }
    *bound = &weights->bound[weights->count++];
    **bound = (fr_bound){.tensor = t, .rows = dims < 2 ? 1 : (size_t)shape[dims - 2], .matrices = 1, .access = access};
    weights->bytes += t->bytes;
    return FR_OK;
}

static fr_status check_float(const fr_weights *weights, const fr_tensor *tensor) {
    if (tensor->type < FR_FLOAT_TYPES) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s has type %s, expected F32, F16 or BF16", weights->files->path, tensor->name,
                   fr_dtype_name(tensor->type));
}

/* Where the matrices of a streamed tensor will lie, in steps of how many bytes. */
static const uint8_t *lay_out(fr_weights *weights, fr_bound *bound, size_t matrices, size_t outs, size_t cols,
                              size_t *step) {
    const fr_tensor *t = bound->tensor;
    bool packs = bound->packed || (bound->access == FR_STREAMED && needs_packing(t));
    *step = packs || t->packed ? fr_packed_bytes(t->type, outs, cols) : outs * fr_dtype_row_bytes(t->type, cols);
    weights->has_packed |= packs || t->packed;
    if (!packs) return t->data;
    if (!bound->packed) bound->packed = fr_arena_take(&weights->packed, matrices, *step);
    bound->matrices = matrices;
    bound->rows = outs;
    return bound->packed;
}

/* A tensor as `count` matrices; it was written as stacks of `parts`. */
static fr_status cut(fr_weights *weights, fr_bound *bound, size_t count, size_t parts, size_t outs, size_t cols,
                     fr_matrix *matrices) {
    if (bound->tensor->packed && parts > 1 && outs % FR_TILE_OUTS)
        return fr_fail(FR_INPUT, "%s: tensor %s is packed, and its parts of %zu rows are no whole tiles of %d",
                       weights->files->path, bound->tensor->name, outs, FR_TILE_OUTS);
    size_t bytes;
    const uint8_t *data = lay_out(weights, bound, count, outs, cols, &bytes);
    FR_TRY(fr_arena_check(&weights->packed, "packed weights"));
    for (size_t i = 0; i < count; i++)
        matrices[i] = (fr_matrix){.data = data + i * bytes,
                                         .type = bound->tensor->type,
                                         .packed = bound->packed || bound->tensor->packed,
                                         .outs = outs,
                                         .cols = cols,
                                         .row_bytes = fr_dtype_row_bytes(bound->tensor->type, cols)};
    return FR_OK;
}

fr_status fr_bind_stack(fr_weights *weights, const char *prefix, const char *name, size_t count, size_t parts,
                        size_t outs, size_t cols, fr_matrix *matrices) {
    fr_bound *bound;
    FR_TRY(bind(weights, prefix, name, (uint64_t[]){count, parts * outs, cols}, 3, FR_STREAMED, &bound));
    bound->chosen = true;
    return cut(weights, bound, count * parts, parts, outs, cols, matrices);
}

fr_status fr_bind_parts(fr_weights *weights, const char *prefix, const char *name, size_t parts, size_t outs,
                        size_t cols, fr_matrix *matrices) {
    fr_bound *bound;
    FR_TRY(bind(weights, prefix, name, (uint64_t[]){parts * outs, cols}, 2, FR_STREAMED, &bound));
    return cut(weights, bound, parts, parts, outs, cols, matrices);
}

/* Whether the file says that it has this tensor in an order other than its own. */
static fr_status sorted_in_file(const fr_weights *weights, const char *name, bool *sorted) {
    fr_text value = {0};
    if (weights->files->gguf) FR_TRY(fr_gguf_text(weights->files->gguf, FR_KEY_SORTED, &value));
    *sorted = value.bytes && value.length == strlen(name) && memcmp(value.bytes, name, value.length) == 0;
    return FR_OK;
}

static fr_status bind_matrix(fr_weights *weights, const char *prefix, const char *name, size_t outs, size_t cols,
                             fr_access access, fr_bound **bound, fr_matrix *matrix) {
    FR_TRY(bind(weights, prefix, name, (uint64_t[]){outs, cols}, 2, access, bound));
    return cut(weights, *bound, 1, 1, outs, cols, matrix);
}

fr_status fr_bind_matrix(fr_weights *weights, const char *prefix, const char *name, size_t outs, size_t cols,
                         fr_access access, fr_matrix *matrix) {
    fr_bound *bound;
    bool sorted;
    FR_TRY(bind_matrix(weights, prefix, name, outs, cols, access, &bound, matrix));
    FR_TRY(sorted_in_file(weights, bound->tensor->name, &sorted));
    if (!sorted || !bound->tensor->packed) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s is packed in the order of clusters, which the configuration doesn't have",
                   weights->files->path, bound->tensor->name);
}

fr_status fr_bind_sorted(fr_weights *weights, const char *prefix, const char *name, const int32_t *order, size_t outs,
                         size_t cols, fr_matrix *matrix, bool *sorted) {
    char full[MAX_NAME];
    const fr_tensor *tensor;
    fr_bound *bound;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    FR_TRY(fr_checkpoint_tensor(weights->files, full, &tensor));
    FR_TRY(sorted_in_file(weights, tensor->name, sorted));
    if (tensor->packed && !*sorted)
        return fr_fail(FR_INPUT, "%s: tensor %s is packed, and nothing says in which order: pack the drafter again",
                       weights->files->path, tensor->name);
    *sorted = tensor->packed || needs_packing(tensor);
    FR_TRY(bind_matrix(weights, prefix, name, outs, cols, *sorted ? FR_STREAMED : FR_LOOKED_UP, &bound, matrix));
    if (bound->packed) bound->order = order;
    return FR_OK;
}

fr_status fr_bind_convolution(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape,
                              uint32_t dims, fr_matrix *matrix) {
    fr_bound *bound;
    size_t cols = 1;
    FR_TRY(bind(weights, prefix, name, shape, dims, FR_STREAMED, &bound));
    FR_TRY(check_float(weights, bound->tensor));
    for (uint32_t i = 1; i < dims; i++) cols *= shape[i];
    bound->rows = shape[0];
    *matrix = (fr_matrix){.data = bound->tensor->data,
                          .type = bound->tensor->type,
                          .outs = shape[0],
                          .cols = cols,
                          .row_bytes = fr_dtype_row_bytes(bound->tensor->type, cols)};
    return FR_OK;
}

/* Vectors are decoded while the model is opened, so their bytes are needed before fr_weights_place. */
static fr_status fill(const fr_weights *weights, const fr_tensor *tensor, size_t begin, size_t end) {
    const fr_map *map = &weights->files->files[tensor->file];
    size_t at = (size_t)((const uint8_t *)tensor->data - map->bytes);
    return end > begin ? fr_map_fill(map, at + begin, at + end) : FR_OK;
}

fr_status fr_bind_frames(fr_weights *weights, const char *prefix, const char *const *names, size_t frames,
                         const uint64_t *shape, fr_matrix *matrix) {
    size_t planes = shape[0] * shape[1], area = shape[2] * shape[3], cols = shape[1] * frames * area;
    fr_bound *bound;
    for (size_t t = 0; t < frames; t++) { /* each of them, before there is room for all */
        FR_TRY(bind(weights, prefix, names[t], shape, 4, FR_LOOKED_UP, &bound));
        FR_TRY(check_float(weights, bound->tensor));
    }
    float *joined = fr_arena_take(&weights->vectors, planes * frames * area, sizeof *joined);
    FR_TRY(fr_arena_check(&weights->vectors, "a convolution's weights"));
    for (size_t t = 0; t < frames; t++) {
        FR_TRY(bind(weights, prefix, names[t], shape, 4, FR_LOOKED_UP, &bound));
        const fr_tensor *tensor = bound->tensor;
        const uint8_t *plane = tensor->data;
        size_t bytes = fr_dtype_row_bytes(tensor->type, area);
        FR_TRY(fill(weights, tensor, 0, tensor->bytes));
        for (size_t i = 0; i < planes; i++, plane += bytes)
            fr_dtype_decode(tensor->type, plane, joined + (i * frames + t) * area, area);
    }
    *matrix = (fr_matrix){.data = (const uint8_t *)joined,
                          .type = FR_F32,
                          .outs = shape[0],
                          .cols = cols,
                          .row_bytes = cols * sizeof *joined};
    return FR_OK;
}

fr_status fr_bind_vector(fr_weights *weights, const char *prefix, const char *name, size_t n, const float **vector) {
    fr_bound *bound;
    FR_TRY(bind(weights, prefix, name, (uint64_t[]){n}, 1, FR_STREAMED, &bound));
    const fr_tensor *tensor = bound->tensor;
    FR_TRY(check_float(weights, tensor));
    FR_TRY(fill(weights, tensor, 0, tensor->bytes));
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

bool fr_weights_quantized(const fr_weights *weights) {
    for (size_t i = 0; i < weights->count; i++) {
        const fr_bound *bound = &weights->bound[i];
        bool matrix = bound->access == FR_STREAMED && bound->tensor->dims > 1;
        if (matrix && bound->tensor->type >= FR_FLOAT_TYPES) return true;
    }
    return false;
}

void fr_weights_note_slow(fr_weights *weights) {
    size_t counts[FR_WEIGHT_TYPES] = {0}, used = 0;
    char list[256] = "";
    for (size_t i = 0; i < weights->count; i++) {
        const fr_bound *bound = &weights->bound[i];
        fr_dtype type = bound->tensor->type;
        if (bound->access == FR_STREAMED && type >= FR_KERNEL_TYPES && type < FR_WEIGHT_TYPES) counts[type]++;
    }
    for (fr_dtype type = FR_KERNEL_TYPES; type < FR_WEIGHT_TYPES; type++)
        if (counts[type] && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%zu %s", used ? ", " : "", counts[type],
                                     fr_dtype_name(type));
    if (used)
        fr_notes_add(&weights->notes,
                     "%s is slow: types without an integer kernel (%s) are decoded for every product; `forerun "
                     "quantize` writes fast ones, q4_k say, best from the published folder",
                     weights->files->path, list);
}

fr_status fr_bind_indices(fr_weights *weights, const char *prefix, const char *name, size_t n, int64_t limit,
                          const int32_t **indices) {
    fr_bound *bound;
    FR_TRY(bind(weights, prefix, name, (uint64_t[]){n}, 1, FR_STREAMED, &bound));
    const fr_tensor *tensor = bound->tensor;
    if (tensor->type != FR_I32 && tensor->type != FR_I64)
        return fr_fail(FR_INPUT, "%s: tensor %s has type %s, expected I32 or I64", weights->files->path, tensor->name,
                       fr_dtype_name(tensor->type));
    FR_TRY(fill(weights, tensor, 0, tensor->bytes));
    int32_t *copy = fr_arena_take(&weights->vectors, n, sizeof *copy);
    FR_TRY(fr_arena_check(&weights->vectors, "indices"));
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
    fr_failure *failures; /* [threads] of each */
} placing;

/* Whether a load should bring this tensor in. Of a mapped file, look-up tables come in row by row as they are used, and
 * what was packed beforehand with the first step: such a file is there to start at once. */
static bool wanted_now(const fr_weights *weights, const fr_bound *bound) {
    bool mapped = weights->files->files[bound->tensor->file].fd < 0;
    return !mapped || (bound->access == FR_STREAMED && !bound->tensor->packed);
}

/* A thread's share of one tensor that is used as it lies: the rows it will read, of each matrix of a stack. */
static fr_status place_in_file(const fr_weights *weights, const fr_bound *bound, const fr_team *team) {
    const fr_tensor *tensor = bound->tensor;
    size_t begin, end, stacks = tensor->dims == 3 ? tensor->shape[0] : 1;
    fr_partition(bound->rows, FR_OUT_UNIT, team->index, team->count, &begin, &end);
    size_t stack_bytes = stacks ? tensor->bytes / stacks : 0, cols = tensor->shape[tensor->dims - 1];
    size_t row_bytes = bound->rows ? stack_bytes / bound->rows : 0;
    size_t from = tensor->packed ? fr_packed_bytes(tensor->type, begin, cols) : begin * row_bytes;
    size_t to = tensor->packed ? fr_packed_bytes(tensor->type, end, cols) : end * row_bytes;
    for (size_t s = 0; s < stacks; s++) FR_TRY(fill(weights, tensor, s * stack_bytes + from, s * stack_bytes + to));
    return FR_OK;
}

/* Rows from all over the tensor, gathered a tile at a time; its pages are given back when all are done. */
static fr_status pack_sorted(const fr_weights *weights, const fr_bound *bound, size_t begin, size_t end,
                             uint8_t *tiles) {
    const fr_tensor *tensor = bound->tensor;
    size_t cols = tensor->shape[1], row_bytes = fr_dtype_row_bytes(tensor->type, cols);
    uint8_t *rows = malloc(FR_TILE_OUTS * row_bytes);
    if (!rows) return fr_fail_memory("rows to pack", FR_TILE_OUTS * row_bytes);
    fr_status status = FR_OK;
    for (size_t o = begin; o < end && status == FR_OK; o += FR_TILE_OUTS) {
        size_t count = end - o < FR_TILE_OUTS ? end - o : FR_TILE_OUTS;
        for (size_t i = 0; i < count && status == FR_OK; i++) {
            size_t at = (size_t)bound->order[o + i] * row_bytes;
            status = fill(weights, tensor, at, at + row_bytes);
            memcpy(rows + i * row_bytes, (const uint8_t *)tensor->data + at, row_bytes);
        }
        fr_pack_tile(tensor->type, tiles + fr_packed_bytes(tensor->type, o - begin, cols), rows, row_bytes, count,
                     cols);
    }
    free(rows);
    return status;
}

fr_status fr_bound_pack(const fr_weights *weights, const fr_bound *bound, size_t begin, size_t end, uint8_t *tiles) {
    const fr_tensor *tensor = bound->tensor;
    size_t cols = tensor->shape[tensor->dims - 1], row_bytes = fr_dtype_row_bytes(tensor->type, cols);
    size_t tile_bytes = fr_packed_bytes(tensor->type, FR_TILE_OUTS, cols);
    const uint8_t *rows = tensor->data;
    if (bound->order) return pack_sorted(weights, bound, begin, end, tiles);
    FR_TRY(fill(weights, tensor, begin * row_bytes, end * row_bytes));
    for (size_t o = begin; o < end; o += FR_TILE_OUTS, tiles += tile_bytes)
        fr_pack_tile(tensor->type, tiles, rows + o * row_bytes, row_bytes,
                     end - o < FR_TILE_OUTS ? end - o : FR_TILE_OUTS, cols);
    const fr_map *map = &weights->files->files[tensor->file];
    size_t at = (size_t)(rows - map->bytes);
    fr_map_release(map, at + begin * row_bytes, at + end * row_bytes);
    return FR_OK;
}

/* A thread's share of one tensor that is packed: the tiles it will read, of each of its matrices. */
static fr_status place_packed(const fr_weights *weights, const fr_bound *bound, const fr_team *team) {
    const fr_tensor *tensor = bound->tensor;
    size_t cols = tensor->shape[tensor->dims - 1], row_bytes = fr_dtype_row_bytes(tensor->type, cols), begin, end;
    size_t step = PACK_STEP / (row_bytes + 1) / FR_TILE_OUTS * FR_TILE_OUTS + FR_TILE_OUTS;
    fr_partition(bound->rows, FR_OUT_UNIT, team->index, team->count, &begin, &end);
    for (size_t m = 0; m < bound->matrices; m++) {
        uint8_t *packed = bound->packed + m * fr_packed_bytes(tensor->type, bound->rows, cols);
        for (size_t o = begin; o < end; o += step) {
            size_t last = o + step < end ? o + step : end;
            FR_TRY(fr_bound_pack(weights, bound, m * bound->rows + o, m * bound->rows + last,
                                 packed + fr_packed_bytes(tensor->type, o, cols)));
        }
    }
    return FR_OK;
}

static fr_status place_tensor(const fr_weights *weights, const fr_bound *bound, const fr_team *team) {
    return bound->packed ? place_packed(weights, bound, team) : place_in_file(weights, bound, team);
}

static void place(void *context, const fr_team *team) {
    placing *job = context;
    const fr_weights *weights = job->weights;
    uint64_t done = 0;
    for (size_t i = 0; i < weights->count; i++) {
        const fr_bound *bound = &weights->bound[i];
        if (wanted_now(weights, bound) && job->failures[team->index].status == FR_OK)
            job->failures[team->index] = fr_failure_keep(place_tensor(weights, bound, team));
        done += bound->tensor->bytes;
        if (team->index == 0 && job->progress) job->progress(job->context, done, weights->bytes);
    }
}

static void release_sorted(const fr_weights *weights) {
    for (size_t i = 0; i < weights->count; i++) {
        const fr_tensor *tensor = weights->bound[i].tensor;
        const fr_map *map = &weights->files->files[tensor->file];
        size_t at = (size_t)((const uint8_t *)tensor->data - map->bytes);
        if (weights->bound[i].order) fr_map_release(map, at, at + tensor->bytes);
    }
}

fr_status fr_weights_place(const fr_weights *weights, fr_pool *pool, fr_progress_fn *progress, void *context) {
    placing job = {.weights = weights, .progress = progress, .context = context};
    fr_status status = FR_OK;
    job.failures = calloc(FR_MAX_THREADS, sizeof *job.failures);
    if (!job.failures) return fr_fail_memory("the threads that load", FR_MAX_THREADS * sizeof *job.failures);
    fr_pool_run(pool, place, &job);
    for (size_t t = 0; t < FR_MAX_THREADS && status == FR_OK; t++) status = fr_failure_raise(&job.failures[t]);
    free(job.failures);
    if (status == FR_OK) release_sorted(weights);
    return status;
}

fr_status fr_weights_lock(const fr_weights *weights) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < weights->count; i++) {
        const fr_bound *bound = &weights->bound[i];
        const fr_tensor *tensor = bound->tensor;
        uintptr_t first = (uintptr_t)(bound->packed ? bound->packed : tensor->data), begin = first / page * page;
        size_t bytes = tensor->bytes;
        if (bound->packed)
            bytes = bound->matrices * fr_packed_bytes(tensor->type, bound->rows, tensor->shape[tensor->dims - 1]);
        if (bytes && mlock((const void *)begin, first + bytes - begin) != 0)
            return fr_fail(FR_MACHINE,
                           "%s: can't lock %llu MB of weights in memory: raise `ulimit -l` or leave out --mlock",
                           weights->files->path, (unsigned long long)(weights->bytes >> 20));
    }
    return FR_OK;
}
