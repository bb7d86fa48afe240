/* Merges adapters into matrices: see merge.h.
 *
 * Source: peft 0.18, tuners/lora/layer.py, get_delta_weight and merge: W + (b a) * scale. */
#include "src/convert/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernels/dispatch.h"

static const fr_model *model_of(const fr_merge *merge) {
    return merge->opened[0]->model;
}

/* Binds a model of its own from the files of a GGUF model. The caller still owns the files. */
static fr_status bind(fr_merge *merge, const fr_checkpoint *files) {
    merge->own = calloc(1, sizeof *merge->own);
    if (!merge->own) return fr_fail_memory("model", sizeof *merge->own);
    merge->own->files = *files;
    FR_TRY(fr_kernels_select(NULL, &merge->own->kernels));
    FR_TRY(fr_model_bind_files(merge->own, ""));
    if (!merge->own->encoder) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: adapters of a text encoder are not built", files->path);
}

fr_status fr_merge_open(fr_merge *merge, const fr_lab_quantization *how, const fr_model *model,
                        const fr_checkpoint *files) {
    *merge = (fr_merge){.scales = how->adapter_scales};
    if (how->adapter_count == 0) return FR_OK;
    if (how->drafter || (!model && !files->gguf))
        return fr_fail(FR_USAGE, "adapters are merged into a model, not into a drafter");
    merge->opened = calloc(how->adapter_count, sizeof(fr_adapter *));
    if (!merge->opened) return fr_fail_memory("adapters", how->adapter_count * sizeof(fr_adapter *));
    if (!model) FR_TRY(bind(merge, files));
    for (; merge->count < how->adapter_count; merge->count++)
        FR_TRY(fr_adapter_load(how->adapters[merge->count], model ? model : merge->own, &merge->opened[merge->count]));
    return FR_OK;
}

void fr_merge_close(fr_merge *merge) {
    for (size_t i = 0; i < merge->count; i++) fr_adapter_unload(merge->opened[i]);
    free(merge->opened);
    if (merge->own) merge->own->files = (fr_checkpoint){0}; /* the caller keeps the files */
    if (merge->own) fr_model_unload(merge->own);
    *merge = (fr_merge){0};
}

/* Gives the product that an adapter adds to a matrix; NULL: the adapter does not change the matrix. */
static const fr_low_rank *product_of(const fr_merge *merge, size_t adapter, const fr_matrix *matrix) {
    const fr_low_rank *product = &merge->opened[adapter]->products[matrix->adapted];
    return matrix->adapted && product->a && merge->scales[adapter] != 0 ? product : NULL;
}

fr_merge_into fr_merge_find(const fr_merge *merge, const fr_output *output) {
    fr_merge_into into = {.merge = merge};
    fr_adapted_matrices *m = &into.matrices;
    /* Adapters' products are not added to the embedding table. If the table is also the head, adding them would change
     * both, but an adapter is meant for only one of the two. */
    if (merge->count == 0 || strcmp(output->name, "token_embd.weight") == 0) return into;
    const fr_model *model = model_of(merge);
    if (fr_adapted_find(&model->trunk, model->family->names, true, output->name, m) != FR_ADAPTED_FOUND) return into;
    for (size_t p = 0; p < m->parts; p++) into.expert_of += m->part[p]->features;
    if (m->of_expert || into.expert_of * m->experts != fr_output_rows(output)) return into;
    for (size_t i = 0; i < merge->count; i++)
        for (size_t p = 0; p < m->parts; p++)
            for (size_t e = 0; e < m->experts; e++) into.any |= product_of(merge, i, &m->part[p][e]) != NULL;
    return into;
}

fr_status fr_merge_check(const fr_merge *merge, const fr_outputs *outputs) {
    if (merge->count == 0) return FR_OK;
    size_t numbers = model_of(merge)->trunk.adaptable + 1;
    bool *found = calloc(numbers, sizeof *found);
    if (!found) return fr_fail_memory("a list of matrices", numbers);
    for (size_t o = 0; o < outputs->count; o++) {
        const fr_merge_into into = fr_merge_find(merge, &outputs->items[o]);
        for (size_t p = 0; into.any && p < into.matrices.parts; p++)
            for (size_t e = 0; e < into.matrices.experts; e++) found[into.matrices.part[p][e].adapted] = true;
    }
    fr_status status = FR_OK;
    for (size_t i = 0; i < merge->count && status == FR_OK; i++)
        for (size_t n = 1; n < numbers && status == FR_OK; n++)
            if (merge->opened[i]->products[n].a && merge->scales[i] != 0 && !found[n])
                status = fr_fail(FR_UNBUILT,
                                 "%s: to merge it is not built: it changes a matrix that is no tensor of its own in "
                                 "GGUF, or that is the embedding table too",
                                 merge->opened[i]->path);
    free(found);
    return status;
}

void fr_merge_row(const fr_merge_into *into, size_t row, float *values, float *delta) {
    const fr_adapted_matrices *m = &into->matrices;
    size_t expert = row / into->expert_of, part = 0, cols = m->part[0]->cols;
    row %= into->expert_of;
    while (row >= m->part[part]->features) row -= m->part[part++]->features;
    for (size_t i = 0; i < into->merge->count; i++) {
        const fr_low_rank *product = product_of(into->merge, i, &m->part[part][expert]);
        if (!product) continue;
        const float *b = product->b + row * product->rank;
        const float scale = (float)(into->merge->scales[i] * product->scale);
        memset(delta, 0, cols * sizeof *delta);
        for (size_t k = 0; k < product->rank; k++)
            for (size_t c = 0; c < cols; c++) delta[c] += b[k] * product->a[k * cols + c];
        for (size_t c = 0; c < cols; c++) values[c] += scale * delta[c];
    }
}
