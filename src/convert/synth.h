/* Makes files with random weights. The shapes are in shapes.c, the facts of each family in synth_families.c,
 * synth_gemma4.c, synth_eagle3.c and synth_block.c.
 *
 * In: an order, which gives a shape, the number of its layers and the number of ids. Out: a GGUF file as llama.cpp's
 * converter writes it. Its tensors are those that the family's name tables list (synth_tensors.c), and its keys are
 * those of the family. synth.c makes the numbers and the file. */
#ifndef FR_SRC_CONVERT_SYNTH_H
#define FR_SRC_CONVERT_SYNTH_H

#include "src/convert/outputs.h"
#include "src/engine/model/model.h"

/* The number of positions that the file allows. Published models allow more, but some engines allocate a cache for as
 * many positions as a file allows. */
#define FR_SYNTH_CONTEXT 32768

typedef struct fr_synth_family fr_synth_family;

typedef struct fr_synth_shape {
    const char *name;
    const fr_synth_family *family;
    size_t layers, vocab;   /* the published model's numbers of layers and ids */
    const char *config;     /* config.json without the fields that an order sets */
    const char *const *has; /* NULL-terminated names in GGUF of optional tensors that this model has */
} fr_synth_shape;

typedef struct fr_synth_order {
    const fr_synth_shape *shape;
    size_t layers, vocab;
    size_t experts;                 /* experts of each mixture; 0: as many as the shape has */
    void (*note)(const char *line); /* NULL, or a function that gets a line about each result that may surprise a
                                     * user */
} fr_synth_order;

/* -------------------------------------------------------------------------------------------------------- tokenizer */

/* The tokens that a family's readers expect in a vocabulary. */
typedef struct fr_synth_tokenizer {
    const char *special[4]; /* the tokens with the ids 0 to 3 */
    bool byte_level; /* the tokens of single bytes are printable characters; otherwise they are texts like "<0x0A>" */
    bool begins;     /* every text gets the token `begin` before it */
    uint32_t begin, end, turn_end, unknown, padding;
} fr_synth_tokenizer;

#define FR_SYNTH_LEAST_VOCAB 262 /* enough for the special tokens, the bytes, and two more */

/* Adds a vocabulary that every reader accepts: special tokens, bytes, then "t0", "t1" and so on. */
void fr_synth_put_tokenizer(const fr_synth_family *family, size_t vocab, fr_gguf_writer *writer);

/* ----------------------------------------------------------------------------------------------------------- family */

/* The mean of the random values of a vector. Of several entries, the first whose name is the end of the vector's name
 * is used. If there is none, the mean is 1. */
typedef struct fr_synth_mean {
    const char *name;
    float mean;
} fr_synth_mean;

/* A model that is being made. */
typedef struct fr_synth_model {
    json_t *config;
    fr_trunk_spec spec;
    fr_outputs outputs;
    void *ids; /* the values of a drafter's tensor of token ids */
} fr_synth_model;

struct fr_synth_family {
    const fr_family *family;
    const fr_synth_tokenizer *tokenizer;
    const fr_synth_mean *means; /* ends with an entry without a name; NULL: none */
    size_t mtp_layers;

    /* Adds to the config.json the fields that depend on an order, except the numbers of ids, layers and positions,
     * which are always added. Returns false if there is no memory. NULL: there are no such fields. */
    bool (*complete)(const fr_synth_order *order, json_t *config);

    /* Adds a drafter's keys, which replace those of the family, and the drafter's tensors that no trunk has. NULL: the
     * model is a target. */
    fr_status (*add_drafter)(const fr_synth_order *order, fr_synth_model *model, fr_gguf_writer *writer);
    const char *architecture; /* architecture of a drafter in GGUF; a target has that of its family */
    size_t vocab_unit;        /* vocabulary sizes are multiples of this; 0: any size */
    const fr_tensor_name *const
        /* name tables for the single layer of a drafter, with NULL after the last; NULL: the family's tables */
        *layer_names;
};

extern const fr_synth_family fr_synth_cohere2, fr_synth_ernie45, fr_synth_exaone4, fr_synth_glm4, fr_synth_lfm2,
    fr_synth_olmo2, fr_synth_olmo3, fr_synth_stablelm;
extern const fr_synth_family fr_synth_granite, fr_synth_hunyuan, fr_synth_mistral, fr_synth_mistral3, fr_synth_phi3,
    fr_synth_qwen3, fr_synth_seed_oss, fr_synth_smollm3;
extern const fr_synth_family fr_synth_deepseek, fr_synth_dflash, fr_synth_dflash2, fr_synth_dspark, fr_synth_eagle3,
    fr_synth_gemma2, fr_synth_gemma3, fr_synth_gemma4, fr_synth_gemma4_assistant, fr_synth_gemma4_centroids,
    fr_synth_glm, fr_synth_glm4_moe, fr_synth_glm_flash, fr_synth_gpt_oss, fr_synth_llama, fr_synth_qwen2,
    fr_synth_qwen3_moe, fr_synth_qwen35, fr_synth_qwen35_moe;

/* Families of mixtures of experts. */
extern const fr_synth_family fr_synth_bailing_hybrid, fr_synth_kimi_linear, fr_synth_bailing_moe, fr_synth_deepseek_v2,
    fr_synth_ernie45_moe, fr_synth_granite_moe, fr_synth_hunyuan_moe, fr_synth_kimi, fr_synth_minimax_m2,
    fr_synth_mixtral, fr_synth_nemotron_h, fr_synth_olmoe, fr_synth_qwen2_moe, fr_synth_qwen3_next, fr_synth_sarvam_moe;

extern const fr_synth_tokenizer fr_synth_llama_tokenizer, fr_synth_qwen_tokenizer;

/* In shapes.c. fr_synth_shape_word gives the names of shapes, and NULL after the last one. fr_synth_find finds a shape
 * by name. fr_synth_read reads an order's shape into the model, with the family's own reader. model->config and
 * model->spec.layer must be freed even after a failure. */
const char *fr_synth_shape_word(size_t index);
fr_status fr_synth_find(const char *name, const fr_synth_shape **shape);
fr_status fr_synth_read(const fr_synth_order *order, fr_synth_model *model);

/* Sets a number in a config.json; returns false if there is no memory. */
bool fr_synth_set(json_t *config, const char *key, size_t value);

/* In synth_tensors.c. Lists every tensor that the family's name tables have for the model's spec. */
fr_status fr_synth_list(const fr_synth_shape *shape, fr_synth_model *model);

/* Adds a matrix that is in none of these tables. */
fr_status fr_synth_add_matrix(fr_synth_model *model, const char *name, size_t features, size_t cols);

#endif
