/* The tensors of a GGUF file that is to be written.
 *
 * In: published tensors, those of another file, or nothing but a shape. Out: a list, which other parts give types
 * (quantize_types.h) and write. */
#ifndef FR_SRC_OUTPUTS_H
#define FR_SRC_OUTPUTS_H

#include "formats/tensors.h"
#include "src/families/model.h"

typedef struct fr_output {
    char *name;
    const fr_tensor *source;
    const void *values; /* where there is no source: float32 or integers as the type says; NULL: that is the writer's */
    const float *scales; /* of a source of FP8 codes (quant/fp8.h) */
    fr_dtype type;
    uint32_t dims;
    uint64_t shape[FR_MAX_DIMS];
    fr_reorder reorder;       /* of its rows or columns as against the source's; of a vector its values */
    fr_values change;         /* what the source has instead of a value */
    bool offsets;             /* integers that count from their own index in the source, and from 0 here */
} fr_output;

typedef struct fr_outputs {
    fr_output *items;
    size_t count, capacity;
    size_t layers; /* of the model, MTP layers too */
    size_t gqa;    /* attention heads that share a KV head */
    float *rope_factors;
} fr_outputs;

/* Takes a copy of the name. Of a source the shape is taken; without one it is a number until fr_outputs_shape. */
fr_status fr_outputs_add(fr_outputs *outputs, const char *name, const fr_tensor *source);

/* The tensor that was added last. */
fr_output *fr_outputs_last(fr_outputs *outputs);

/* Adds a vector of given values; they stay the caller's. */
fr_status fr_outputs_add_values(fr_outputs *outputs, const char *name, fr_dtype type, size_t count,
                                const void *values);

/* Adds rope_freqs.weight, if the family's files have it. */
fr_status fr_outputs_add_rope_factors(fr_outputs *outputs, const fr_family *family, const fr_trunk_spec *spec);

/* Of all dimensions but the last. */
size_t fr_output_rows(const fr_output *output);

/* Tables, then layers in ascending order. */
void fr_outputs_sort(fr_outputs *outputs);

void fr_outputs_free(fr_outputs *outputs);

#endif
