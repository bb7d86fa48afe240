/* A text encoder as data, and the activations of a forward: private to the files of this folder.
 *
 * In: a kind (encoder_kinds.h), its configuration, a checkpoint's tensors. Out: fr_encoder (immutable),
 * fr_encoder_memory (for one forward at a time). Parts are optional: a weight that is NULL, or a matrix without
 * features, is a part that this encoder lacks. */
#ifndef FR_SRC_ENGINE_ENCODER_ENCODER_PARTS_H
#define FR_SRC_ENGINE_ENCODER_ENCODER_PARTS_H

#include "src/engine/encoder/encoder.h"
#include "src/engine/layers/attend.h"

#define FR_ENCODER_LAYERS_MAX  1024
#define FR_ENCODER_EXPERTS_MAX 256

/* The most rows that one product multiplies. */
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

/* The two kinds of layers of encoders that have both; also the indices of their rotary forms. */
enum { FR_ENCODER_GLOBAL, FR_ENCODER_LOCAL, FR_ENCODER_REACHES };

typedef struct fr_encoder_spec {
    const fr_encoder_kind *kind;
    size_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn;
    size_t types;          /* rows of the table of token types; 0: there is none */
    size_t positions;      /* rows of the table of learned positions; 0: there is none */
    size_t position_first; /* the position of a text's first token */
    int32_t pad; /* The id of padding; -1: none. Padding does not count as a position: every token with this id has the
                  * position before position_first. */
    size_t context;

    bool embedding_norm; /* the sum of the embeddings is normed */
    /* If true, norms come before each branch, and one after the last layer. If false, the sum is normed each time that
     * a branch has been added. */
    bool pre_norm;
    bool first_bare;   /* the first layer's attention has no norm before it */
    bool branch_norms; /* the output of a branch is normed too before it is added */
    bool rms;          /* norms are RMS norms; if false, LayerNorms */
    bool norm_bias;
    fr_values norm_values; /* the form in which the file stores the norms' weights */
    bool qk_norm;          /* the heads of queries and keys are normed */
    bool qkv_bias, o_bias, up_bias, down_bias;
    bool gated; /* the feed-forward is down(activation(gate(x)) * up(x)); if false, down(activation(up(x))) */
    fr_encoder_activation activation;
    /* Layer i is a mixture of experts if i % expert_every is 1. A mixture's feed-forward is the sum of the outputs of
     * experts_used experts, each times its share. */
    size_t experts, experts_used, expert_every; /* experts 0: no layer is a mixture */
    float eps;
    float scale;           /* factor for the scores of attention */
    float embedding_scale; /* factor for the embeddings of tokens */

    size_t rope_dims; /* number of a head's first values that are rotated; 0: none */
    bool rope_pairs;  /* neighbours are rotated together; if false, values i and i + rope_dims / 2 */
    double theta[FR_ENCODER_REACHES], rope_factor[FR_ENCODER_REACHES];
    size_t reach;                         /* local layers see this many positions before and after a row's own */
    uint8_t local[FR_ENCODER_LAYERS_MAX]; /* [layers] FR_ENCODER_LOCAL or FR_ENCODER_GLOBAL */

    size_t buckets; /* rows of the table of relative positions, whose values are added to the scores; 0: none */
    bool alibi;     /* a score falls with the distance to either side: Press et al. 2021, arXiv:2108.12409 */

    size_t labels;                         /* scores that the classifier gives; 0: there is no classifier */
    bool label_mean;                       /* the classifier reads the mean of the rows; if false, the first row */
    fr_encoder_activation head_activation; /* the activation after the classifier's first product */
    bool head_norm, head_bias, label_bias; /* head_norm: a norm comes after head_activation */
} fr_encoder_spec;

/* The weights of a norm; weight NULL: there is no norm. It is a LayerNorm if it has a bias or the encoder has no RMS
 * norms. */
typedef struct fr_encoder_norm {
    const float *weight, *bias;
} fr_encoder_norm;

typedef struct fr_encoder_layer {
    fr_encoder_norm norm1, norm2; /* [hidden] the norms of attention and of the feed-forward */
    fr_encoder_norm post1, post2; /* [hidden] the norms of the outputs of attention and of the feed-forward
                                   * (branch_norms) */
    const float *q_norm, *k_norm; /* [head_dim] the norms of each head's query and key */
    fr_matrix qkv[3];             /* queries, keys and values: one matrix for all three, or three */
    size_t qkv_count;             /* number of matrices in `qkv`: 1 or 3 */
    fr_matrix o, gate, up, down;
    const float *qkv_bias[3], *o_bias, *up_bias, *down_bias;
    fr_matrix router;                   /* a mixture's router: [experts, hidden]; without features: the layer has no
                                         * mixture */
    fr_matrix *expert_up, *expert_down; /* [experts] a mixture's matrices */
    const float *expert_bias;           /* [hidden] added to the sum of the experts' outputs; NULL: none */
} fr_encoder_layer;

struct fr_encoder {
    const fr_kernels *kernels;
    fr_encoder_spec spec;
    const fr_encoder_names *names; /* the names of the tensors in the encoder's files; `prefix` comes before each
                                    * name */
    const char *prefix;
    fr_encoder_layer *layers;
    fr_matrix words, positions, types; /* tables whose rows are looked up */
    const float *relative;             /* [buckets, heads] the bias of a score, by the bucket of the distance */
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
    uint64_t cost;       /* number of pairs of a query and a key, over all heads, in the texts before this one */
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
    const uint8_t **pages; /* [threads][pages of the longest text] where each page of 64 rows of a text's qkv begins */
    size_t page_count;
    float *cosine[FR_ENCODER_REACHES], *sine[FR_ENCODER_REACHES]; /* [rows_max, rope_dims / 2] cosines and sines of the
                                                                   * rotary angles */
    float *wide, *gate, *up, *narrow;                             /* rows of a chunk: inputs and outputs of products */
    float *shares; /* [rows of a chunk, experts] how much of an expert's output a row gets; 0: it is not chosen */
    float *expert; /* [rows of a chunk, hidden] outputs of one expert */
    float *ones;   /* [ffn] ones, which replace `up` in a feed-forward without a gate */
    /* [threads][biased_size] for encoders that add biases to the scores: a query's scores, then the bias at each
     * distance from -(n - 1) to n - 1 */
    float *biased;
    size_t biased_size;
    float *pooled; /* [3, hidden] memory of the classifier */
    fr_workspace workspace;
    fr_attend_workspace attend;
};

/* encoder_bind.c: binds the weights of a spec that was read. */
fr_status fr_encoder_bind(fr_encoder *encoder, fr_weights *weights);

/* encoder_attend.c: the whole team computes the attention of all heads of all texts. */
void fr_encoder_attend(const fr_team *team, const fr_encoder_memory *m, size_t layer);

/* encoder_run.c: writes y = activation(x) * up; up may be m->ones. y may be x. */
void fr_encoder_activate(const fr_kernels *kernels, fr_encoder_activation activation, float *y, const float *up,
                         size_t n);
void fr_encoder_norm_row(const fr_encoder *encoder, const fr_encoder_norm *norm, float *y, const float *x, size_t n);

#endif
