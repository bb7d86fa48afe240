/* Lists the tensors of a GGUF file that is to be written.
 *
 * In: published tensors, tensors of another GGUF file, or only shapes. Out: a list of tensors. quantize_types.h chooses
 * their types, and quantize.c or synth.c writes them. */
#ifndef FR_SRC_CONVERT_OUTPUTS_H
#define FR_SRC_CONVERT_OUTPUTS_H

#include "formats/tensors.h"
#include "src/engine/model/model.h"

/* The tensor from which an output's values come. It is a whole tensor, or the matrix of one expert. */
typedef struct fr_output_source {
    const fr_tensor *tensor;
    const float *scales; /* scales of FP8 codes (quant/fp8.h); NULL: the tensor has another type */
} fr_output_source;

/* A factor by which the values of some rows are multiplied. These rows begin after those of the factor before it, and
 * go up to row `end`, which is not included. */
typedef struct fr_row_factor {
    size_t end;
    float factor;
} fr_row_factor;

enum { FR_ROW_FACTORS = 5 }; /* the most parts with a factor: Mamba-2's input has five, each with a factor of its own */

typedef struct fr_output {
    char *name;
    const fr_tensor *source;
    /* values of a tensor without a source: float32, or integers if the type says so; NULL: the writer makes them */
    const void *values;
    const float *scales; /* scales of the source's FP8 codes */
    /* [shape[0]] if the output is a stack of experts that the source has as separate tensors: these tensors; `source`
     * is then one of them. NULL: `source` is the whole tensor */
    fr_output_source *experts;
    /* the rows of the source that the output takes. Matrix m of the output takes the rows that begin at m * each +
     * first. If `each` is 0, the output takes all rows. */
    size_t first, each;
    /* An output without a source may take its values from the tensor `stored` of the weights `stored_in`: from each
     * entry of the tensor it takes the part with number `part`. NULL: it takes no such values. */
    const fr_weights *stored_in;
    const fr_bound *stored;
    size_t part;
    bool transposed;       /* each row taken from the source becomes a column */
    fr_dtype type, wanted; /* wanted: the type that the rules give, even if the type's blocks do not fill the rows */
    uint32_t dims;
    uint64_t shape[FR_DIMS_MAX];
    fr_reorder reorder; /* the order that rows or columns (in a vector: values) have in the source */
    fr_values change;   /* how a value is computed from the source's value */
    /* factors of rows, in ascending order of rows. `end` 0 ends the list; rows after it are unchanged. */
    fr_row_factor factors[FR_ROW_FACTORS];
    bool offsets; /* the source's integers are relative to their own index; the file's integers are absolute */
} fr_output;

typedef struct fr_outputs {
    fr_output *items;
    size_t count, capacity;
    size_t layers; /* layers of the model, including MTP layers */
    /* number of heads that share a KV head in the first layer with attention; 0: the model has no attention */
    size_t gqa;
    float *rope_factors;
} fr_outputs;

/* Adds a tensor and copies its name. The tensor has the source's shape. Without a source the tensor is a single number,
 * until the caller sets another shape in fr_outputs_last. */
fr_status fr_outputs_add(fr_outputs *outputs, const char *name, const fr_tensor *source);

/* Adds one expert's matrix to the stack with that name. `count` is the number of experts in the stack. The first call
 * for a name makes the stack. */
fr_status fr_outputs_add_expert(fr_outputs *outputs, const char *name, size_t expert, size_t count,
                                fr_output_source source);

/* Checks that all stacks have all of their experts. */
fr_status fr_outputs_check_experts(const fr_outputs *outputs);

/* Finds row `row` of an output in the source. Returns the source's tensor, and gives the row's number in this tensor in
 * *at. */
fr_output_source fr_output_row(const fr_output *output, size_t row, size_t *at);

/* Gives the tensor that was added last. */
fr_output *fr_outputs_last(fr_outputs *outputs);

/* Adds a vector of given values, which the caller keeps. */
fr_status fr_outputs_add_values(fr_outputs *outputs, const char *name, fr_dtype type, size_t count, const void *values);

/* Adds rope_freqs.weight, if GGUF files of the family have it. */
fr_status fr_outputs_add_rope_factors(fr_outputs *outputs, const fr_family *family, const fr_trunk_spec *spec);

/* Returns the number of rows: the product of all dimensions but the last. */
size_t fr_output_rows(const fr_output *output);

/* Sorts the list: first the tensors that belong to no layer, then the layers in ascending order. */
void fr_outputs_sort(fr_outputs *outputs);

void fr_outputs_free(fr_outputs *outputs);

#endif
