/* Writes a GGUF file whose matrices are packed in the layout that kernels read from memory (fr_lab_pack).
 *
 * In: a GGUF target or drafter. Out: a GGUF file with the same metadata and tensors, in which every matrix that a step
 * reads whole is stored packed (FR_GGUF_PACKED). To find these matrices, the model and its MTP layer are bound. A
 * tensor is unchanged if only single rows of it are read, if it has float values, or if its type has no kernel. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "forerun_lab.h"
#include "formats/gguf_write.h"
#include "kernels/dispatch.h"
#include "quant/packed.h"
#include "src/engine/draft/draft.h"
#include "src/engine/families/architecture.h"
#include "src/engine/vision/mmproj.h"
#include "src/engine/weights/bound.h"

#define STEP ((size_t)4 << 20) /* bytes that are packed at a time; a larger tile is packed alone */

typedef struct packing {
    const fr_checkpoint *files;
    const fr_weights *weights;
    const fr_weights *beside; /* weights of an MTP layer in the same files; NULL: there is none */
    fr_gguf_writer writer;
    fr_progress_fn *progress;
    void *context;
    uint64_t done;
} packing;

/* Gives the matrix if the file will have it packed, otherwise NULL. The entries of a stack are packed one by one. A
 * stack stays unchanged if its entries end within a tile. */
static const fr_bound *packed_in_file(const packing *job, const fr_tensor *tensor) {
    const fr_bound *bound = fr_bound_of(job->weights, tensor);
    if (!bound && job->beside) bound = fr_bound_of(job->beside, tensor);
    if (!bound || !bound->packed) return NULL;
    size_t entries = tensor->dims == 3 ? tensor->shape[0] : 1;
    return bound->matrices == entries || bound->rows % FR_TILE_FEATURES == 0 ? bound : NULL;
}

static bool is_about_this_file(fr_text key) {
    static const char *const names[] = {"general.architecture", "general.alignment", "split.no", "split.count",
                                        "split.tensors.count"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (key.length == strlen(names[i]) && memcmp(key.bytes, names[i], key.length) == 0) return true;
    return false;
}

static fr_status write_header(packing *job) {
    const fr_gguf *gguf = job->files->gguf;
    const fr_tensors *tensors = &job->files->tensors;
    for (size_t i = 0; i < gguf->count; i++)
        if (!is_about_this_file(gguf->values[i].key)) fr_gguf_put_value(&job->writer, &gguf->values[i]);
    for (size_t i = 0; i < tensors->count; i++) {
        const fr_tensor *t = &tensors->items[i];
        const fr_bound *bound = packed_in_file(job, t);
        bool packed = t->packed || bound;
        if (bound && bound->order) fr_gguf_put_string(&job->writer, FR_KEY_SORTED, t->name);
        fr_gguf_put_tensor(&job->writer, t->name, t->type, packed, t->dims, t->shape);
    }
    return fr_gguf_write_header(&job->writer);
}

static fr_status write_as_it_is(packing *job, const fr_tensor *tensor) {
    const fr_map *map = &job->files->files[tensor->file];
    size_t at = (size_t)((const uint8_t *)tensor->data - map->bytes);
    for (size_t begin = 0, end; begin < tensor->bytes; begin = end) {
        end = tensor->bytes - begin > STEP ? begin + STEP : tensor->bytes;
        FR_TRY(fr_map_fill(map, at + begin, at + end));
        FR_TRY(fr_gguf_write_data(&job->writer, (const uint8_t *)tensor->data + begin, end - begin));
        fr_map_release(map, at + begin, at + end);
    }
    return FR_OK;
}

static fr_status write_tiles(packing *job, const fr_bound *bound, uint8_t *tiles, size_t step) {
    const fr_tensor *tensor = bound->tensor;
    size_t cols = tensor->shape[tensor->dims - 1];
    for (size_t m = 0; m < bound->matrices; m++)
        for (size_t o = 0; o < bound->rows; o += step) {
            size_t count = bound->rows - o < step ? bound->rows - o : step, first = m * bound->rows + o;
            FR_TRY(fr_bound_pack(job->weights, bound, first, first + count, tiles));
            FR_TRY(fr_gguf_write_data(&job->writer, tiles, fr_packed_bytes(tensor->type, count, cols)));
        }
    return FR_OK;
}

static fr_status write_packed(packing *job, const fr_bound *bound) {
    const fr_tensor *tensor = bound->tensor;
    size_t cols = tensor->shape[tensor->dims - 1], tile = fr_packed_bytes(tensor->type, FR_TILE_FEATURES, cols);
    size_t count = STEP / (tile + 1) + 1;
    uint8_t *tiles = malloc(count * tile);
    if (!tiles) return fr_fail_memory("packed rows", count * tile);
    fr_status status = write_tiles(job, bound, tiles, count * FR_TILE_FEATURES);
    free(tiles);
    return status;
}

static fr_status write_all(packing *job) {
    const fr_tensors *tensors = &job->files->tensors;
    uint64_t total = 0;
    for (size_t i = 0; i < tensors->count; i++) total += tensors->items[i].bytes;
    FR_TRY(write_header(job));
    for (size_t i = 0; i < tensors->count; i++) {
        const fr_tensor *t = &tensors->items[i];
        const fr_bound *bound = packed_in_file(job, t);
        FR_TRY(bound ? write_packed(job, bound) : write_as_it_is(job, t));
        job->done += t->bytes;
        if (job->progress && !job->progress(job->context, job->done, total))
            return fr_fail_ended(job->files->path, job->done, total);
    }
    return fr_gguf_write_end(&job->writer);
}

static fr_status pack(const fr_checkpoint *files, const fr_weights *weights, const fr_weights *beside,
                      const fr_options *options, FILE *out) {
    if (!files->gguf)
        return fr_fail(FR_INPUT, "%s: only a GGUF can be packed: make one with forerun quantize", files->path);
    if (!weights->has_packed)
        return fr_fail(FR_INPUT, "%s has no matrix of a type that is packed (Q4_0, Q8_0, Q4_K, ...)", files->path);
    packing job = {.files = files,
                   .weights = weights,
                   .beside = beside,
                   .progress = options->progress,
                   .context = options->progress_context};
    fr_gguf_writer_open(&job.writer, out, files->gguf->architecture);
    fr_status status = write_all(&job);
    fr_gguf_writer_close(&job.writer);
    return status;
}

static fr_status pack_target(const char *path, const fr_options *options, FILE *out) {
    fr_model *model;
    fr_drafter *own = NULL;
    FR_TRY(fr_model_bind(path, options, &model));
    if (model->encoder) {
        fr_model_unload(model);
        return fr_fail(FR_UNBUILT, "%s: packing a text encoder is not built yet", path);
    }
    fr_status status = model->mtp_layers ? fr_drafter_bind(NULL, model, options, &own) : FR_OK;
    if (status == FR_OK) status = pack(&model->files, &model->weights, own ? &own->weights : NULL, options, out);
    fr_drafter_unload(own);
    fr_model_unload(model);
    return status;
}

/* Packs a drafter. target: the drafter's target; NULL for an assistant, which can be read without its target. */
static fr_status pack_drafter(const char *path, const fr_model *target, const fr_options *options, FILE *out) {
    fr_drafter *drafter;
    FR_TRY(fr_drafter_bind(path, target, options, &drafter));
    fr_status status = pack(&drafter->files, &drafter->weights, NULL, options, out);
    fr_drafter_unload(drafter);
    return status;
}

/* Packs a vision tower in a file of its own. */
static fr_status pack_tower(const char *path, const fr_options *options, FILE *out) {
    const fr_kernels *kernels;
    fr_mmproj *tower;
    FR_TRY(fr_kernels_select(NULL, &kernels));
    FR_TRY(fr_mmproj_open(path, true, kernels, 0, &tower));
    fr_status status = pack(&tower->files, &tower->weights, NULL, options, out);
    fr_mmproj_close(tower);
    return status;
}

static fr_status pack_alone(const char *path, const fr_options *options, FILE *out) {
    fr_checkpoint files;
    FR_TRY(fr_open_files(&files, path, true));
    bool tower = fr_is_mmproj(&files), drafter = !tower && fr_is_drafter(&files),
         whole = !drafter || fr_is_assistant(&files);
    const char *what = fr_is_mtp(&files) ? "an MTP layer alone" : "an EAGLE drafter";
    fr_checkpoint_close(&files);
    if (tower) return pack_tower(path, options, out);
    if (!whole) return fr_fail(FR_INPUT, "%s is %s, packed beside its target: pack -m TARGET -md it", path, what);
    return drafter ? pack_drafter(path, NULL, options, out) : pack_target(path, options, out);
}

static fr_status pack_beside(const char *path, const char *target, const fr_options *options, FILE *out) {
    fr_model *model;
    FR_TRY(fr_model_bind(target, options, &model));
    fr_status status = pack_drafter(path, model, options, out);
    fr_model_unload(model);
    return status;
}

fr_status fr_lab_pack(const char *path, const fr_options *options, FILE *out) {
    if (!path || !out) return fr_fail(FR_USAGE, "fr_lab_pack: a path and a stream are needed");
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = pack_alone(path, &resolved, out);
    fr_fpenv_leave(environment);
    return status;
}

fr_status fr_lab_pack_beside(const char *drafter, const char *target, const fr_options *options, FILE *out) {
    if (!drafter || !target || !out) return fr_fail(FR_USAGE, "fr_lab_pack_beside: two paths and a stream are needed");
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = pack_beside(drafter, target, &resolved, out);
    fr_fpenv_leave(environment);
    return status;
}
