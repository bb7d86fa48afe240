/* Reads how a model's makers turn rows into embeddings and scores.
 *
 * In: the files of sentence-transformers in a folder (modules.json, 1_Pooling, 2_Dense, sentence_bert_config.json,
 * config_sentence_transformers.json) and config.json; or keys of GGUF. Out: a recipe. A module of an unknown type is
 * refused with an error that names the type. Source: Reimers and Gurevych 2019, arXiv:1908.10084. */
#ifndef FR_SRC_ENGINE_EMBED_RECIPE_H
#define FR_SRC_ENGINE_EMBED_RECIPE_H

#include "src/engine/model/model.h"

/* The ways in which sentence-transformers combines rows into one row. If a model uses several ways, their results are
 * joined to one longer row. */
typedef enum fr_pool_mode {
    FR_POOL_CLS,
    FR_POOL_MAX,
    FR_POOL_MEAN,
    FR_POOL_MEAN_SQRT, /* the sum of the rows, divided by the square root of their number */
    FR_POOL_WEIGHTED,  /* the mean, in which the first row has weight 1, the second weight 2, and so on */
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

/* A step changes a pooled row x. A dense layer computes activation(weight x + bias). If it has a residual (adds_input),
 * x is added to the result. */
typedef struct fr_recipe_step {
    fr_recipe_step_kind kind;
    size_t in, out;
    float *weight,
        *bias;       /* allocated with malloc: weight [out, in] and bias [out] of a dense layer, or weight [in] and bias
                      * [in] of a LayerNorm; bias is NULL if there is none */
    bool adds_input; /* the step's input is added to its output */
    float *residual; /* [out, in] the matrix by which the input is multiplied before it is added; NULL: the input is
                      * added as it is */
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
    size_t limit;                /* the most tokens of a text; 0: the files don't limit it */
    bool typed;                  /* the tokenizer gives token types */
    bool cuts_begin;             /* a text that is too long loses its beginning; if false, it loses its end */
    json_t *prompts;             /* an object with the prompt's text for each prompt's name; NULL: there are no
                                  * prompts */
    json_t *settings;            /* the content of config_sentence_transformers.json, which owns `default_prompt`; NULL:
                                  * there is no such file */
    const char *default_prompt;  /* the name of a prompt; NULL: there is no default */
    fr_dense_activation scoring; /* the function that is applied to a score */
    int32_t yes, no;             /* ids whose logits score a pair in a model that generates text; -1: there is no such
                                  * id */
} fr_recipe;

fr_status fr_recipe_read(const fr_model *model, fr_recipe *recipe);
void fr_recipe_close(fr_recipe *recipe);

/* Combines a text's rows [count, hidden] into one row [mode_count * hidden] by the recipe (recipe_pool.c). If the
 * recipe leaves out the prompt, only rows from `skipped` on are combined. Sums are computed in doubles, in the order of
 * the rows. */
void fr_recipe_pool(const fr_recipe *recipe, const float *rows, size_t count, size_t hidden, size_t skipped,
                    float *pooled);

/* fr_recipe_finish runs the recipe's steps on a pooled row. bare: if the last step normalizes, it is left out. `row`
 * and `other` are buffers as wide as the widest row (fr_recipe_widest). The function returns the buffer that holds the
 * result. */
size_t fr_recipe_widest(const fr_recipe *recipe, size_t hidden);
float *fr_recipe_finish(const fr_recipe *recipe, const fr_kernels *kernels, float *row, float *other, bool bare);

/* Scales n values to length 1, with sums in doubles. If all values are zero, they stay zero. */
void fr_row_normalize(float *row, size_t n);

/* Applies the function to a value. */
float fr_dense_activate(const fr_kernels *kernels, fr_dense_activation activation, float value);

#endif
