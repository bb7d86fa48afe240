/* Keeps lists of tensors to be written (outputs.h). */
#include "src/convert/outputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/gguf.h"

fr_status fr_outputs_add(fr_outputs *outputs, const char *name, const fr_tensor *source) {
    if (outputs->count == outputs->capacity) {
        size_t capacity = 2 * outputs->capacity + 64;
        fr_output *items = realloc(outputs->items, capacity * sizeof *items);
        if (!items) return fr_fail_memory("a list of tensors", capacity * sizeof *items);
        outputs->items = items;
        outputs->capacity = capacity;
    }
    fr_output output = {.name = strdup(name), .source = source, .dims = 1, .shape = {1}};
    if (!output.name) return fr_fail_memory("a tensor's name", strlen(name));
    if (source && source->dims > 0) {
        output.dims = source->dims;
        memcpy(output.shape, source->shape, sizeof output.shape);
    }
    outputs->items[outputs->count++] = output;
    if (output.dims > FR_GGUF_DIMS_MAX)
        return fr_fail(FR_INPUT, "tensor %s has %u dimensions, and GGUF's have 4", source->name, source->dims);
    for (uint32_t i = 0; i < output.dims; i++)
        if (output.shape[i] == 0) return fr_fail(FR_INPUT, "tensor %s is empty", name);
    return FR_OK;
}

static fr_output *find(const fr_outputs *outputs, const char *name) {
    for (size_t i = outputs->count; i > 0; i--)
        if (strcmp(outputs->items[i - 1].name, name) == 0) return &outputs->items[i - 1];
    return NULL;
}

static fr_status add_stack(fr_outputs *outputs, const char *name, size_t count, const fr_tensor *first) {
    FR_TRY(fr_outputs_add(outputs, name, first));
    fr_output *stack = fr_outputs_last(outputs);
    stack->experts = calloc(count, sizeof *stack->experts);
    if (!stack->experts) return fr_fail_memory("a list of experts", count * sizeof *stack->experts);
    stack->dims = 3;
    stack->shape[0] = count;
    memcpy(stack->shape + 1, first->shape, 2 * sizeof *first->shape);
    return FR_OK;
}

fr_status fr_outputs_add_expert(fr_outputs *outputs, const char *name, size_t expert, size_t count,
                                fr_output_source source) {
    const fr_tensor *tensor = source.tensor;
    if (expert >= count)
        return fr_fail(FR_INPUT, "tensor %s is of an expert that the configuration doesn't have", tensor->name);
    if (tensor->dims != 2) return fr_fail(FR_INPUT, "tensor %s is no matrix", tensor->name);
    if (!find(outputs, name)) FR_TRY(add_stack(outputs, name, count, tensor));
    fr_output *stack = find(outputs, name);
    if (memcmp(stack->shape + 1, tensor->shape, 2 * sizeof *tensor->shape) != 0)
        return fr_fail(FR_INPUT, "tensor %s has another shape than %s", tensor->name, stack->source->name);
    stack->experts[expert] = source;
    return FR_OK;
}

fr_status fr_outputs_check_experts(const fr_outputs *outputs) {
    for (size_t i = 0; i < outputs->count; i++) {
        const fr_output *output = &outputs->items[i];
        for (size_t e = 0; output->experts && e < output->shape[0]; e++)
            if (!output->experts[e].tensor)
                return fr_fail(FR_INPUT, "expert %zu is missing beside tensor %s", e, output->source->name);
    }
    return FR_OK;
}

fr_output_source fr_output_row(const fr_output *output, size_t row, size_t *at) {
    *at = row;
    if (!output->experts && !output->each) return (fr_output_source){output->source, output->scales};
    size_t rows = (size_t)output->shape[output->dims - 2], matrix = row / rows;
    if (output->experts) {
        *at = row % rows;
        return output->experts[matrix];
    }
    *at = matrix * output->each + output->first + row % rows;
    return (fr_output_source){output->source, output->scales};
}

fr_output *fr_outputs_last(fr_outputs *outputs) {
    return &outputs->items[outputs->count - 1];
}

fr_status fr_outputs_add_values(fr_outputs *outputs, const char *name, fr_dtype type, size_t count,
                                const void *values) {
    FR_TRY(fr_outputs_add(outputs, name, NULL));
    fr_output *output = fr_outputs_last(outputs);
    output->type = type;
    output->values = values;
    output->shape[0] = count;
    return FR_OK;
}

fr_status fr_outputs_add_rope_factors(fr_outputs *outputs, const fr_family *family, const fr_trunk_spec *spec) {
    size_t most = 0, angles = spec->rope[0].dims / 2;
    const fr_rope_spec *rope = &spec->rope[0];
    if (rope->kind == FR_ROPE_LONGROPE) {
        FR_TRY(fr_outputs_add_values(outputs, "rope_factors_long.weight", FR_F32, angles, rope->longrope[FR_ROPE_FAR]));
        return fr_outputs_add_values(outputs, "rope_factors_short.weight", FR_F32, angles,
                                     rope->longrope[FR_ROPE_NEAR]);
    }
    if (!family->put_rope_factors) return FR_OK;
    for (size_t i = 0; i < spec->ropes; i++)
        if (spec->rope[i].dims / 2 > most) most = spec->rope[i].dims / 2;
    outputs->rope_factors = calloc(most + 1, sizeof *outputs->rope_factors);
    if (!outputs->rope_factors) return fr_fail_memory("rotary factors", most * sizeof *outputs->rope_factors);
    size_t count = family->put_rope_factors(spec, outputs->rope_factors);
    if (count == 0) return FR_OK;
    return fr_outputs_add_values(outputs, "rope_freqs.weight", FR_F32, count, outputs->rope_factors);
}

size_t fr_output_rows(const fr_output *output) {
    size_t rows = 1;
    for (uint32_t i = 0; i + 1 < output->dims; i++) rows *= (size_t)output->shape[i];
    return rows;
}

void fr_outputs_free(fr_outputs *outputs) {
    for (size_t i = 0; i < outputs->count; i++) {
        free(outputs->items[i].name);
        free(outputs->items[i].experts);
    }
    free(outputs->items);
    free(outputs->rope_factors);
    *outputs = (fr_outputs){0};
}

/* Sorts the tensors: those that belong to no layer come first, and then the layers in ascending order. */
static int by_layer(const void *left, const void *right) {
    const fr_output *a = left, *b = right;
    bool a_block = strncmp(a->name, "blk.", 4) == 0, b_block = strncmp(b->name, "blk.", 4) == 0;
    unsigned long a_layer = a_block ? strtoul(a->name + 4, NULL, 10) : 0;
    unsigned long b_layer = b_block ? strtoul(b->name + 4, NULL, 10) : 0;
    if (a_block != b_block) return a_block ? 1 : -1;
    if (a_layer != b_layer) return a_layer < b_layer ? -1 : 1;
    return strcmp(a->name, b->name);
}

void fr_outputs_sort(fr_outputs *outputs) {
    qsort(outputs->items, outputs->count, sizeof *outputs->items, by_layer);
}
