/* Finds the scales of FP8 codes: see quant/fp8.h, and bound.h.
 *
 * In: a tensor NAME of codes, a tensor NAME_scale_inv with one float for each block of 128 rows by 128 columns (the
 * last blocks may be smaller), and the description of both in config.json. Out: float32. Codes without scales, and
 * scales for whole tensors or rows (NAME_scale), are refused. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "formats/json.h"
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
    if (!block || json_is_null(block)) return FR_OK; /* then only the shapes are checked */
    for (size_t i = 0; i < 2; i++)
        if (json_array_size(block) != 2 || json_integer_value(json_array_get(block, i)) != FR_FP8_BLOCK)
            return fr_fail(FR_UNBUILT, "%s: weight_block_size is not [128, 128], which alone is built", where);
    return FR_OK;
}

/* Finds the tensor of scales and checks everything except its values. */
static fr_status find_scales(fr_weights *weights, const fr_tensor *codes, fr_bound **scales) {
    char name[FR_TENSOR_NAME], other[FR_TENSOR_NAME];
    uint64_t shape[FR_DIMS_MAX];
    memcpy(shape, codes->shape, sizeof shape);
    for (uint32_t i = codes->dims - 2; i < codes->dims; i++) shape[i] = fr_fp8_blocks(shape[i]);
    snprintf(name, sizeof name, "%s_scale_inv", codes->name);
    snprintf(other, sizeof other, "%s_scale", codes->name);
    if (!fr_weights_has(weights, "", name) && fr_weights_has(weights, "", other))
        return fr_fail(FR_UNBUILT, "%s: FP8 weights with the scales of %s are not built: scales of blocks (%s) are",
                       weights->files->path, other, name);
    FR_TRY(fr_bound_find(weights, "", name, shape, codes->dims, FR_LOOKED_UP, scales));
    return fr_bound_check_float(weights, (*scales)->tensor);
}

fr_status fr_bound_scales(fr_weights *weights, fr_bound *bound) {
    fr_bound *found;
    if (bound->scales) return FR_OK; /* already found: the tensor is an embedding table and also the LM head */
    FR_TRY(check_config(weights->files));
    FR_TRY(find_scales(weights, bound->tensor, &found));
    const fr_tensor *tensor = found->tensor;
    size_t count = fr_fp8_scales(bound->tensor->shape, bound->tensor->dims);
    found->of_codes = true;
    FR_TRY(fr_bound_fill(weights, tensor, 0, tensor->bytes));
    float *copy = fr_arena_take(&weights->vectors, count, sizeof *copy);
    FR_TRY(fr_arena_check(&weights->vectors, "scales"));
    fr_dtype_decode(tensor->type, tensor->data, copy, count);
    for (size_t i = 0; i < count; i++)
        if (!(copy[i] >= 0 && copy[i] <= FR_FP8_SCALE_MAX))
            return fr_fail(FR_INPUT, "%s: tensor %s has %g at index %zu: scales are numbers from 0 to %g",
                           weights->files->path, tensor->name, (double)copy[i], i, (double)FR_FP8_SCALE_MAX);
    bound->scales = copy;
    return FR_OK;
}

const float *fr_weights_scales(const fr_weights *weights, const fr_tensor *codes) {
    const fr_bound *bound = fr_bound_of(weights, codes);
    return bound ? bound->scales : NULL;
}

bool fr_weights_is_scales(const fr_weights *weights, const fr_tensor *tensor) {
    const fr_bound *bound = fr_bound_of(weights, tensor);
    return bound && bound->of_codes;
}
