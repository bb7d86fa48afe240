/* A model written as GGUF: what its tensors will be, and what the parts of `forerun quantize` hand each other.
 *
 * In: a published folder or a GGUF file. Out: GGUF as llama.cpp writes and reads it. Three parts: the list of tensors
 * and the metadata (from a folder: export_gemma4.c, export_tokenizer.c; from GGUF they are there already), each
 * tensor's type (quantize_types.c), and their data, streamed (quantize.c). */
#ifndef FR_SRC_QUANTIZE_H
#define FR_SRC_QUANTIZE_H

#include "forerun_lab.h"
#include "formats/checkpoint.h"
#include "formats/gguf_write.h"
#include "src/draft/assistant_gemma4.h"

/* A tensor of the output. */
typedef struct fr_output {
    char *name;
    const fr_tensor *source; /* NULL: the values */
    const float *values;
    fr_dtype type;
    uint32_t dims;
    uint64_t shape[FR_MAX_DIMS];
} fr_output;

typedef struct fr_outputs {
    fr_output *items;
    size_t count, capacity;
    size_t layers; /* of the model */
    size_t gqa;    /* attention heads that share a KV head */
} fr_outputs;

/* Takes a copy of the name. source or values gives the numbers; of a source the shape is taken. */
fr_status fr_outputs_add(fr_outputs *outputs, const char *name, const fr_tensor *source);
void fr_outputs_free(fr_outputs *outputs);

/* ------------------------------------------------------------------------------------------------------------ types */

typedef struct fr_type_rule {
    const char *pattern; /* POSIX extended regular expression, found anywhere in a name */
    size_t length;
    fr_dtype type;
} fr_type_rule;

#define FR_MAX_TYPE_RULES 64

typedef struct fr_type_choice {
    fr_dtype type;                         /* of matrices */
    bool pure;                             /* of all of them */
    fr_type_rule rules[FR_MAX_TYPE_RULES]; /* the first that matches decides */
    size_t rule_count;
} fr_type_choice;

/* A type's word, in any case; one that fr_encodes. */
fr_status fr_type_read(const char *word, fr_dtype *type);

/* A type whose blocks fill rows of cols values: this one, or what llama-quantize takes in its place. */
fr_dtype fr_type_fitting(fr_dtype type, uint64_t cols);

/* Types and rules from their words. */
fr_status fr_type_choice_read(fr_type_choice *choice, const fr_lab_quantization *how);

/* Sets every output's type; a rule that decides none is FR_USAGE. A matrix whose rows don't fit a type's blocks gets
 * the type that llama-quantize falls back to. */
fr_status fr_choose_types(const fr_type_choice *choice, fr_outputs *outputs);

/* general.file_type, as llama.cpp numbers them. */
uint32_t fr_file_type(const fr_type_choice *choice);

/* ----------------------------------------------------------------------------------------------------------- export */

/* A published Gemma 4 folder, opened: target or assistant. */
typedef struct fr_export {
    const fr_checkpoint *files;
    fr_weights weights;
    fr_gemma4_config config;
    fr_assistant net;         /* of a target: its trunk alone */
    const char *architecture; /* of the GGUF file */
    bool assistant;
    float *rope_factors; /* [angles] of the full layers */
} fr_export;

/* Checks everything that running the model would check, then lists its tensors. */
fr_status fr_export_open(fr_export *export, const fr_checkpoint *files, fr_outputs *outputs);
void fr_export_close(fr_export *export);

/* All keys but those that tell of types. */
fr_status fr_export_metadata(const fr_export *export, const fr_outputs *outputs, fr_gguf_writer *writer);

/* The keys of Gemma 4's sizes. backbone: the width of the target that an assistant is for, 0 for a target itself.
 * clusters: the assistant's centroids, of which the best `top` are scored; 0: it has a plain head. */
void fr_export_config(const fr_gemma4_config *config, size_t backbone, size_t clusters, size_t top,
                      fr_gguf_writer *writer);

/* export_tokenizer.c: the tokenizer.* keys, of `vocab` ids; where the folder has no tokenizer.json, just that it has
 * none. */
fr_status fr_export_tokenizer(const fr_checkpoint *files, size_t vocab, fr_gguf_writer *writer);

#endif
