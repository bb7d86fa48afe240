/* Brings bound tensors into memory, each row by the thread that will read it: see weights.h. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sizes.h"
#include "formats/storage.h"
#include "quant/fp8.h"
#include "quant/packed.h"
#include "src/engine/weights/bound.h"
#include "src/engine/weights/partition.h"

#define PACK_STEP    ((size_t)1 << 20) /* bytes that are read and packed before their pages are given back */
#define STORED_GROUP ((size_t)1 << 24) /* like PACK_STEP, for quantized modules; threads wait after each group */

typedef struct placing {
    const fr_weights *weights;
    size_t begin, end; /* the tensors [begin, end) of weights->bound are placed now */
    uint64_t done;     /* bytes of the tensors before `begin` */
    fr_progress_fn *progress;
    void *context;
    fr_failure *failures; /* [threads] the failure of each thread */
    atomic_bool ended;    /* the progress function has asked to stop */
} placing;

/* Returns true if this tensor should be read while the model is loaded. Some tensors of a mapped file are read later. A
 * look-up table's rows are read when they are used. Experts are read when they are chosen, if memory doesn't hold all
 * of them. Tensors that the file stores in packed form are read by the first forward, so that such a model starts at
 * once. FP8 is never left for later, because its codes are checked. */
static bool wanted_now(const fr_weights *weights, const fr_bound *bound) {
    bool mapped = weights->files->files[bound->tensor->file].fd < 0;
    if (mapped && !bound->packed && bound->chosen && weights->exceed && bound->tensor->type != FR_F8_E4M3) return false;
    return !mapped || (bound->access == FR_STREAMED && !bound->tensor->packed);
}

/* Refuses codes that mean NaN, which kernels don't check. */
static fr_status check_codes(const fr_weights *weights, const fr_tensor *tensor, size_t from, size_t to) {
    const uint8_t *codes = tensor->data;
    size_t at = from + fr_fp8_find_nan(codes + from, to - from);
    if (at >= to) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s has a NaN at index %zu", weights->files->path, tensor->name, at);
}

/* Brings a thread's rows of a tensor into memory, if the tensor is used directly in the file. The rank has one or
 * several runs of rows in each matrix. The thread reads its own part of run number `run`, in each matrix of a
 * stack. */
static fr_status place_in_file(const fr_weights *weights, const fr_bound *bound, size_t run, const fr_team *team) {
    const fr_tensor *tensor = bound->tensor;
    size_t begin, end, first, last, bytes = fr_bound_rows_bytes(bound, bound->rows);
    fr_bound_own_rows(weights, bound, run, team, &begin, &end);
    fr_bound_own_matrices(weights, bound, &first, &last);
    size_t from = fr_bound_rows_bytes(bound, begin), to = fr_bound_rows_bytes(bound, end);
    for (size_t m = first; m < last; m++) {
        FR_TRY(fr_bound_fill(weights, tensor, m * bytes + from, m * bytes + to));
        if (tensor->type == FR_F8_E4M3) FR_TRY(check_codes(weights, tensor, m * bytes + from, m * bytes + to));
    }
    return FR_OK;
}

/* Packs rows [begin, end) of a copy whose rows have another order than the tensor's. The rows of one tile are collected
 * at a time. Any tile may need any page of the file, so the pages are given back only when all tiles are packed. */
static fr_status pack_sorted(const fr_weights *weights, const fr_bound *bound, size_t begin, size_t end,
                             uint8_t *tiles) {
    const fr_tensor *tensor = bound->tensor;
    size_t cols = tensor->shape[1], row_bytes = fr_dtype_row_bytes(tensor->type, cols);
    uint8_t *rows = malloc(FR_TILE_FEATURES * row_bytes);
    if (!rows) return fr_fail_memory("rows to pack", FR_TILE_FEATURES * row_bytes);
    fr_status status = FR_OK;
    for (size_t o = begin; o < end && status == FR_OK; o += FR_TILE_FEATURES) {
        size_t count = end - o < FR_TILE_FEATURES ? end - o : FR_TILE_FEATURES;
        for (size_t i = 0; i < count && status == FR_OK; i++) {
            size_t at = (size_t)bound->order[o + i] * row_bytes;
            status = fr_bound_fill(weights, tensor, at, at + row_bytes);
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
    size_t tile_bytes = fr_packed_bytes(tensor->type, FR_TILE_FEATURES, cols);
    const uint8_t *rows = tensor->data;
    if (bound->order) return pack_sorted(weights, bound, begin, end, tiles);
    FR_TRY(fr_bound_fill(weights, tensor, begin * row_bytes, end * row_bytes));
    for (size_t o = begin; o < end; o += FR_TILE_FEATURES, tiles += tile_bytes)
        fr_pack_tile(tensor->type, tiles, rows + o * row_bytes, row_bytes,
                     end - o < FR_TILE_FEATURES ? end - o : FR_TILE_FEATURES, cols);
    fr_bound_release(weights, tensor, begin * row_bytes, end * row_bytes);
    return FR_OK;
}

/* Packs a thread's rows of a tensor. The rank has one or several runs of rows in each of the tensor's matrices. The
 * thread packs its own part of run number `run`, which is whole tiles, in each matrix. */
static fr_status place_packed(const fr_weights *weights, const fr_bound *bound, size_t run, const fr_team *team) {
    const fr_tensor *tensor = bound->tensor;
    size_t cols = tensor->shape[tensor->dims - 1], row_bytes = fr_dtype_row_bytes(tensor->type, cols), begin, end;
    size_t step = PACK_STEP / (row_bytes + 1) / FR_TILE_FEATURES * FR_TILE_FEATURES + FR_TILE_FEATURES, first, past;
    fr_bound_own_rows(weights, bound, run, team, &begin, &end);
    fr_bound_own_matrices(weights, bound, &first, &past);
    for (size_t m = first; m < past; m++) {
        uint8_t *packed = bound->packed + m * fr_bound_rows_bytes(bound, bound->rows);
        for (size_t o = begin; o < end; o += step) {
            size_t last = o + step < end ? o + step : end;
            FR_TRY(fr_bound_pack(weights, bound, m * bound->rows + o, m * bound->rows + last,
                                 packed + fr_bound_rows_bytes(bound, o)));
        }
    }
    bool mapped = weights->files->files[tensor->file].fd < 0;
    /* the system has also read other ranks' rows near this rank's, so all pages are given back */
    if (fr_bound_has_rank_share(bound) && mapped) fr_bound_release(weights, tensor, 0, tensor->bytes);
    return FR_OK;
}

/* A part is a tensor of codes or scales, for example. Gives the range of a part's bytes that belong to a quantized
 * module. If experts are stacked in the module's tensors, each expert has an equal share of each tensor. */
static void slice_of_part(const fr_storage *storage, const fr_tensor *part, size_t *begin, size_t *end) {
    size_t bytes = (size_t)part->bytes / fr_storage_stacked(storage);
    *begin = storage->first / storage->rows * bytes;
    *end = *begin + bytes;
}

/* Reads a thread's share of a quantized module: an equal share of each of its parts, such as codes or scales. In some
 * storages the codes of one row are spread over the whole part, so a share is not a range of rows. */
static fr_status place_stored(const fr_weights *weights, const fr_bound *bound, const fr_team *team) {
    const fr_tensor *parts[FR_STORAGE_PARTS];
    size_t count = fr_storage_parts(bound->tensor->storage, parts), begin, end, first, past;
    for (size_t i = 0; i < count; i++) {
        slice_of_part(bound->tensor->storage, parts[i], &first, &past);
        fr_partition(past - first, 1, team->index, team->count, &begin, &end);
        FR_TRY(fr_bound_fill(weights, parts[i], first + begin, first + end));
    }
    return FR_OK;
}

static bool has_grouped_tiles(const fr_bound *bound) {
    return bound->tensor->type == FR_STORED && bound->packed && bound->layout == FR_LAYOUT_ROWS;
}

/* The rows of a tile of grouped codes, while they are packed. */
typedef struct unpacked_tile {
    fr_grouped_row rows[FR_TILE_FEATURES];
    float *floats;  /* [16, 2, groups] scales and biases of the rows */
    uint8_t *bytes; /* [16, cols + groups] codes and zeros of the rows */
} unpacked_tile;

static fr_status open_unpacked(unpacked_tile *tile, size_t cols, size_t groups) {
    size_t floats = 2 * groups, bytes = cols + groups;
    tile->floats = malloc(FR_TILE_FEATURES * floats * sizeof *tile->floats);
    tile->bytes = malloc(FR_TILE_FEATURES * bytes);
    if (!tile->floats || !tile->bytes) return fr_fail_memory("rows to pack", FR_TILE_FEATURES * bytes);
    for (size_t i = 0; i < FR_TILE_FEATURES; i++)
        tile->rows[i] = (fr_grouped_row){tile->bytes + i * bytes, tile->floats + i * floats,
                                         tile->bytes + i * bytes + cols, tile->floats + i * floats + groups};
    return FR_OK;
}

/* Packs rows [begin, end) of matrix m. */
static void pack_unpacked(const fr_bound *bound, size_t m, size_t begin, size_t end, const unpacked_tile *tile) {
    const fr_storage *storage = bound->tensor->storage;
    uint8_t *to = bound->packed + m * fr_bound_rows_bytes(bound, bound->rows) + fr_bound_rows_bytes(bound, begin);
    for (size_t o = begin; o < end; o += FR_TILE_FEATURES, to += bound->tiles.tile_bytes) {
        size_t count = fr_smaller(FR_TILE_FEATURES, end - o);
        size_t row = m * bound->rows + o;
        if (!bound->order) fr_storage_unpack(storage, row, count, tile->rows);
        for (size_t i = 0; bound->order && i < count; i++)
            fr_storage_unpack(storage, (size_t)bound->order[row + i], 1, &tile->rows[i]);
        fr_grouped_pack(&bound->tiles, to, tile->rows, count, storage->cols);
    }
}

fr_status fr_bound_pack_stored(const fr_weights *weights, const fr_bound *bound, const fr_team *team) {
    const fr_storage *storage = bound->tensor->storage;
    if (!has_grouped_tiles(bound)) return FR_OK;
    unpacked_tile tile = {0};
    size_t begin, end, first, last;
    fr_status status = open_unpacked(&tile, storage->cols, storage->groups);
    fr_bound_own_matrices(weights, bound, &first, &last);
    for (size_t run = 0; status == FR_OK && run < fr_bound_runs(bound); run++) {
        fr_bound_own_rows(weights, bound, run, team, &begin, &end);
        for (size_t m = first; m < last; m++) pack_unpacked(bound, m, begin, end, &tile);
    }
    free(tile.floats);
    free(tile.bytes);
    return status;
}

fr_status fr_bound_place(const fr_weights *weights, const fr_bound *bound, const fr_team *team) {
    if (bound->layout != FR_LAYOUT_ROWS) return fr_copied_place(weights, bound, team);
    if (bound->tensor->type == FR_STORED) return place_stored(weights, bound, team);
    for (size_t run = 0; run < fr_bound_runs(bound); run++)
        FR_TRY(bound->packed ? place_packed(weights, bound, run, team) : place_in_file(weights, bound, run, team));
    return FR_OK;
}

static fr_status first_failure(const placing *job) {
    fr_status status = FR_OK;
    for (size_t t = 0; t < FR_THREADS_MAX && status == FR_OK; t++) status = fr_failure_raise(&job->failures[t]);
    return status;
}

static void place(void *context, const fr_team *team) {
    placing *job = context;
    const fr_weights *weights = job->weights;
    uint64_t done = job->done;
    for (size_t i = job->begin; i < job->end && !atomic_load(&job->ended); i++) {
        const fr_bound *bound = &weights->bound[i];
        if (wanted_now(weights, bound) && job->failures[team->index].status == FR_OK)
            job->failures[team->index] = fr_failure_keep(fr_bound_place(weights, bound, team));
        done += bound->tensor->bytes;
        if (team->index > 0 || !job->progress || job->progress(job->context, done, weights->bytes)) continue;
        atomic_store(&job->ended, true);
        job->failures[0] = fr_failure_keep(fr_fail_ended(weights->files->path, done, weights->bytes));
    }
}

/* Checks the values of quantized modules, once their parts are in memory. */
static void check_stored(void *context, const fr_team *team) {
    placing *job = context;
    const fr_weights *weights = job->weights;
    size_t begin, end;
    for (size_t i = job->begin; i < job->end && job->failures[team->index].status == FR_OK; i++) {
        const fr_tensor *tensor = weights->bound[i].tensor;
        /* Modules in other layouts were checked when they were copied. */
        if (tensor->type != FR_STORED || weights->bound[i].layout != FR_LAYOUT_ROWS) continue;
        fr_partition(tensor->storage->rows, 1, team->index, team->count, &begin, &end);
        job->failures[team->index] =
            fr_failure_keep(fr_storage_check(tensor->storage, begin, end, weights->files->path));
    }
}

/* Packs the quantized modules that have tiles. */
static void pack_stored(void *context, const fr_team *team) {
    placing *job = context;
    const fr_weights *weights = job->weights;
    for (size_t i = job->begin; i < job->end && job->failures[team->index].status == FR_OK; i++)
        job->failures[team->index] = fr_failure_keep(fr_bound_pack_stored(weights, &weights->bound[i], team));
}

/* Writes a block of a matrix's rows, [features, cols], as columns of `to`, [cols, features]. */
static void transpose_rows(const fr_matrix *from, size_t begin, size_t end, float *rows, float *to) {
    for (size_t r = begin; r < end; r++) fr_matrix_decode(from, r, rows + (r - begin) * from->cols);
    for (size_t c = 0; c < from->cols; c++)
        for (size_t r = begin; r < end; r++) to[c * from->features + r] = rows[(r - begin) * from->cols + c];
}

static fr_status transpose_share(const fr_weights *weights, const fr_transposed *t, const fr_team *team) {
    size_t begin, end, first, last, features = t->from->features, cols = t->from->cols;
    float *rows = malloc(FR_FEATURE_UNIT * cols * sizeof *rows);
    if (!rows) return fr_fail_memory("rows to transpose", FR_FEATURE_UNIT * cols * sizeof *rows);
    fr_transposed_own(weights, t, &first, &last);
    fr_part_heads(team, last - first, 1, &begin, &end);
    for (size_t m = first + begin; m < first + end; m++)
        for (size_t r = 0; r < features; r += FR_FEATURE_UNIT)
            transpose_rows(&t->from[m], r, fr_smaller(r + FR_FEATURE_UNIT, features), rows,
                           t->to + m * cols * features);
    free(rows);
    return FR_OK;
}

static void transpose(void *context, const fr_team *team) {
    placing *job = context;
    const fr_weights *weights = job->weights;
    for (size_t i = 0; i < weights->transposed_count; i++)
        if (job->failures[team->index].status == FR_OK)
            job->failures[team->index] = fr_failure_keep(transpose_share(weights, &weights->transposed[i], team));
}

void fr_weights_release(const fr_weights *weights, const fr_tensor *tensor) {
    const fr_bound *bound = fr_bound_of(weights, tensor);
    if (bound && bound->packed) fr_bound_release(weights, tensor, 0, tensor->bytes);
}

/* For experts that don't stay in memory, tells the system to read only the bytes that are asked for. When an expert is
 * chosen, all of its bytes are requested (experts.c), so reading ahead around them would be useless. */
static void scatter_experts(const fr_weights *weights) {
    for (size_t i = 0; i < weights->count && weights->exceed; i++) {
        const fr_tensor *tensor = weights->bound[i].tensor;
        const fr_map *map = &weights->files->files[tensor->file];
        size_t at = (size_t)((const uint8_t *)tensor->data - map->bytes);
        if (weights->bound[i].chosen) fr_map_scatter(map, at, at + tensor->bytes);
    }
}

/* Gives back the pages of a tensor once its last tile has been packed. This is for tensors whose tiles may each have
 * read any page: those whose tiles have the rows in another order, and those with grouped codes. */
static void release_packed(const fr_weights *weights, const fr_bound *bound) {
    const fr_tensor *parts[FR_STORAGE_PARTS];
    bool grouped = has_grouped_tiles(bound);
    size_t count = grouped ? fr_storage_parts(bound->tensor->storage, parts) : 0;
    for (size_t i = 0; i < count; i++) {
        size_t first, past;
        slice_of_part(bound->tensor->storage, parts[i], &first, &past);
        fr_bound_release(weights, parts[i], first, past);
    }
    if (!grouped && bound->order) fr_bound_release(weights, bound->tensor, 0, bound->tensor->bytes);
}

/* Sets the end of a run of tensors, which begins at job->begin. The run ends after STORED_GROUP bytes of quantized
 * modules. If fewer bytes of these are left, the run ends after the last tensor. */
static void end_run(placing *job) {
    const fr_weights *weights = job->weights;
    size_t stored = 0;
    for (job->end = job->begin; job->end < weights->count && stored < STORED_GROUP; job->end++) {
        const fr_tensor *tensor = weights->bound[job->end].tensor;
        if (tensor->type == FR_STORED) stored += tensor->bytes;
    }
}

/* Brings a run of tensors into memory, and gives back the pages of the file that are not needed after packing. */
static fr_status place_run(placing *job, fr_pool *pool) {
    const fr_weights *weights = job->weights;
    fr_pool_run(pool, place, job);
    FR_TRY(first_failure(job));
    if (weights->files->storages) {
        fr_pool_run(pool, check_stored, job);
        FR_TRY(first_failure(job));
        fr_pool_run(pool, pack_stored, job);
        FR_TRY(first_failure(job));
    }
    for (size_t i = job->begin; i < job->end; i++) {
        release_packed(weights, &weights->bound[i]);
        job->done += weights->bound[i].tensor->bytes;
    }
    return FR_OK;
}

fr_status fr_weights_place(fr_weights *weights, fr_pool *pool, fr_progress_fn *progress, void *context) {
    placing job = {.weights = weights, .progress = progress, .context = context};
    job.failures = calloc(FR_THREADS_MAX, sizeof *job.failures);
    if (!job.failures) return fr_fail_memory("the threads that load", FR_THREADS_MAX * sizeof *job.failures);
    fr_weights_separate(weights);
    fr_status status = FR_OK;
    for (job.end = 0; status == FR_OK && job.end < weights->count;) {
        job.begin = job.end;
        end_run(&job);
        status = place_run(&job, pool);
    }
    if (status == FR_OK && weights->transposed_count) {
        fr_pool_run(pool, transpose, &job);
        status = first_failure(&job);
    }
    free(job.failures);
    scatter_experts(weights);
    weights->placed = true;
    return status;
}

static bool lock(const uint8_t *from, size_t bytes) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)from / page * page;
    return bytes == 0 || mlock((const void *)begin, (uintptr_t)from + bytes - begin) == 0;
}

/* Locks one run of the rank's own rows in memory, in each of the tensor's matrices. */
static bool lock_run(const fr_weights *weights, const fr_bound *bound, size_t run) {
    size_t step = fr_bound_bytes(bound) / fr_larger(fr_bound_matrices(bound), 1), begin, end, first, last;
    fr_bound_own_rows(weights, bound, run, &(fr_team){.count = 1}, &begin, &end);
    fr_bound_own_matrices(weights, bound, &first, &last);
    size_t from = fr_bound_rows_bytes(bound, begin), to = fr_bound_rows_bytes(bound, end);
    bool locked = true;
    for (size_t m = first; m < last; m++) locked &= lock(fr_bound_data(bound) + m * step + from, to - from);
    return locked;
}

/* Locks a tensor in memory: only the rank's own rows if ranks divide it, otherwise all of it. */
fr_status fr_bound_lock(const fr_weights *weights, const fr_bound *bound) {
    bool shared = fr_bound_has_rank_share(bound), locked = shared || lock(fr_bound_data(bound), fr_bound_bytes(bound));
    for (size_t run = 0; shared && run < fr_bound_runs(bound); run++) locked &= lock_run(weights, bound, run);
    if (locked) return FR_OK;
    return fr_fail_about(FR_OPT_MLOCK, FR_MACHINE,
                         "%s: can't lock %llu MB of weights in memory: the system's limit is `ulimit -l`",
                         weights->files->path, (unsigned long long)(weights->bytes >> 20));
}

fr_status fr_weights_lock(const fr_weights *weights) {
    for (size_t i = 0; i < weights->count; i++) FR_TRY(fr_bound_lock(weights, &weights->bound[i]));
    return FR_OK;
}
