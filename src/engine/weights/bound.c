/* Binds one tensor: see bound.h. */
#include "src/engine/weights/bound.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "formats/storage.h"
#include "quant/fp8.h"
#include "quant/packed.h"

bool fr_bound_tiles(const fr_tensor *tensor, fr_grouped_tiles *tiles) {
    const fr_storage *s = tensor->storage;
    return tensor->type == FR_STORED && s->form == FR_STORAGE_GROUPED && !s->group_of &&
           fr_grouped_layout(tiles, &s->grouping, s->cols) &&
           s->groups == (s->cols + s->grouping.group - 1) / s->grouping.group;
}

size_t fr_bound_tile_bytes(const fr_tensor *tensor, size_t rows) {
    fr_grouped_tiles tiles;
    if (fr_bound_tiles(tensor, &tiles)) return fr_grouped_bytes(&tiles, rows);
    return fr_packed_bytes(tensor->type, rows, (size_t)tensor->shape[tensor->dims - 1]);
}

bool fr_bound_packs(const fr_tensor *tensor) {
    fr_grouped_tiles tiles;
    if (tensor->type == FR_STORED) return fr_bound_tiles(tensor, &tiles);
    return fr_packs(tensor->type) && !tensor->packed && tensor->dims >= 2;
}

fr_bound *fr_bound_of(const fr_weights *weights, const fr_tensor *tensor) {
    const fr_tensors *all = &weights->files->tensors;
    if (tensor < all->items || tensor >= all->items + all->count) return NULL;
    uint32_t found = weights->of_tensor[tensor - all->items];
    return found ? &weights->bound[found - 1] : NULL;
}

/* Writes a shape like "[8, 128, 32]" into text. */
static const char *shape_text(const uint64_t *shape, size_t dims, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "[");
    for (size_t i = 0; i < dims && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%llu", i ? ", " : "", (unsigned long long)shape[i]);
    if (used < size) snprintf(text + used, size - used, "]");
    return text;
}

/* Finds a tensor, checks its shape and type, and adds it to the bound tensors. If `codes` is set, its type must be U8.
 * Otherwise, if it has several dimensions, its type must be a type of weights. */
static fr_status find(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape, uint32_t dims,
                      fr_access access, bool codes, fr_bound **bound) {
    char full[FR_TENSOR_NAME], wanted[128], found[128];
    const fr_tensor *t;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    FR_TRY(fr_checkpoint_tensor(weights->files, full, &t));
    if (t->storage && dims == 2 && t->shape[1] != shape[1]) fr_storage_refit(weights->files, t, shape[1]);
    if (t->dims != dims || memcmp(t->shape, shape, dims * sizeof *shape) != 0)
        return fr_fail(FR_INPUT, "%s: tensor %s has shape %s, the configuration asks for %s", weights->files->path,
                       full, shape_text(t->shape, t->dims, found, sizeof found),
                       shape_text(shape, dims, wanted, sizeof wanted));
    if (codes ? t->type != FR_U8 : t->type >= FR_I32 && dims > 1)
        return fr_fail(FR_INPUT, "%s: tensor %s has type %s, expected %s", weights->files->path, full,
                       fr_dtype_name(t->type), codes ? "U8" : "a type of weights");
    *bound = fr_bound_of(weights, t);
    if (*bound && access == FR_STREAMED)
        (*bound)->access = access; /* so that an embedding table that is also the LM
                                                                     * head becomes streamed */
    if (*bound) return FR_OK;
    *bound = &weights->bound[weights->count++];
    weights->of_tensor[t - weights->files->tensors.items] = (uint32_t)weights->count;
    **bound = (fr_bound){.tensor = t, .rows = dims < 2 ? 1 : (size_t)shape[dims - 2], .matrices = 1, .access = access};
    weights->bytes += t->storage ? fr_storage_bytes(t->storage) : t->bytes;
    return FR_OK;
}

fr_status fr_bound_find(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape, uint32_t dims,
                        fr_access access, fr_bound **bound) {
    return find(weights, prefix, name, shape, dims, access, false, bound);
}

fr_status fr_bound_find_codes(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape,
                              uint32_t dims, fr_access access, fr_bound **bound) {
    return find(weights, prefix, name, shape, dims, access, true, bound);
}

fr_status fr_bound_check_float(const fr_weights *weights, const fr_tensor *tensor) {
    if (tensor->type < FR_FLOAT_TYPES) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s has type %s, expected F32, F16 or BF16", weights->files->path, tensor->name,
                   fr_dtype_name(tensor->type));
}

fr_status fr_bound_fill(const fr_weights *weights, const fr_tensor *tensor, size_t begin, size_t end) {
    const fr_map *map = &weights->files->files[tensor->file];
    size_t at = (size_t)((const uint8_t *)tensor->data - map->bytes);
    return end > begin ? fr_map_fill(map, at + begin, at + end) : FR_OK;
}

void fr_bound_release(const fr_weights *weights, const fr_tensor *tensor, size_t begin, size_t end) {
    const fr_map *map = &weights->files->files[tensor->file];
    size_t at = (size_t)((const uint8_t *)tensor->data - map->bytes);
    fr_map_release(map, at + begin, at + end);
}

size_t fr_bound_matrices(const fr_bound *bound) {
    if (bound->packed) return bound->matrices;
    return bound->tensor->dims == 3 ? (size_t)bound->tensor->shape[0] : 1;
}

size_t fr_bound_rows_bytes(const fr_bound *bound, size_t rows) {
    const fr_tensor *tensor = bound->tensor;
    size_t all = bound->rows * fr_bound_matrices(bound);
    if (bound->packed && bound->layout != FR_LAYOUT_ROWS) return fr_copied_rows_bytes(bound, rows);
    if (bound->packed || tensor->packed) return fr_bound_tile_bytes(tensor, rows);
    return all ? tensor->bytes / all * rows : 0;
}

size_t fr_bound_bytes(const fr_bound *bound) {
    return bound->packed ? fr_bound_matrices(bound) * fr_bound_rows_bytes(bound, bound->rows) : bound->tensor->bytes;
}

/* Gives the address of the tensor's first matrix; its matrices are *step bytes apart. If a streamed tensor is to be
 * packed, takes room for the packed copy. */
static const uint8_t *lay_out(fr_weights *weights, fr_bound *bound, size_t matrices, size_t features, size_t cols,
                              size_t *step) {
    const fr_tensor *t = bound->tensor;
    bool stays = bound->unpacked && t->type == FR_STORED;
    bool packs = bound->packed || (bound->access == FR_STREAMED && !stays && fr_bound_packs(t));
    size_t plain = features * fr_dtype_row_bytes(t->type, cols);
    *step = packs || t->packed ? fr_bound_tile_bytes(t, features) : plain;
    if (packs && t->type == FR_STORED) fr_bound_tiles(t, &bound->tiles);
    weights->has_packed |= packs || t->packed;
    if (!packs) return t->data;
    if (!bound->packed) bound->packed = fr_arena_take(&weights->packed, matrices, *step);
    bound->matrices = matrices;
    bound->rows = features;
    return bound->packed;
}

fr_status fr_bound_cut(fr_weights *weights, fr_bound *bound, size_t count, size_t parts, size_t features, size_t cols,
                       fr_matrix *matrices) {
    if (bound->tensor->packed && parts > 1 && features % FR_TILE_FEATURES)
        return fr_fail(FR_INPUT, "%s: tensor %s is packed, and its parts of %zu rows are no whole tiles of %d",
                       weights->files->path, bound->tensor->name, features, FR_TILE_FEATURES);
    size_t bytes, across = fr_fp8_blocks(cols), down = fr_fp8_blocks(parts * features);
    if (bound->tensor->type == FR_F8_E4M3) FR_TRY(fr_bound_scales(weights, bound));
    if (bound->access == FR_STREAMED && fr_copied_fp4(bound->tensor)) {
        FR_TRY(fr_copied_bind_fp4(weights, bound, count, features, cols, matrices));
        return fr_bound_watch_activations(weights, bound, count, parts, matrices);
    }
    FR_TRY(fr_bound_factors(weights, bound));
    const uint8_t *data = lay_out(weights, bound, count, features, cols, &bytes);
    FR_TRY(fr_arena_check(&weights->packed, "packed weights"));
    for (size_t i = 0; i < count; i++) {
        matrices[i] = (fr_matrix){.data = data + i * bytes,
                                  .type = bound->tensor->type,
                                  .packed = bound->packed || bound->tensor->packed,
                                  .features = features,
                                  .cols = cols,
                                  .row_bytes = fr_dtype_row_bytes(bound->tensor->type, cols),
                                  .rotation = fr_rotation_of(weights->files->rotations, bound->tensor->name, cols)};
        if (bound->tensor->type == FR_STORED) {
            matrices[i].storage = bound->tensor->storage;
            matrices[i].first = i * features;
            matrices[i].row_bytes = bound->tensor->bytes / (count * features);
            if (bound->packed) matrices[i].tiles = &bound->tiles;
        }
        if (!bound->scales) continue;
        matrices[i].scales = bound->scales + i / parts;
        if (bound->tensor->type != FR_F8_E4M3) continue;
        matrices[i].scales = bound->scales + i / parts * down * across;
        matrices[i].scale_stride = bound->row_scales ? 0 : across;
        matrices[i].row_scales = bound->row_scales;
        matrices[i].first = i % parts * features;
    }
    return fr_bound_watch_activations(weights, bound, count, parts, matrices);
}
