/* Opens a checkpoint's tensors for binding, and answers questions about them: see weights.h. */
#include "src/engine/weights/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "quant/fp8.h"
#include "quant/packed.h"
#include "src/engine/weights/bound.h"

/* Measures the room for float32 copies. All tensors with fewer than two dimensions are copied, including those of
 * indices. The scales of FP8 are copied too. Every tensor that may be one of the following is also copied: the
 * convolution of a frame, Gemma 3's projector (fr_bind_columns), MPNet's table of distances. */
static size_t vector_bytes(const fr_tensors *tensors) {
    fr_arena measure = {0};
    for (size_t i = 0; i < tensors->count; i++) {
        const fr_tensor *t = &tensors->items[i];
        bool convolution = t->dims == 4 && t->type < FR_FLOAT_TYPES;
        bool vector = t->dims == 1 || (t->dims == 2 && t->shape[0] == 1);
        if (vector) fr_arena_take(&measure, t->shape[t->dims - 1], sizeof(float));
        if (t->dims == 0) fr_arena_take(&measure, 1, sizeof(float));
        size_t length = strlen(t->name);
        bool vectors = t->dims == 2 && t->type < FR_FLOAT_TYPES && length > 4 &&
                       strcmp(t->name + length - 4, "bias") == 0; /* a bias for each expert */
        vectors |= t->dims == 2 && t->type < FR_FLOAT_TYPES && length > 11 &&
                   strcmp(t->name + length - 11, "norm.weight") == 0; /* Mamba-2's norm in GGUF, a row for each group */
        if (vectors) fr_arena_take(&measure, t->shape[0] * t->shape[1], sizeof(float));
        bool codes = t->dims > 1 && t->type == FR_F8_E4M3;
        if (codes) fr_arena_take(&measure, fr_fp8_scales(t->shape, t->dims), sizeof(float));
        if (t->type == FR_STORED) fr_arena_take(&measure, 1, sizeof(float));
        if (codes && t->storage) fr_arena_take(&measure, t->shape[0], sizeof(float));
        bool conv_kernel =
            (t->dims == 2 || t->dims == 3) && t->type < FR_FLOAT_TYPES && t->shape[t->dims - 1] <= FR_CONV_KERNEL_MAX;
        /* DFlash2 has one convolution of a part's input and one of its output, in one tensor
         * (src/engine/draft/block.h) */
        bool sides = t->dims == 3 && t->type < FR_FLOAT_TYPES && t->shape[0] == 2 && t->shape[1] <= FR_CONV_KERNEL_MAX;
        bool turned =
            t->dims == 2 && t->type < FR_FLOAT_TYPES && strstr(t->name, "mm") && strstr(t->name, "input_proj");
        bool distances = t->dims == 2 && t->type < FR_FLOAT_TYPES && strstr(t->name, "relative_attention_bias");
        if (convolution || conv_kernel || sides || turned || distances)
            fr_arena_take(&measure, t->bytes / fr_dtype_row_bytes(t->type, 1), sizeof(float));
    }
    return measure.used;
}

/* Measures the room for packed copies of all tensors that might need one; pages that are never touched cost nothing. A
 * matrix, or each entry of a stack, may be cut into two parts. Each part is padded to whole tiles. */
static size_t packed_bytes(const fr_tensors *tensors) {
    fr_arena measure = {0};
    for (size_t i = 0; i < tensors->count; i++) {
        const fr_tensor *t = &tensors->items[i];
        fr_copied_measure(t, &measure);
        if (!fr_bound_packs(t)) continue;
        size_t entries = t->dims == 3 ? 2 * t->shape[0] : 2;
        fr_arena_take(&measure, entries, fr_bound_tile_bytes(t, (t->shape[t->dims - 2] + 1) / 2));
    }
    return measure.used;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

fr_status fr_weights_open(fr_weights *weights, const fr_checkpoint *files) {
    *weights = (fr_weights){.files = files, .rotations = files->rotations};
    size_t count = files->tensors.count + 1;
    weights->bound = calloc(count, sizeof *weights->bound);
    weights->of_tensor = calloc(count, sizeof *weights->of_tensor);
    if (!weights->bound || !weights->of_tensor) return fr_fail_memory("tensor list", count * sizeof *weights->bound);
    FR_TRY(fr_arena_open(&weights->vectors, vector_bytes(&files->tensors), "norm weights"));
    return fr_arena_open(&weights->packed, packed_bytes(&files->tensors), "packed weights");
}

void fr_weights_close(fr_weights *weights) {
    fr_arena_close(&weights->vectors);
    fr_arena_close(&weights->packed);
    free(weights->bound);
    free(weights->of_tensor);
    free(weights->transposed);
    fr_activation_stats_free(weights);
    fr_notes_free(&weights->notes);
    *weights = (fr_weights){0};
}

fr_status fr_weights_transpose(fr_weights *weights, const fr_matrix *from, size_t count, float *to) {
    size_t bytes = (weights->transposed_count + 1) * sizeof *weights->transposed;
    fr_transposed *list = realloc(weights->transposed, bytes);
    if (!list) return fr_fail_memory("a list of transposed matrices", bytes);
    weights->transposed = list;
    list[weights->transposed_count++] = (fr_transposed){.from = from, .count = count, .to = to};
    weights->transposed_bytes += count * from->features * from->cols * sizeof *to;
    return FR_OK;
}

bool fr_weights_has(const fr_weights *weights, const char *prefix, const char *name) {
    char full[FR_TENSOR_NAME];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return fr_tensors_find(&weights->files->tensors, full) || fr_tensors_find(&weights->files->unread, full);
}

bool fr_weights_has_any(const fr_weights *weights, const char *prefix) {
    const fr_tensors *lists[] = {&weights->files->tensors, &weights->files->unread};
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->count; i++)
            if (strncmp(lists[l]->items[i].name, prefix, strlen(prefix)) == 0) return true;
    return false;
}

/* Gives back the memory of bytes that were compared. If the file is mapped, the system reads these bytes again when
 * they are needed. If the file isn't mapped and the tensor is in use (`used`), the bytes must stay. */
static void release_compared(const fr_weights *weights, const fr_tensor *tensor, size_t begin, size_t end, bool used) {
    bool mapped = weights->files->files[tensor->file].fd < 0;
    if (mapped || !used) fr_bound_release(weights, tensor, begin, end);
}

fr_status fr_weights_same(const fr_weights *weights, const fr_tensor *copy, const fr_tensor *tensor, bool *same) {
    const size_t step = (size_t)1 << 22;
    *same = copy->type == tensor->type && copy->packed == tensor->packed && copy->bytes == tensor->bytes &&
            copy->dims == tensor->dims && memcmp(copy->shape, tensor->shape, copy->dims * sizeof *copy->shape) == 0;
    for (size_t begin = 0, end; *same && begin < copy->bytes; begin = end) {
        end = copy->bytes - begin > step ? begin + step : copy->bytes;
        FR_TRY(fr_bound_fill(weights, copy, begin, end));
        FR_TRY(fr_bound_fill(weights, tensor, begin, end));
        *same = memcmp((const uint8_t *)copy->data + begin, (const uint8_t *)tensor->data + begin, end - begin) == 0;
        release_compared(weights, copy, begin, end, false);
        release_compared(weights, tensor, begin, end, true);
    }
    return FR_OK;
}

bool fr_weights_bound(const fr_weights *weights, const fr_tensor *tensor) {
    return fr_bound_of(weights, tensor) != NULL;
}

bool fr_weights_quantized(const fr_weights *weights) {
    for (size_t i = 0; i < weights->count; i++) {
        const fr_bound *bound = &weights->bound[i];
        fr_dtype type = bound->tensor->type;
        bool matrix = bound->access == FR_STREAMED && bound->tensor->dims > 1;
        bool decoded = type == FR_F8_E4M3 || (type == FR_STORED && !bound->packed);
        if (matrix && !decoded && type >= FR_FLOAT_TYPES) return true; /* true for the codes of MXFP4 too */
    }
    return false;
}

void fr_weights_note_transposed(fr_weights *weights) {
    if (weights->transposed_bytes == 0) return;
    fr_notes_add(&weights->notes,
                 "%s has kv_b whole: its key halves take %.1f MB more, transposed, as float32; `forerun quantize` "
                 "writes the published folder's as they are needed",
                 weights->files->path, (double)weights->transposed_bytes / 1e6);
}
