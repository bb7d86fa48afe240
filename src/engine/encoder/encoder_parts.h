/* A text encoder as data, and the activations of a forward. Only the files of this folder use this header.
 *
 * In: a kind (encoder_kinds.h), its configuration, a checkpoint's tensors. Out: fr_encoder, which does not change, and
 * fr_encoder_memory, for one forward at a time. Many parts are optional. If an encoder lacks a part, the part's weight
 * is NULL, or its matrix has no features. */
#ifndef FR_SRC_ENGINE_ENCODER_ENCODER_PARTS_H
#define FR_SRC_ENGINE_ENCODER_ENCODER_PARTS_H

#include "src/engine/encoder/encoder.h"
#include "src/engine/layers/attend.h"

#define FR_ENCODER_LAYERS_MAX  1024
#define FR_ENCODER_EXPERTS_MAX 256

/* The largest number of rows that one product multiplies. */
#define FR_ENCODER_CHUNK 256

typedef struct fr_encoder_kind fr_encoder_kind;
typedef struct fr_encoder_names fr_encoder_names;

typedef enum fr_encoder_activation {
    FR_ENCODER_GELU, /* GELU by the error function */
    FR_ENCODER_GELU_TANH,
    FR_ENCODER_SILU,
    FR_ENCODER_RELU,
    FR_ENCODER_TANH,
    FR_ENCODER_IDENTITY
} fr_encoder_activation;

/* The two kinds of layers, in encoders that have both. The numbers are also the indices of their rotary forms. */
enum { FR_ENCODER_GLOBAL, FR_ENCODER_LOCAL, FR_ENCODER_REACHES };

typedef struct fr_encoder_spec {
    const fr_encoder_kind *kind;
    size_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn;
    size_t types;          /* number of rows in the table of token types; 0: there is no such table */
    size_t positions;      /* number of rows in the table of learned positions; 0: there is no such table */
    size_t position_first; /* the position of a text's first token */
    int32_t pad; /* the id of padding; -1: none. Every token with this id gets the position before position_first, and
                  * is not counted in the positions of other tokens */
    size_t context;

    bool embedding_norm; /* a norm is applied to the sum of the embeddings */
    /* if true, there is a norm before each branch and one after the last layer; if false, a norm is applied to the sum
     * after each branch is added */
    bool pre_norm;
    bool first_bare;   /* the first layer's attention has no norm before it */
    bool branch_norms; /* another norm is applied to the output of each branch before it is added */
    bool rms;          /* norms are RMS norms; if false, they are LayerNorms */
    bool norm_bias;
    fr_values norm_values; /* the form in which the file stores the norms' weights */
    bool qk_norm;          /* a norm is applied to each head of queries and keys */
    bool qkv_bias, o_bias, up_bias, down_bias;
    bool gated; /* the feed-forward is down(activation(gate(x)) * up(x)); if false, it is down(activation(up(x))) */
    fr_encoder_activation activation;
    /* Layer i is a mixture of experts if i % expert_every is 1. The feed-forward of a mixture is the sum of the outputs
     * of experts_used experts, each multiplied by the expert's share. */
    size_t experts, experts_used, expert_every; /* experts 0: no layer is a mixture */
    float eps;
    float scale;           /* factor for the scores of attention */
    float embedding_scale; /* factor for the embeddings of tokens */

    size_t rope_dims; /* number of values at the beginning of a head that are rotated; 0: heads are not rotated */
    bool rope_pairs;  /* values 2i and 2i + 1 are rotated together; if false, values i and i + rope_dims / 2 are */
    double theta[FR_ENCODER_REACHES], rope_factor[FR_ENCODER_REACHES];
    size_t reach;                         /* number of positions before and after a row's own position that local layers
                                           * see */
    uint8_t local[FR_ENCODER_LAYERS_MAX]; /* [layers] FR_ENCODER_LOCAL or FR_ENCODER_GLOBAL */

    size_t buckets; /* number of rows in the table of relative positions, whose values are added to the scores; 0: there
                     * is no such table */
    bool alibi;     /* a score falls with the distance in both directions: Press et al. 2021, arXiv:2108.12409 */

    size_t labels;                         /* number of scores that the classifier gives; 0: there is no classifier */
    bool label_mean;                       /* the classifier reads the mean of the rows; if false, the first row */
    fr_encoder_activation head_activation; /* the activation after the classifier's first matrix */
    bool head_norm, head_bias, label_bias; /* head_norm: a norm comes after head_activation */
} fr_encoder_spec;

/* The weights of a norm; `weight` is NULL if there is no norm. The norm is a LayerNorm if it has a bias or if the
 * encoder's norms are not RMS norms. */
typedef struct fr_encoder_norm {
    const float *weight, *bias;
} fr_encoder_norm;

typedef struct fr_encoder_layer {
    fr_encoder_norm norm1, norm2; /* [hidden] the norms of attention and of the feed-forward */
    fr_encoder_norm post1, post2; /* [hidden] the norms of the outputs of attention and of the feed-forward
                                   * (branch_norms) */
    const float *q_norm, *k_norm; /* [head_dim] the norms of each head's query and key */
    fr_matrix qkv[3];             /* one matrix that gives queries, keys and values together, or one matrix for each of
                                   * them */
    size_t qkv_count;             /* number of matrices in `qkv`: 1 or 3 */
    fr_matrix o, gate, up, down;
    const float *qkv_bias[3], *o_bias, *up_bias, *down_bias;
    fr_matrix router;                   /* [experts, hidden] a mixture's router; it has no features if the layer is not
                                         * a mixture */
    fr_matrix *expert_up, *expert_down; /* [experts] a mixture's matrices */
    const float *expert_bias;           /* [hidden] a bias that is added to the sum of the experts' outputs; NULL: there
                                         * is none */
} fr_encoder_layer;

struct fr_encoder {
    const fr_kernels *kernels;
    fr_encoder_spec spec;
    const fr_encoder_names *names; /* the names of the tensors in the encoder's files; `prefix` is put before each
                                    * name */
    const char *prefix;
    fr_encoder_layer *layers;
    fr_matrix words, positions, types; /* tables whose rows are looked up */
    const float *relative;             /* [buckets, heads] the bias that is added to a head's score, for each bucket of
                                        * distances */
    fr_encoder_norm embedding_norm, final_norm;
    float *inverse[FR_ENCODER_REACHES]; /* [rope_dims / 2] rotary frequencies */
    float *bias_slopes;                 /* [heads] ALiBi's slopes */
    /* The classifier: label(norm(activation(dense(x)))). */
    fr_matrix head_dense, head_label;
    const float *head_dense_bias, *head_label_bias;
    fr_encoder_norm head_norm;
    fr_matrix *experts; /* memory of the experts' matrices: [layers, 2, experts] */
    bool packed;        /* at least one matrix is packed */
};

/* A text's place in a forward. */
typedef struct fr_encoder_place {
    size_t first, count; /* the text's rows: [first, first + count) */
    uint64_t cost;       /* number of pairs of a query and a key, over all heads, in the texts before this text */
} fr_encoder_place;

struct fr_encoder_memory {
    const fr_encoder *encoder;
    size_t rows_max, threads;
    fr_arena arena;
    const fr_encoder_text *texts;
    size_t text_count, rows; /* number of texts and rows of this forward */

    fr_encoder_place *places; /* [rows_max] the places of the texts */
    int32_t *position;        /* [rows_max] the position of each row in its text */
    float *x;                 /* [rows_max, hidden] the stream */
    float *qkv;               /* [rows_max, qkv_width] queries, keys and values */
    float *attn;              /* [rows_max, heads * head_dim] attention's output */
    size_t qkv_width;
    const uint8_t **pages; /* [threads][pages of the longest text] the address at which each page of a text's qkv
                            * begins; a page has 64 rows */
    size_t page_count;
    float *cosine[FR_ENCODER_REACHES], *sine[FR_ENCODER_REACHES]; /* [rows_max, rope_dims / 2] cosines and sines of the
                                                                   * rotary angles */
    float *wide, *gate, *up, *narrow;                             /* rows of a chunk: inputs and outputs of products */
    float *shares; /* [rows of a chunk, experts] the factor for an expert's output in each row; 0: the row does not use
                    * the expert */
    float *expert; /* [rows of a chunk, hidden] outputs of one expert */
    float *ones;   /* [ffn] ones, which replace `up` in a feed-forward without a gate */
    /* [threads][biased_size] memory of encoders that add biases to the scores. It has a query's scores, and after them
     * the bias for each distance from -(n - 1) to n - 1 */
    float *biased;
    size_t biased_size;
    float *pooled; /* [3, hidden] memory of the classifier */
    fr_workspace workspace;
    fr_attend_workspace attend;
};

/* Binds the weights of a spec that was read (encoder_bind.c). */
fr_status fr_encoder_bind(fr_encoder *encoder, fr_weights *weights);

/* Computes the attention of all heads of all texts with the whole team (encoder_attend.c). */
void fr_encoder_attend(const fr_team *team, const fr_encoder_memory *m, size_t layer);

/* fr_encoder_activate computes y = activation(y) * up for n values (encoder_run.c); `up` may be m->ones.
 * fr_encoder_norm_row applies a norm to x; y may be x. */
void fr_encoder_activate(const fr_kernels *kernels, fr_encoder_activation activation, float *y, const float *up,
                         size_t n);
void fr_encoder_norm_row(const fr_encoder *encoder, const fr_encoder_norm *norm, float *y, const float *x, size_t n);

#endif
