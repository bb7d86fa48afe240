/* Lists the tensors of a GGUF file that is to be written.
 *
 * In: published tensors, those of another file, or only shapes. Out: a list, which other parts give types
 * (quantize_types.h) and write. */
#ifndef FR_SRC_CONVERT_OUTPUTS_H
#define FR_SRC_CONVERT_OUTPUTS_H

#include "formats/tensors.h"
#include "src/engine/model/model.h"

/* A published tensor, or one expert's. */
typedef struct fr_output_source {
    const fr_tensor *tensor;
    const float *scales; /* of FP8 codes (quant/fp8.h); NULL: another type */
} fr_output_source;

typedef struct fr_output {
    char *name;
    const fr_tensor *source;
    const void *values; /* where there is no source: float32 or integers as the type says; NULL: that is the writer's */
    const float *scales;       /* of the source */
    fr_output_source *experts; /* [shape[0]] what a stack is made of, the source is one of them; NULL: of the source */
    size_t first, each;        /* of each `each` rows of the source a matrix has those from `first` on; 0: of its own */
    const fr_weights *stored_in; /* of what `stored` is bound in: part `part` of its entries; there is no source then */
    const fr_bound *stored;
    size_t part;
    bool transposed;       /* a matrix's rows are those rows' columns */
    fr_dtype type, wanted; /* wanted: by the rules, even if its blocks do not fill the rows */
    uint32_t dims;
    uint64_t shape[FR_DIMS_MAX];
    fr_reorder reorder; /* of its rows or columns as against the source's; of a vector its values */
    fr_values change;   /* what the source has instead of a value */
    bool offsets;       /* integers that count from their own index in the source, and from 0 here */
} fr_output;

typedef struct fr_outputs {
    fr_output *items;
    size_t count, capacity;
    size_t layers; /* of the model, MTP layers too */
    size_t gqa;    /* attention heads that share a KV head in the first layer; 0: it has none */
    float *rope_factors;
} fr_outputs;

/* Adds a tensor; the name is copied. It has the source's shape; without a source it is a single number until
 * fr_outputs_shape. */
fr_status fr_outputs_add(fr_outputs *outputs, const char *name, const fr_tensor *source);

/* Adds one expert's matrix to the stack of `count` experts with that name. The first call makes the stack. */
fr_status fr_outputs_add_expert(fr_outputs *outputs, const char *name, size_t expert, size_t count,
                                fr_output_source source);

/* Checks that all stacks have all of their experts. */
fr_status fr_outputs_check_experts(const fr_outputs *outputs);

/* Finds row `row` of an output in its source's order of rows: returns the tensor, and its row in *at. */
fr_output_source fr_output_row(const fr_output *output, size_t row, size_t *at);

/* Gives the tensor that was added last. */
fr_output *fr_outputs_last(fr_outputs *outputs);

/* Adds a vector of given values, which stay the caller's. */
fr_status fr_outputs_add_values(fr_outputs *outputs, const char *name, fr_dtype type, size_t count, const void *values);

/* Adds rope_freqs.weight, if the family's files have it. */
fr_status fr_outputs_add_rope_factors(fr_outputs *outputs, const fr_family *family, const fr_trunk_spec *spec);

/* Returns the number of rows: the product of all dimensions but the last. */
size_t fr_output_rows(const fr_output *output);

/* Sorts the list: tables first, then layers in ascending order. */
void fr_outputs_sort(fr_outputs *outputs);

void fr_outputs_free(fr_outputs *outputs);

#endif
