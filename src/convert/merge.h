/* Merges adapters (LoRA) into the matrices of a model that is written as GGUF.
 *
 * In: adapters that were opened on the model, which is a folder or a GGUF file, and the list of tensors to be written.
 * Out: rows to which the adapters' products, scale * (b a), were added in float32, before the rows are quantized. An
 * adapter is refused if it changes a matrix that is no tensor of its own in the file, or a matrix that is the embedding
 * table too. */
#ifndef FR_SRC_CONVERT_MERGE_H
#define FR_SRC_CONVERT_MERGE_H

#include "forerun_lab.h"
#include "src/convert/outputs.h"
#include "src/engine/model/adapter.h"

typedef struct fr_merge {
    fr_model *own;       /* a model that was bound for the adapters; NULL: the adapters use the caller's model */
    fr_adapter **opened; /* [count] */
    const double *scales;
    size_t count;
} fr_merge;

/* The products that are added to the matrices of an output. */
typedef struct fr_merge_into {
    const fr_merge *merge;
    fr_adapted_matrices matrices;
    bool any;         /* at least one adapter changes the matrices */
    size_t expert_of; /* number of rows that one expert's matrix has in the output */
} fr_merge_into;

/* Opens the adapters on `model`, which was bound from the folder. If `model` is NULL, because the source is a GGUF
 * file, this function binds a model from `files` and opens the adapters on that model. */
fr_status fr_merge_open(fr_merge *merge, const fr_lab_quantization *how, const fr_model *model,
                        const fr_checkpoint *files);
void fr_merge_close(fr_merge *merge);

/* Checks that every matrix that an adapter changes is among the outputs. */
fr_status fr_merge_check(const fr_merge *merge, const fr_outputs *outputs);

/* Finds what is added to an output. */
fr_merge_into fr_merge_find(const fr_merge *merge, const fr_output *output);

/* Adds the adapters' products to `values`, one row of an output. `row` is the row's number in the source, and the
 * values are in the order of the source's columns. delta: room for as many values. */
void fr_merge_row(const fr_merge_into *into, size_t row, float *values, float *delta);

#endif
