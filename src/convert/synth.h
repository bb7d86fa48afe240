/* Random weights of a shape: what a family says of its shapes (synth_gemma4.c, synth_glm.c, synth_llama.c), and what is
 * made of it.
 *
 * In: an order: a shape, how many of its layers, how many ids. Out: a GGUF file as llama.cpp's converter writes it. Its
 * tensors are those of the family's name tables (synth_tensors.c), its keys the family's; numbers and file are
 * synth.c's. */
#ifndef FR_SRC_SYNTH_H
#define FR_SRC_SYNTH_H

#include "src/convert/outputs.h"
#include "src/model/model.h"

/* The norm of an MTP layer's own, which files may lack and published ones have. */
#define FR_SYNTH_MTP_NORM "nextn.shared_head_norm.weight"

/* Positions: fewer than models are published for, since some engines cache as many as a file allows. */
#define FR_SYNTH_CONTEXT 32768

typedef struct fr_synth_shape {
    const char *name, *architecture;
    size_t layers, vocab; /* as published */
    size_t vocab_unit;    /* a vocabulary is a multiple of it */
    const void *sizes;    /* the family's own, or a config.json without what orders say */
    const char *const *has; /* names in GGUF, NULL-terminated: tensors that a model may lack, and this one doesn't */
} fr_synth_shape;

typedef struct fr_synth_order {
    const fr_synth_shape *shape;
    size_t layers, vocab;
    size_t experts; /* of each mixture; 0: the shape's own */
} fr_synth_order;

/* -------------------------------------------------------------------------------------------------------- tokenizer */

/* What a family's readers expect around a vocabulary. */
typedef struct fr_synth_tokenizer {
    const char *model, *pre; /* tokenizer.ggml.model and .pre; NULL: no such key */
    const char *special[4];  /* ids 0 to 3 */
    bool byte_level;         /* bytes are printable characters; otherwise "<0x0A>" and so on */
    bool begins;             /* texts begin with `begin` */
    uint32_t begin, end, turn_end, unknown, padding;
} fr_synth_tokenizer;

#define FR_SYNTH_LEAST_VOCAB 262 /* special tokens, bytes, and two more */

/* A vocabulary that every reader takes: special tokens, bytes, then "t0", "t1" and so on. */
void fr_synth_put_tokenizer(const fr_synth_tokenizer *tokenizer, size_t vocab, fr_gguf_writer *writer);

/* ----------------------------------------------------------------------------------------------------------- family */

/* A vector's numbers are noise about its mean: that of the first line whose name its own ends with, or 1. */
typedef struct fr_synth_mean {
    const char *name;
    float mean;
} fr_synth_mean;

/* A model on its way. */
typedef struct fr_synth_model {
    fr_trunk_spec spec;
    fr_outputs outputs;
    void *ids; /* of a drafter's tensor; freed with the model */
} fr_synth_model;

typedef struct fr_synth_family {
    const fr_synth_shape *shapes; /* up to one without a name */
    const fr_family *family;
    const fr_synth_tokenizer *tokenizer;
    const fr_synth_mean *means; /* up to one without a name; NULL: none */
    const fr_tensor_name *const
        *layer_names; /* the tables, up to NULL, of the one layer that it is; NULL: its family's */
    size_t mtp_layers;

    /* NULL: a shape's sizes are a config.json, which the family reads (synth_configs.c). */
    fr_status (*make_spec)(const fr_synth_order *order, fr_trunk_spec *spec);

    /* A drafter's keys, in place of its family's, and its tensors beside the trunk's; NULL: it is a target. */
    fr_status (*add_drafter)(const fr_synth_order *order, fr_synth_model *model, fr_gguf_writer *writer);
} fr_synth_family;

extern const fr_synth_family fr_synth_deepseek, fr_synth_gemma3, fr_synth_gemma4, fr_synth_gemma4_assistant,
    fr_synth_glm, fr_synth_glm4_moe, fr_synth_glm_flash, fr_synth_llama, fr_synth_llama_eagle3, fr_synth_qwen2,
    fr_synth_qwen3, fr_synth_qwen35, fr_synth_qwen35_moe;

/* What GLM models of every kind are spoken to with, and Qwen's before 3.5. */
extern const fr_synth_tokenizer fr_synth_glm_tokenizer, fr_synth_qwen_tokenizer;

/* synth_configs.c: the spec of a config.json, which is taken over, and of what an order leaves open; of a shape whose
 * sizes are one. Free spec->layer, whatever comes back. */
fr_status fr_synth_read(const fr_family *family, const fr_synth_order *order, bool drafter, json_t *config,
                        fr_trunk_spec *spec);
fr_status fr_synth_spec_of_config(const fr_family *family, const fr_synth_order *order, fr_trunk_spec *spec);

/* synth_tensors.c: lists every tensor that the family's tables have of the model's spec. */
fr_status fr_synth_list(const fr_synth_family *family, const fr_synth_shape *shape, fr_synth_model *model);

/* A matrix that no table has. */
fr_status fr_synth_add_matrix(fr_synth_model *model, const char *name, size_t features, size_t cols);

#endif
