/* Finds the scales of FP8 codes: see quant/fp8.h, and bound.h.
 *
 * In: a tensor NAME of codes, a tensor NAME_scale_inv, and the description of both in config.json. NAME_scale_inv has
 * one float for each block of 128 rows by 128 columns; the last blocks may be smaller. Or a storage whose scales are
 * those of such blocks, of rows, or of the whole matrix (formats/storage.h). Out: float32. Codes without scales are
 * refused. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "formats/json.h"
#include "formats/storage.h"
#include "quant/fp8.h"
#include "src/engine/weights/bound.h"

/* Checks config.json's description of the codes, if there is one, because only one kind is supported. */
static fr_status check_config(const fr_checkpoint *files) {
    static const char where[] = "config.json";
    json_t *how;
    const char *format = NULL;
    FR_TRY(fr_json_object(files->config, "quantization_config", where, &how));
    if (how) FR_TRY(fr_json_text(how, "fmt", where, &format));
    if (format && strcmp(format, "e4m3") != 0)
        return fr_fail(FR_UNBUILT, "%s: FP8 weights of fmt %s are not built (e4m3 is)", where, format);
    const json_t *block = how ? json_object_get(how, "weight_block_size") : NULL;
    if (!block || json_is_null(block)) return FR_OK; /* without block sizes, only the shapes are checked */
    for (size_t i = 0; i < 2; i++)
        if (json_array_size(block) != 2 || json_integer_value(json_array_get(block, i)) != FR_FP8_BLOCK)
            return fr_fail(FR_UNBUILT, "%s: weight_block_size is not [128, 128], which alone is built", where);
    return FR_OK;
}

static fr_status check_scales(const fr_weights *weights, const fr_tensor *tensor, const float *scales, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!(scales[i] >= 0 && scales[i] <= FR_FP8_SCALE_MAX))
            return fr_fail(FR_INPUT, "%s: tensor %s has %g at index %zu: scales are numbers from 0 to %g",
                           weights->files->path, tensor->name, (double)scales[i], i, (double)FR_FP8_SCALE_MAX);
    return FR_OK;
}

/* Finds the tensor of scales and checks everything except its values. */
static fr_status find_scales(fr_weights *weights, const fr_tensor *codes, fr_bound **scales) {
    char name[FR_TENSOR_NAME];
    uint64_t shape[FR_DIMS_MAX];
    memcpy(shape, codes->shape, sizeof shape);
    for (uint32_t i = codes->dims - 2; i < codes->dims; i++) shape[i] = fr_fp8_blocks(shape[i]);
    snprintf(name, sizeof name, "%s_scale_inv", codes->name);
    FR_TRY(fr_bound_find(weights, "", name, shape, codes->dims, FR_LOOKED_UP, scales));
    return fr_bound_check_float(weights, (*scales)->tensor);
}

/* Copies the scales of a storage, for each block of codes. If the storage has one scale for the whole matrix, that
 * scale is repeated for all blocks. If the storage has one scale for each row, the rows' scales are copied separately,
 * and the blocks' scales are 1. */
static fr_status copy_stored(fr_weights *weights, fr_bound *bound) {
    const fr_storage *storage = bound->tensor->storage;
    const fr_tensor *scales = storage->scales;
    bool rows = storage->scale_rows == 1 && storage->row_step > 0;
    size_t down = rows ? 1 : fr_fp8_blocks(storage->rows), across = fr_fp8_blocks(storage->cols);
    FR_TRY(fr_bound_fill(weights, scales, 0, scales->bytes));
    float *copy = fr_arena_take(&weights->vectors, down * across, sizeof *copy);
    float *of_rows = rows ? fr_arena_take(&weights->vectors, storage->rows, sizeof *of_rows) : NULL;
    FR_TRY(fr_arena_check(&weights->vectors, "scales"));
    for (size_t i = 0; i < down * across; i++) {
        size_t group = i % across < storage->groups ? i % across : 0;
        copy[i] = rows ? 1.0F : fr_storage_scale(storage, i / across * FR_FP8_BLOCK, group);
    }
    for (size_t r = 0; rows && r < storage->rows; r++) of_rows[r] = fr_storage_scale(storage, r, 0);
    bound->scales = copy;
    bound->row_scales = of_rows;
    return rows ? check_scales(weights, scales, of_rows, storage->rows)
                : check_scales(weights, scales, copy, down * across);
}

fr_status fr_bound_scales(fr_weights *weights, fr_bound *bound) {
    fr_bound *found;
    if (bound->scales)
        return FR_OK; /* the scales were found when the tensor was bound before, as both the embedding table and the LM
                       * head */
    if (bound->tensor->storage) return copy_stored(weights, bound);
    FR_TRY(check_config(weights->files));
    FR_TRY(find_scales(weights, bound->tensor, &found));
    const fr_tensor *tensor = found->tensor;
    size_t count = fr_fp8_scales(bound->tensor->shape, bound->tensor->dims);
    found->of_codes = true;
    FR_TRY(fr_bound_fill(weights, tensor, 0, tensor->bytes));
    float *copy = fr_arena_take(&weights->vectors, count, sizeof *copy);
    FR_TRY(fr_arena_check(&weights->vectors, "scales"));
    fr_dtype_decode(tensor->type, tensor->data, copy, count);
    bound->scales = copy;
    return check_scales(weights, tensor, copy, count);
}

const float *fr_weights_scales(const fr_weights *weights, const fr_tensor *codes) {
    const fr_bound *bound = fr_bound_of(weights, codes);
    return bound ? bound->scales : NULL;
}

bool fr_weights_is_scales(const fr_weights *weights, const fr_tensor *tensor) {
    const fr_bound *bound = fr_bound_of(weights, tensor);
    return bound && bound->of_codes;
}
