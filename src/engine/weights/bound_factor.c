/* Finds the factor by which all values of an NVFP4 matrix are multiplied: see bound.h.
 *
 * In: a GGUF tensor NAME.weight of NVFP4, a matrix or a stack of them; a tensor NAME.scale with one float for each
 * matrix. If there is no such tensor, all factors are 1. Out: the floats. NAME.input_scale, which is meant for 4-bit
 * activations, counts as read but is not used. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/weights/bound.h"

/* Makes the name NAME.`other` from NAME.weight. Returns false if the tensor's name has another ending, or if there is
 * no such other tensor. */
static bool has_other(const fr_weights *weights, const fr_tensor *tensor, const char *other, char *name, size_t size) {
    static const char tail[] = ".weight";
    size_t length = strlen(tensor->name), before = length - (sizeof tail - 1);
    if (length < sizeof tail || strcmp(tensor->name + before, tail) != 0) return false;
    if ((size_t)snprintf(name, size, "%.*s.%s", (int)before, tensor->name, other) >= size) return false;
    return fr_tensors_find(&weights->files->tensors, name) != NULL;
}

fr_status fr_bound_factors(fr_weights *weights, fr_bound *bound) {
    char name[FR_TENSOR_NAME];
    const fr_tensor *codes = bound->tensor;
    const uint64_t count = codes->dims == 3 ? codes->shape[0] : 1;
    fr_bound *found;
    if (codes->type != FR_NVFP4 || codes->dims < 2 || bound->scales) return FR_OK;
    if (has_other(weights, codes, "input_scale", name, sizeof name)) {
        FR_TRY(fr_bound_find(weights, "", name, &count, 1, FR_LOOKED_UP, &found));
        found->of_codes = true;
    }
    if (!has_other(weights, codes, "scale", name, sizeof name)) return FR_OK;
    FR_TRY(fr_bound_find(weights, "", name, &count, 1, FR_LOOKED_UP, &found));
    FR_TRY(fr_bound_check_float(weights, found->tensor));
    found->of_codes = true;
    FR_TRY(fr_bound_fill(weights, found->tensor, 0, found->tensor->bytes));
    float *copy = fr_arena_take(&weights->vectors, count, sizeof *copy);
    FR_TRY(fr_arena_check(&weights->vectors, "scales"));
    fr_dtype_decode(found->tensor->type, found->tensor->data, copy, count);
    bound->scales = copy;
    for (uint64_t i = 0; i < found->tensor->shape[0]; i++) /* only a damaged file has a bad scale */
        if (!(isfinite(copy[i]) && copy[i] > 0))
            return fr_fail(FR_INPUT, "%s: tensor %s is %g, which is no scale", weights->files->path,
                           found->tensor->name, (double)copy[i]);
    return FR_OK;
}
