/* Reads how a model's makers turn rows into embeddings and scores.
 *
 * In: the files of sentence-transformers in a folder (modules.json, 1_Pooling, 2_Dense, sentence_bert_config.json,
 * config_sentence_transformers.json), config.json; or keys of GGUF. Out: a recipe. A module that is not built is
 * refused by its type. Reimers and Gurevych 2019, arXiv:1908.10084. */
#ifndef FR_SRC_ENGINE_EMBED_RECIPE_H
#define FR_SRC_ENGINE_EMBED_RECIPE_H

#include "src/engine/model/model.h"

/* The ways of sentence-transformers to combine rows into one. If there are several, their results are joined side by
 * side. */
typedef enum fr_pool_mode {
    FR_POOL_CLS,
    FR_POOL_MAX,
    FR_POOL_MEAN,
    FR_POOL_MEAN_SQRT, /* the sum, divided by the root of the number of rows */
    FR_POOL_WEIGHTED,  /* the mean weighted by position, from 1 */
    FR_POOL_LAST,
    FR_POOL_MODES
} fr_pool_mode;

typedef enum fr_recipe_step_kind { FR_STEP_DENSE, FR_STEP_NORMALIZE, FR_STEP_LAYER_NORM } fr_recipe_step_kind;

typedef enum fr_dense_activation {
    FR_DENSE_IDENTITY,
    FR_DENSE_TANH,
    FR_DENSE_GELU,
    FR_DENSE_SILU,
    FR_DENSE_RELU,
    FR_DENSE_SIGMOID
} fr_dense_activation;

/* A step changes a pooled row x. A dense layer computes activation(weight x + bias), and adds x to it if it has a
 * residual (adds_input). */
typedef struct fr_recipe_step {
    fr_recipe_step_kind kind;
    size_t in, out;
    float *weight,
        *bias;       /* malloc'd: weight [out, in] and bias [out] of a dense layer, or weight [in] and bias [in] of a
                      * LayerNorm; bias NULL: none */
    float *residual; /* [out, in] matrix by which x is multiplied before it is added; NULL: x is added as it is, or not
                      * at all */
    bool adds_input;
    fr_dense_activation activation;
} fr_recipe_step;

#define FR_RECIPE_STEPS 16

typedef struct fr_recipe {
    fr_pool_mode modes[FR_POOL_MODES];
    size_t mode_count; /* 0: the makers don't say */
    bool skips_prompt; /* rows of the prompt are not pooled */
    fr_recipe_step steps[FR_RECIPE_STEPS];
    size_t step_count;
    size_t width;                /* width of a finished row */
    size_t limit;                /* the most tokens of a text; 0: the files don't say */
    bool typed;                  /* the tokenizer gives token types */
    bool cuts_begin;             /* a text that is too long loses its beginning; if false, its end */
    json_t *prompts;             /* an object with a text for each name; NULL: none */
    json_t *settings;            /* config_sentence_transformers.json, which owns `default_prompt`; NULL: none */
    const char *default_prompt;  /* the name of a prompt; NULL: none */
    fr_dense_activation scoring; /* the function that is applied to a score */
    int32_t yes, no;             /* ids whose logits score a pair in a model that generates text; -1: none */
} fr_recipe;

fr_status fr_recipe_read(const fr_model *model, fr_recipe *recipe);
void fr_recipe_close(fr_recipe *recipe);

/* recipe_pool.c: combines a text's rows [count, hidden] into [mode_count * hidden] by the recipe. If the recipe leaves
 * out the prompt, only rows from `skipped` on count. Sums are in doubles, in the order of the rows. */
void fr_recipe_pool(const fr_recipe *recipe, const float *rows, size_t count, size_t hidden, size_t skipped,
                    float *pooled);

/* Runs the recipe's steps on a pooled row. bare: a last step that normalizes is left out. Both buffers are as wide as
 * the widest row (fr_recipe_widest); the function returns the one that holds the result. */
size_t fr_recipe_widest(const fr_recipe *recipe, size_t hidden);
float *fr_recipe_finish(const fr_recipe *recipe, const fr_kernels *kernels, float *row, float *other, bool bare);

/* Scales n values to length 1, in doubles; zeros stay. */
void fr_row_normalize(float *row, size_t n);

/* Applies the function to a value. */
float fr_dense_activate(const fr_kernels *kernels, fr_dense_activation activation, float value);

#endif
